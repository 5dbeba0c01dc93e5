"""What a job left: listed, fetched in parts, and nothing outside its folder (R103)."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from django.test import AsyncClient, Client
from django.utils import timezone

from jobs.models import Job
from tests.factories import leave_file, make_job

pytestmark = pytest.mark.django_db

ESCAPES = [
    "../../../../../etc/passwd",
    "out/../../secret.txt",
    "out/%2e%2e/%2e%2e/secret.txt",
    "out/..%2f..%2fsecret.txt",
    "out/%252e%252e/secret.txt",
    "out//model.txt",
    "out/./model.txt",
    "/etc/passwd",
    "out/..",
    "out/",
    "out",
    "",
    "out/link.txt",
    "out/away/secret.txt",
    "out/pipe",
    "out/socket",
    "out/model.txt/x",
    "out/model.txt%00.png",
    "out/model.txt%2500",
    "out\\..\\secret.txt",
    "secret.txt",
    "out/" + "a/" * 60 + "b",
    "out/" + "n" * 300,
    "ckpt/..%5c..%5csecret.txt",
]


@pytest.fixture
def job(alice: Any, vision: Any) -> Job:
    job = make_job(alice, vision, attempt_number=1)
    model = leave_file(job, "out/model.txt", b"0123456789")
    leave_file(job, "ckpt/step-100.npz", b"c" * 100)
    os.utime(leave_file(job, "ckpt/step-20.npz", b"c" * 20), (1_700_000_000, 1_700_000_000))
    leave_file(job, "tb/events.out.tfevents.1", b"e")
    leave_file(job, "out/größe 模型.bin", b"x")
    run = model.parent.parent
    secret = run.parent / "secret.txt"
    secret.write_text("not yours")
    for name, target in (("link.txt", secret), ("away", run.parent)):
        if not (model.parent / name).is_symlink():
            os.symlink(target, model.parent / name)
    os.mkfifo(model.parent / "pipe")
    socket.socket(socket.AF_UNIX).bind(os.path.relpath(model.parent / "socket"))
    return job


def paths(client: Client, job: Job) -> list[str]:
    return [file["path"] for file in client.get(f"/api/v1/jobs/{job.pk}/files/").json()["results"]]


def test_checkpoints_come_first_the_newest_on_top(client: Client, alice: Any, job: Job) -> None:
    client.force_login(alice)
    assert paths(client, job) == [
        "ckpt/step-100.npz",
        "ckpt/step-20.npz",
        "out/größe 模型.bin",
        "out/model.txt",
        "tb/events.out.tfevents.1",
    ]
    first = client.get(f"/api/v1/jobs/{job.pk}/files/").json()["results"][0]
    assert (first["step"], first["size"], first["kind"]) == (100, 100, "checkpoint")


async def fetch(job: Job, path: str, person: Any, **headers: str) -> tuple[Any, bytes]:
    client = AsyncClient()
    await client.aforce_login(person)
    answer = await client.get(f"/api/v1/jobs/{job.pk}/files/{path}", headers=headers)
    if not answer.streaming:
        return answer, answer.content
    return answer, b"".join([chunk async for chunk in answer.streaming_content])


@pytest.mark.django_db(transaction=True)
async def test_a_file_comes_whole_and_in_parts(alice: Any, job: Job) -> None:
    whole, body = await fetch(job, "out/model.txt", alice)
    assert (whole.status_code, body, whole["Content-Length"]) == (200, b"0123456789", "10")
    assert whole["Content-Disposition"] == 'attachment; filename="model.txt"'
    assert whole["Content-Type"] == "application/octet-stream"
    part, body = await fetch(job, "out/model.txt", alice, **{"Range": "bytes=4-", "If-Range": whole["ETag"]})
    assert (part.status_code, body, part["Content-Range"]) == (206, b"456789", "bytes 4-9/10")
    other, body = await fetch(job, "out/model.txt", alice, **{"Range": "bytes=4-", "If-Range": '"old"'})
    assert (other.status_code, body) == (200, b"0123456789")
    outside, _body = await fetch(job, "out/model.txt", alice, Range="bytes=10-")
    assert (outside.status_code, outside["Content-Range"]) == (416, "bytes */10")


def test_a_name_of_any_script_can_be_fetched(client: Client, alice: Any, job: Job) -> None:
    client.force_login(alice)
    answer = client.get(f"/api/v1/jobs/{job.pk}/files/out/größe 模型.bin")
    assert (answer.status_code, answer["Content-Length"]) == (200, "1")
    assert "filename*=utf-8''gr%C3%B6%C3%9Fe%20%E6%A8%A1%E5%9E%8B.bin" in answer["Content-Disposition"]


@pytest.mark.parametrize("path", ESCAPES)
def test_nothing_outside_the_folder_of_the_job_is_opened(client: Client, alice: Any, job: Job, path: str) -> None:
    client.force_login(alice)
    answer = client.get(f"/api/v1/jobs/{job.pk}/files/{path}" if path else f"/api/v1/jobs/{job.pk}/files//")
    assert answer.status_code in (301, 404)
    assert b"not yours" not in answer.content


def test_dave_sees_none_of_it(client: Client, dave: Any, job: Job) -> None:
    client.force_login(dave)
    assert client.get(f"/api/v1/jobs/{job.pk}/files/").status_code == 404
    assert client.get(f"/api/v1/jobs/{job.pk}/files/out/model.txt").status_code == 404
    assert client.get(f"/jobs/{job.pk}/files/").status_code == 404


def test_the_page_lists_them_and_says_so_when_there_are_none(client: Client, alice: Any, vision: Any, job: Job) -> None:
    client.force_login(alice)
    assert "step-100.npz" in client.get(f"/jobs/{job.pk}/files/").content.decode()
    other = make_job(alice, vision)
    assert "No file yet" in client.get(f"/jobs/{other.pk}/files/").content.decode()


def test_removed_files_are_said_to_be_removed(client: Client, alice: Any, job: Job) -> None:
    job.__class__.objects.filter(pk=job.pk).update(cleaned_at=timezone.now())
    client.force_login(alice)
    assert paths(client, job) == []
    assert client.get(f"/api/v1/jobs/{job.pk}/files/out/model.txt").status_code == 404
    assert "removed on" in client.get(f"/jobs/{job.pk}/files/").content.decode()


def test_a_listing_of_many_files_is_cut_and_says_so(client: Client, alice: Any, vision: Any) -> None:
    job = make_job(alice, vision, attempt_number=1)
    folder: Path = leave_file(job, "out/first", b"").parent
    for number in range(2100):
        (folder / f"f{number:05}").touch()
    client.force_login(alice)
    answer = client.get(f"/api/v1/jobs/{job.pk}/files/").json()
    assert (len(answer["results"]), answer["is_cut"]) == (2000, True)
