"""Submit, wait, read the logs, from Python."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from portal_stub import TOKEN, Portal
from trainhall import Client, TrainhallError
from trainhall import client as client_module
from trainhall.settings import load, save

DOCUMENT = {"namespace": "vision", "runtime": "numpy", "command": "python train.py"}


@pytest.fixture
def portal() -> Iterator[Portal]:
    with Portal() as opened:
        yield opened


@pytest.fixture
def client(portal: Portal) -> Client:
    return Client(portal.url, TOKEN)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TRAINHALL_URL", "TRAINHALL_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_submit_wait_logs_in_a_few_lines(portal: Portal, home: Path) -> None:
    save({"url": portal.url, "token": TOKEN})
    portal.script = [
        {"status": "running", "lines": ["one"]},
        {"status": "succeeded", "lines": ["two", "three", "four"]},
    ]

    job = Client().submit(namespace="vision", runtime="numpy", command="python train.py", files={"train.py": "1"})
    job.wait(poll=0.01)
    printed = list(job.logs())

    assert (job.status, printed) == ("succeeded", ["one", "two", "three", "four"])
    assert json.loads(portal.requests[0]["body"])["code"] == {"files": {"train.py": "1"}}


def test_a_lost_answer_does_not_make_two_jobs(client: Client, portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module.time, "sleep", lambda _seconds: None)
    portal.lose_answers = 2
    portal.busy = 1
    assert client.submit(DOCUMENT).id == "b2c3d4f5g0"
    assert len(portal.jobs) == 1
    assert len({request["headers"]["Idempotency-Key"] for request in portal.requests}) == 1
    client.submit(DOCUMENT)
    assert len(portal.jobs) == 2


def test_what_may_not_be_repeated_is_asked_once(client: Client, portal: Portal) -> None:
    job = client.submit(DOCUMENT)
    portal.lose_answers = 1
    with pytest.raises(TrainhallError, match="cannot be reached"):
        client.post(f"jobs/{job.id}/clone/")
    assert [request["path"] for request in portal.requests].count(f"/api/v1/jobs/{job.id}/clone/") == 1


def test_a_clone_whose_answer_was_lost_is_made_once(
    client: Client, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module.time, "sleep", lambda _seconds: None)
    job = client.submit(DOCUMENT)
    portal.lose_answers = 1
    job.clone({"parameters.lr": 1e-4})
    asked = [request for request in portal.requests if request["path"].endswith("/clone/")]
    assert len(asked) == 2 and len({request["headers"]["Idempotency-Key"] for request in asked}) == 1


def test_errors_carry_code_message_and_fields(client: Client) -> None:
    with pytest.raises(TrainhallError) as refused:
        client.submit({"namespace": "vision"})
    assert (refused.value.code, refused.value.status) == ("invalid_spec", 422)
    assert refused.value.fields == {"command": ["is required: what to run, such as `python train.py`"]}
    assert "command: is required" in str(refused.value)
    with pytest.raises(TrainhallError, match="nothing here") as unknown:
        client.job("../x?y")
    assert unknown.value.status == 404


def test_a_file_goes_as_it_is(client: Client, portal: Portal, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("namespace: vision  # ours\ncommand: python train.py")
    (tmp_path / "train.py").write_text("print('ü😀')")
    client.submit(path, files=[str(tmp_path / "train.py")])
    sent = portal.requests[-1]
    assert sent["headers"]["Content-Type"] == "application/yaml"
    assert sent["body"].decode().startswith("namespace: vision  # ours\ncommand: python train.py\ncode: ")
    with pytest.raises(TrainhallError, match="sent as it is"):
        client.submit(path, name="other")
    path.write_text("code:\n  git: https://example.org/x\n")
    with pytest.raises(TrainhallError, match="has `code` already"):
        client.submit(path, files={"a.py": ""})


def test_lists_follow_the_pages_without_leaving_the_portal(client: Client, portal: Portal) -> None:
    for _number in range(5):
        portal.add_job()
    assert len(client.jobs()) == 5
    assert len(client.jobs(most=3)) == 3


def test_points_come_as_numbers(client: Client) -> None:
    (one,) = client.submit(DOCUMENT).metrics("train/loss")
    assert one["step"] == [1, 2]
    assert one["value"][0] == 0.5
    assert math.isnan(one["value"][1])


def test_waiting_has_an_end(client: Client) -> None:
    with pytest.raises(TimeoutError, match="still queued"):
        client.submit(DOCUMENT).wait(timeout=0.05, poll=0.01)


def test_the_settings_are_for_their_owner_alone(home: Path) -> None:
    os.umask(os.umask(0))
    path = save({"url": "https://one.example.org", "token": "th_x"})
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert load() == {"url": "https://one.example.org", "token": "th_x"}


def test_a_token_never_goes_to_another_portal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save({"url": "https://one.example.org", "token": "th_x"})
    monkeypatch.setenv("TRAINHALL_URL", "https://two.example.org")
    with pytest.raises(TrainhallError, match="Not logged in"):
        Client()
    with pytest.raises(TrainhallError, match="Not logged in"):
        Client("https://three.example.org")
    monkeypatch.setenv("TRAINHALL_API_TOKEN", "th_y")
    assert Client().token == "th_y"


@pytest.mark.parametrize("url", ["portal.example.org", "ftp://portal", "http://"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(TrainhallError, match="not an address"):
        Client(url, TOKEN)
