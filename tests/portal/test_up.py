"""`manage.py up` for real: its processes die, are stopped and killed, and no job is lost."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.portal.running import Portal, until

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="trainhall up "))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def portal(folder: Path) -> Iterator[Portal]:
    portal = Portal(folder / "data", from_nothing=True)
    portal.start()
    yield portal
    portal.kill_all()


def test_what_dies_is_started_again(portal: Portal) -> None:
    for words in ("valkey-server", "uvicorn", "celery -A portal worker", "celery -A portal beat", "watch_cluster"):
        os.kill(portal.process_of(words), signal.SIGKILL)
    until(lambda: not portal.is_ready, seconds=10, what="somebody notices")
    until(lambda: portal.is_ready, seconds=60, what="all are back")
    job = portal.submit("echo back")
    portal.wait_for(job, "succeeded")
    assert "worker ended (exit -9) and is started again" in portal.output


def test_a_second_portal_in_the_same_folder_is_refused_in_a_sentence(portal: Portal) -> None:
    second = Portal(portal.data)
    answer = second.manage("up")
    assert answer.returncode == 1
    assert answer.stderr.startswith("Trainhall already runs from this folder")
    same_port = Portal(portal.data.with_name("other"), port=portal.port).manage("up")
    assert same_port.returncode == 1
    assert f"Port {portal.port} cannot be used" in same_port.stderr
    assert "Traceback" not in answer.stderr + same_port.stderr
    assert portal.is_ready


def test_ctrl_c_queues_running_jobs_again_and_the_next_start_runs_them(portal: Portal) -> None:
    job = portal.submit("trap '' TERM; sleep 5; echo through")
    portal.wait_for(job, "running")
    assert portal.interrupt() < 10
    assert portal.process is not None
    assert portal.process.returncode == 0
    assert portal.processes() == {}
    assert "1 running job is queued again." in portal.output

    portal.start()
    found = portal.wait_for(job, "succeeded")
    assert found["attempt"] == 2
    assert found["attempts"][0]["reason"]["code"] == "Disruption"


def test_a_killed_supervisor_leaves_only_the_pods_and_they_are_adopted(portal: Portal) -> None:
    job = portal.submit("sleep 12; echo through")
    portal.wait_for(job, "running")
    assert portal.process is not None
    worker = portal.process_of("celery -A portal worker")
    children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    assert children
    for child in children:
        os.kill(int(child), signal.SIGSTOP)  # as if deep in a task: it hears no pipe being closed
    portal.process.kill()
    portal.process.wait()
    until(
        lambda: not [line for line in portal.processes().values() if is_portals(line)], seconds=5, what="all are gone"
    )
    assert portal.processes(), "the pod goes on"

    portal.start()
    found = portal.wait_for(job, "succeeded")
    assert found["attempt"] == 1


def test_a_second_ctrl_c_hurries(portal: Portal) -> None:
    job = portal.submit("trap '' TERM; sleep 60")
    portal.wait_for(job, "running")
    assert portal.process is not None
    portal.process.send_signal(signal.SIGINT)
    until(lambda: "Stopping" in portal.output.splitlines()[-1], seconds=5, what="the stop begins")
    assert portal.interrupt() < 4
    assert portal.processes() == {}


def is_portals(line: str) -> bool:
    return any(word in line for word in ("manage.py", "uvicorn", "celery", "postgres", "valkey"))
