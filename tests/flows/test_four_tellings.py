"""The digits training told in five ways gives the same curves (D7): the SDK, JSON lines, text, event files, and a CSV file.

A whole portal runs the jobs on its local cluster. Those beside the SDK's import nothing of ours.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.portal.running import CHECKOUT, Portal, until

sys.path.insert(0, str(CHECKOUT / "sdk"))
from trainhall import Client

pytestmark = pytest.mark.long

KEYS = {"train/loss", "lr", "val/accuracy", "val/loss", "epoch"}
EPOCHS, STEPS = 5, 5 * 23
SOURCES = {"numpy": "sdk", "json": "stdout", "text": "stdout", "tensorboard": "tensorboard", "csv": "file"}


@pytest.fixture(scope="module")
def portal() -> Iterator[Portal]:
    folder = Path(tempfile.mkdtemp(prefix="trainhall-tellings-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    portal = Portal(folder / "data")
    try:
        portal.start()
        yield portal
    finally:
        if not portal.has_ended:
            portal.interrupt()
        portal.kill_all()
        shutil.rmtree(folder, ignore_errors=True)


Curve = list[tuple[int, float]]


def curves(portal: Portal, job: str) -> dict[str, Curve]:
    names = "&".join(f"key={key}" for key in sorted(KEYS))
    found = portal.rest(f"jobs/{job}/series/?buckets=0&{names}")["series"]
    assert len({one["key"] for one in found}) == len(found), "one attempt, one rank"
    return {one["key"]: list(zip(one["step"], one["value"], strict=True)) for one in found}


@pytest.fixture(scope="module")
def jobs(portal: Portal) -> dict[str, str]:
    """All of them, ended well."""
    client = Client(f"http://127.0.0.1:{portal.port}", portal.token)
    code = client.upload(str(CHECKOUT / "examples"))
    found = {
        way: client.submit(
            namespace="vision",
            name=f"digits-{way}",
            runtime="numpy",
            code={"upload": code},
            command=f"python digits_{way}.py --epochs {EPOCHS} --seed 7 --rate 0",
            resources={"cpus": "200m", "memory": "256Mi"},
        ).id
        for way in SOURCES
    }
    for job in found.values():
        portal.wait_for(job, "succeeded", seconds=180)
    return found


def test_equal_steps_and_equal_values(portal: Portal, jobs: dict[str, str]) -> None:
    told = {way: curves(portal, job) for way, job in jobs.items()}
    for way, found in told.items():
        assert set(found) == KEYS, way
    exact = told.pop("numpy")
    assert [step for step, _value in exact["train/loss"]] == list(range(1, STEPS + 1))
    assert [value for _step, value in exact["epoch"]] == list(range(1, EPOCHS + 1))
    assert exact["val/accuracy"][-1][1] > 0.8
    for way, found in told.items():
        for key in KEYS:
            assert [(step, repr(float(value))) for step, value in found[key]] == [
                (step, repr(float(value))) for step, value in exact[key]
            ], (way, key)


def test_each_says_by_which_door_it_came(portal: Portal, jobs: dict[str, str]) -> None:
    for way, job in jobs.items():
        listed = portal.rest(f"jobs/{job}/series/")["series"]
        assert {one["source"] for one in listed if one["key"] in KEYS} == {SOURCES[way]}, way
        assert not [one["key"] for one in listed if one["key"].endswith(")")], "nothing is told twice"


def test_a_script_that_writes_to_runs_is_found_while_it_runs(portal: Portal) -> None:
    script = """
import time
from tensorboardX import SummaryWriter

writer = SummaryWriter(flush_secs=1)
for step in range(100):
    writer.add_scalar("loss", 1 / (step + 1), step)
    time.sleep(0.2)
"""
    job = portal.rest(
        "jobs/",
        {
            "namespace": "vision",
            "runtime": "numpy",
            "command": "python write.py",
            "code": {"files": {"write.py": script}},
            "stop_grace": "1s",
        },
    )["id"]

    def points() -> Any:
        return [one for one in portal.rest(f"jobs/{job}/series/")["series"] if one["key"] == "loss"]

    until(points, seconds=60, what="points of an event file arrive")
    assert portal.rest(f"jobs/{job}/")["status"] == "running"
    portal.rest(f"jobs/{job}/cancel/", {})
    portal.wait_for(job, "cancelled", seconds=60)


def test_the_last_event_of_a_short_job_is_read(portal: Portal) -> None:
    script = """
from tensorboardX import SummaryWriter

with SummaryWriter() as writer:
    writer.add_scalar("only", 0.5, 3)
"""
    job = portal.rest(
        "jobs/",
        {
            "namespace": "vision",
            "runtime": "numpy",
            "command": "python write.py",
            "code": {"files": {"write.py": script}},
        },
    )["id"]
    portal.wait_for(job, "succeeded", seconds=60)
    [only] = portal.rest(f"jobs/{job}/series/?key=only")["series"]
    assert (only["step"], only["value"]) == ([3], [0.5])


def agent_of(job: str) -> int | None:
    """The process of the agent beside a job's program, if one lives."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words, env = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
        except OSError:
            continue
        if b"trainhall.agent\0" in words and f"TRAINHALL_JOB_ID={job}\0".encode() in env:
            return int(folder.name)
    return None


def test_an_agent_that_is_killed_loses_and_doubles_nothing(portal: Portal) -> None:
    script = """
import os, sys, time
from tensorboardX import SummaryWriter

step = 0
with SummaryWriter(flush_secs=0.2) as writer, open("metrics.csv", "w", buffering=1) as table:
    table.write("step,in_table\\n")
    while not os.path.exists(os.environ["TRAINHALL_OUTPUT_DIR"] + "/enough") or step < 200:
        writer.add_scalar("in_events", step / 7, step)
        table.write(f"{step},{step / 7}\\n")
        step += 1
        time.sleep(0.02)
print("rows", step)
"""
    job = portal.rest(
        "jobs/",
        {
            "namespace": "vision",
            "runtime": "numpy",
            "command": "python write.py",
            "code": {"files": {"write.py": script}},
            "time_limit": "5m",
        },
    )["id"]

    def last_step(key: str) -> int:
        found = [one for one in portal.rest(f"jobs/{job}/series/")["series"] if one["key"] == key]
        return int(found[0]["last"]["step"]) if found else -1

    killed: set[int] = set()
    for _death in range(3):
        reached = {key: last_step(key) for key in ("in_events", "in_table")}
        until(
            lambda before=reached: all(last_step(key) > step + 100 for key, step in before.items()),
            seconds=90,
            what="points of both files arrive",
        )
        pid = agent_of(job)
        assert pid is not None and pid not in killed
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)
        until(lambda: agent_of(job) not in (None, *killed), seconds=30, what="an agent takes over")
    [out] = portal.data.glob(f"**/{job}/out")
    (out / "enough").touch()
    portal.wait_for(job, "succeeded", seconds=60)
    rows = next(int(line["text"][5:]) for line in portal.rest(f"jobs/{job}/logs/")["lines"] if "rows" in line["text"])
    for key, agrees in (("in_table", 0.0), ("in_events", 1e-6)):
        [one] = portal.rest(f"jobs/{job}/series/?buckets=0&key={key}")["series"]
        assert one["step"] == list(range(rows)), key
        assert all(abs(value - step / 7) <= agrees * step for step, value in enumerate(one["value"])), key
        listed = [one for one in portal.rest(f"jobs/{job}/series/")["series"] if one["key"] == key]
        assert [one["count"] for one in listed] == [rows], key


def test_the_examples_are_documents_that_the_portal_takes() -> None:
    for way in ("json", "text", "tensorboard", "csv"):
        assert f"digits_{way}.py" in Path(CHECKOUT, "examples", "jobs", f"digits_{way}.yaml").read_text()
