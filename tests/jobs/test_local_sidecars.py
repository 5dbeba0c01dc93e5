"""The agent beside a pod's program on the local cluster: started before it, ended after it, and never in its way."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.cluster.manifests import AGENT
from jobs.cluster.observed import observe_attempt
from jobs.states import JobStatus, Reason
from tests.jobs.yard import Yard

AGENT_LOOKS = """
import os, signal, sys, time
if sys.argv[1:] == ["--setup"]:
    for name in ("TRAINHALL_OUTPUT_DIR", "TRAINHALL_CHECKPOINT_DIR"):
        os.makedirs(os.environ[name], exist_ok=True)
    sys.exit(0)
time.sleep(0.3)  # slow to listen
out = os.environ["TRAINHALL_OUTPUT_DIR"]
def last(*_):
    open(os.path.join(out, "last"), "w").write(open(os.path.join(out, "done")).read())
    sys.exit(0)
signal.signal(signal.SIGTERM, last)
print("rank", os.environ["JOB_COMPLETION_INDEX"], "since", float(os.environ["TRAINHALL_AGENT_SINCE"]) > 0, flush=True)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
while True:
    time.sleep(1)
"""
AGENT_HANGS = """
import signal, sys, time
if sys.argv[1:] != ["--setup"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)
"""
AGENT_COUNTS = """
import os, signal, sys, time
if sys.argv[1:] == ["--setup"]:
    for name in ("TRAINHALL_OUTPUT_DIR", "TRAINHALL_CHECKPOINT_DIR"):
        os.makedirs(os.environ[name], exist_ok=True)
    sys.exit(0)
out = os.environ["TRAINHALL_OUTPUT_DIR"]
def last(*_):
    open(os.path.join(out, "last"), "a").write("x")
    sys.exit(0)
signal.signal(signal.SIGTERM, last)
open(os.path.join(out, "lives"), "a").write(f"{os.getpid()} {os.environ['TRAINHALL_AGENT_SINCE']}\\n")
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
while True:
    time.sleep(1)
"""
AGENT_EATS = """
import sys, time
if sys.argv[1:] != ["--setup"]:
    held = bytearray(b"x") * (96 * 2**20)
    print("full", flush=True)
    while True:
        time.sleep(1)
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path)
    yield yard
    yard.close()


def with_agent(yard: Yard, script: str) -> None:
    (yard.sdk / "trainhall" / "agent.py").write_text(script)


def test_it_looks_a_last_time_when_the_program_has_ended(yard: Yard) -> None:
    with_agent(yard, AGENT_LOOKS)
    ref = yard.start('echo hello > "$TRAINHALL_OUTPUT_DIR/done"; echo bye')
    seen = yard.end_of(ref)
    assert (seen.status, yard.text(ref)) == (JobStatus.SUCCEEDED, "bye")
    [last] = yard.root.glob("**/out/last")
    assert last.read_text() == "hello\n"  # also though it was told before it listened
    assert (yard.folder(ref).pod("worker-0").path / f"{AGENT}.log").read_text() == "rank 0 since True\n"
    assert yard.processes_of(ref) == []


def lives(yard: Yard) -> list[list[str]]:
    return [line.split() for path in yard.root.glob("**/out/lives") for line in path.read_text().splitlines()]


def test_one_that_was_killed_is_started_again(yard: Yard) -> None:
    with_agent(yard, AGENT_COUNTS)
    ref = yard.start('until [ -e "$TRAINHALL_OUTPUT_DIR/enough" ]; do sleep 0.05; done')
    for count in (1, 2, 3):
        yard.wait(lambda wanted=count: len(lives(yard)) == wanted)
        if count < 3:
            os.kill(int(lives(yard)[-1][0]), signal.SIGKILL)
    [out] = yard.root.glob("**/out")
    (out / "enough").touch()
    assert yard.end_of(ref).status == JobStatus.SUCCEEDED
    assert len({pid for pid, _since in lives(yard)}) == 3
    assert len({since for _pid, since in lives(yard)}) == 1, "what it watches began with the first"
    assert (out / "last").read_text() == "x"
    assert "had died" in (yard.folder(ref).pod("worker-0").path / f"{AGENT}.log").read_text()
    assert yard.processes_of(ref) == []


def test_one_that_died_just_before_the_end_still_looks_a_last_time(yard: Yard) -> None:
    with_agent(yard, AGENT_COUNTS)
    wait = 'until [ -e "$TRAINHALL_OUTPUT_DIR/lives" ]; do sleep 0.05; done; '
    ref = yard.start(wait + 'kill -9 $(cut -d" " -f1 "$TRAINHALL_OUTPUT_DIR/lives")')
    assert yard.end_of(ref).status == JobStatus.SUCCEEDED
    [last] = yard.root.glob("**/out/last")
    assert (last.read_text(), len(lives(yard))) == ("x", 2)


def test_one_that_always_dies_is_started_ever_less_often(yard: Yard) -> None:
    with_agent(yard, "import sys\nif sys.argv[1:] != ['--setup']:\n    sys.exit('broken')\n")
    ref = yard.start("sleep 3.2")
    assert yard.end_of(ref).status == JobStatus.SUCCEEDED
    said = (yard.folder(ref).pod("worker-0").path / f"{AGENT}.log").read_text()
    assert 2 <= said.count("broken") <= 4  # after 0.5 and 1 more second, and a last time; each of them may be late


def test_one_that_hangs_is_killed_and_changes_no_outcome(yard: Yard) -> None:
    with_agent(yard, AGENT_HANGS)
    ref = yard.start("exit 3")
    seen = yard.end_of(ref)
    assert (seen.reason, seen.exit_code) == (Reason.NON_ZERO_EXIT, 3)
    assert yard.processes_of(ref) == []


def test_stop_now_does_not_wait_for_it(yard: Yard) -> None:
    with_agent(yard, AGENT_HANGS)
    ref = yard.start("echo on; sleep 60")
    yard.wait_for_line(ref, "on")
    yard.cluster.kill(ref, person=None)
    yard.end_of(ref)
    assert yard.processes_of(ref) == []


def test_its_memory_is_not_the_jobs(yard: Yard) -> None:
    with_agent(yard, AGENT_EATS)
    log = "pods/worker-0/agent.log"
    ref = yard.start(
        f'until grep -q full "{yard.root}"/*/*/{log}; do sleep 0.05; done; sleep 0.5', memory_bytes=64 * 2**20
    )
    assert yard.end_of(ref).status == JobStatus.SUCCEEDED


def test_a_job_runs_without_it_where_it_cannot_start(yard: Yard) -> None:
    with_agent(yard, "import sys\nif sys.argv[1:] != ['--setup']:\n    sys.exit('broken')\n")
    assert yard.run("sleep 0.5").status == JobStatus.SUCCEEDED


@pytest.mark.parametrize(
    "state",
    [
        {"running": {}},
        {"terminated": {"exitCode": 143, "reason": "Error"}},
        {"waiting": {"reason": "CrashLoopBackOff"}},
    ],
)
def test_on_a_real_cluster_its_state_is_no_setup(yard: Yard, state: dict[str, Any]) -> None:
    """Neither does the pod still set up while it runs, nor did setup fail where it ended badly."""
    ref = yard.start("exit 3")
    yard.end_of(ref)
    job, [pod] = yard.raw(ref)
    for status in pod["status"]["initContainerStatuses"]:
        if status["name"] == AGENT:
            status["state"] = state
    assert observe_attempt(job, [pod]).reason == Reason.NON_ZERO_EXIT
