"""F10: what a real API server held, recorded by tests/cluster/test_watch_scenarios.py, and what it means for a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.cluster.observed import Observed, observe_attempt
from jobs.states import JobStatus

RECORDED = {path.stem: path for path in sorted((Path(__file__).parent.parent / "data" / "observed").glob("*.json"))}


def read(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RECORDED[name].read_text())
    return record


def test_there_are_at_least_eighty() -> None:
    assert len(RECORDED) >= 80


def observe(record: dict[str, Any], *, events: bool = True, turned: bool = False) -> Observed:
    step = -1 if turned else 1
    return observe_attempt(
        record["job"],
        record["pods"][::step],
        events=record["events"][::step] if events else (),
        deleted=record["deleted"],
        stopped=record["stopped"],
    )


@pytest.mark.parametrize("name", RECORDED)
def test_state_reason_and_exit_code(name: str) -> None:
    record = read(name)
    seen = observe(record)
    found = {"status": seen.status, "reason_code": seen.reason, "exit_code": seen.exit_code, "ended": seen.ended}
    assert found == record["expected"], seen.text
    assert seen.pods_gone or not seen.ended, "quota is held as long as anything of it runs"
    assert seen.text or seen.status in (JobStatus.RUNNING, None), "what does not run says why"


@pytest.mark.parametrize("name", RECORDED)
def test_without_its_events_and_in_another_order_it_is_never_taken_for_better(name: str) -> None:
    record = read(name)
    whole, silent = observe(record), observe(record, events=False)
    assert observe(record, turned=True) == whole
    assert (silent.status, silent.ended, silent.exit_code) == (whole.status, whole.ended, whole.exit_code)
