"""The agent beside a program: what is written into event files arrives while it runs, and to the last record."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from door import Door
from tensorboardX import SummaryWriter
from trainhall.agent import roots

Agent = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def agent(tmp_path: Path, job_env: dict[str, str]) -> Iterator[Agent]:
    started: list[subprocess.Popen[str]] = []

    def start(**env: str) -> subprocess.Popen[str]:
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "tb").mkdir(exist_ok=True)
        more = {
            "TRAINHALL_TB_DIR": str(tmp_path / "tb"),
            "TRAINHALL_WORKSPACE": str(tmp_path / "work"),
            "TRAINHALL_AGENT_SINCE": "0",
            "JOB_COMPLETION_INDEX": "0",
        }
        child = subprocess.Popen(
            [sys.executable, "-m", "trainhall.agent"],
            env={**job_env, **more, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def until(question: Callable[[], Any]) -> None:
    end = time.monotonic() + 30
    while not question():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_points_arrive_while_the_program_still_writes(agent: Agent, tmp_path: Path, door: Door) -> None:
    agent()
    with SummaryWriter(str(tmp_path / "tb"), flush_secs=0.2) as writer:
        writer.add_scalar("train/loss", 0.5, 1)
        until(lambda: door.series().get((0, "train/loss")) == {1: 0.5})
        writer.add_scalar("train/loss", 0.25, 2)
        until(lambda: door.series().get((0, "train/loss")) == {1: 0.5, 2: 0.25})
    assert {batch["source"] for batch in door.batches.values()} == {"tensorboard"}
    assert {one["group"] for batch in door.batches.values() for one in batch["series"]} == {"train"}


def test_at_sigterm_it_looks_a_last_time(agent: Agent, tmp_path: Path, door: Door) -> None:
    child = agent(JOB_COMPLETION_INDEX="3")
    with SummaryWriter(str(tmp_path / "work" / "runs" / "first")) as writer:
        for step in range(5000):
            writer.add_scalar("loss", step, step)
    child.send_signal(signal.SIGTERM)
    said, _errors = child.communicate(timeout=60)
    assert (child.returncode, said) in ((0, ""), (-signal.SIGTERM, ""))
    if child.returncode == 0:  # else it had not begun to listen: the local cluster holds the signal back until then
        assert door.series() == {(3, "loss"): {step: float(step) for step in range(5000)}}


def test_a_signal_that_was_held_back_is_heard(agent: Agent, tmp_path: Path, door: Door) -> None:
    with SummaryWriter(str(tmp_path / "tb")) as writer:
        writer.add_scalar("loss", 0.5, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        child = agent()  # inherits it
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    child.send_signal(signal.SIGTERM)
    said, _errors = child.communicate(timeout=60)
    assert (child.returncode, said) == (0, "")
    assert door.series() == {(0, "loss"): {1: 0.5}}


def test_only_the_first_worker_reads_what_all_share() -> None:
    env = {"TRAINHALL_TB_DIR": "/runs/x/tb", "TRAINHALL_OUTPUT_DIR": "/runs/x/out", "TRAINHALL_WORKSPACE": "/w/"}
    assert roots(env, 0) == ["/runs/x/tb", "/runs/x/out", "/w"]
    assert roots(env, 1) == ["/w"]
    assert roots({}, 1) == ["/workspace"]


def test_outside_a_job_it_says_so(agent: Agent) -> None:
    child = agent(TRAINHALL_JOB_ID="")
    said, _errors = child.communicate(timeout=60)
    assert (child.returncode, said) == (2, "trainhall agent: not inside a job, nothing to watch.\n")


def test_files_that_are_no_event_files_do_no_harm(agent: Agent, tmp_path: Path, door: Door) -> None:
    child = agent()
    (tmp_path / "tb" / "events.out.tfevents.1.x").write_bytes(b"\xff" * 5000)
    with SummaryWriter(str(tmp_path / "work"), flush_secs=0.2) as writer:
        writer.add_scalar("loss", 0.5, 1)
        until(lambda: any(key == "loss" or key.endswith("/loss") for _rank, key in door.series()))
    assert child.poll() is None


def test_metric_files_arrive_by_a_door_of_their_own(agent: Agent, tmp_path: Path, door: Door) -> None:
    child = agent()
    with open(tmp_path / "work" / "metrics.csv", "w") as file:
        file.write("epoch,step,train_loss,val_loss\n0,1,0.5,\n")
        file.flush()
        until(lambda: (0, "train_loss") in door.series())
        file.write("0,2,,0.25\n")
    (tmp_path / "out" / "trainer_log.jsonl").write_text('{"current_steps": 3, "total_steps": 9, "lr": 0.1}\n')
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert door.series() == {
        (0, "train_loss"): {1: 0.5},
        (0, "val_loss"): {2: 0.25},
        (0, "epoch"): {1: 0.0, 2: 0.0},
        (0, "lr"): {3: 0.1},
    }
    assert {batch["source"] for batch in door.batches.values()} == {"file"}
    told = [batch["progress"] for batch in door.batches.values() if batch.get("progress")]
    assert told == [{"step": 3, "total": 9}]


def test_one_that_takes_over_tells_nothing_twice_and_leaves_nothing_out(
    agent: Agent, tmp_path: Path, door: Door
) -> None:
    path = tmp_path / "out" / "metrics.jsonl"
    with SummaryWriter(str(tmp_path / "tb"), flush_secs=0.1) as writer, open(path, "w", buffering=1) as file:
        for step in range(400):
            if step in (0, 100, 200):
                child = agent(TRAINHALL_AGENT_SINCE=str(time.time() if step else 0))
            writer.add_scalar("a", step, step)
            file.write(f'{{"step": {step}, "b": {step}}}\n')
            if step in (60, 160):
                until(lambda number=step: door.series().get((0, "b"), {}).get(number) is not None)
                time.sleep(2.5)  # time enough to keep where it stands
            if step in (99, 199):
                child.kill()
                child.wait()
            if step == 300:
                until(lambda: 300 in door.series().get((0, "b"), {}))
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert door.series() == {(0, name): {step: float(step) for step in range(400)} for name in "ab"}
    sent = [step for batch in door.batches.values() for one in batch["series"] for step in one["step"]]
    assert len(sent) < 1.5 * 800, "what was taken is not sent again"


def test_a_state_that_somebody_else_wrote_counts_as_none(agent: Agent, tmp_path: Path, door: Door) -> None:
    for text in ("{}", "[1]", "\xff", '{"since": "x"}', '{"events": 3, "metrics": {}}', '{"events": {"first": 1}}'):
        (tmp_path / ".trainhall-agent-b2c3d4f5g6-1-0.json").write_text(text)
        door.batches.clear()
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "work" / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
        child = agent()
        until(lambda: door.series() == {(0, "loss"): {1: 0.5}})
        child.kill()
        child.wait()
