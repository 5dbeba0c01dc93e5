"""What a follower of lines is told first, and then, is bounded in bytes as well as in lines."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.cluster.port import RawLine
from jobs.logs.lines import store_lines
from jobs.logs.stretches import PAGE_BYTES
from jobs.models import Worker
from metrics import snapshot

pytestmark = pytest.mark.django_db

LONG = "x" * 2**18


@pytest.fixture
def worker(job: Any) -> Worker:
    return Worker.objects.get_or_create(attempt=job.attempts.get(), role="worker", index=0)[0]


def write(worker: Worker, count: int, text: str) -> None:
    first = worker.log_number + 1
    lines = [RawLine(number, 1000.0, text) for number in range(first, first + count)]
    store_lines(worker.attempt, worker, lines)


def size(lines: list[dict[str, Any]]) -> int:
    return sum(len(line["text"]) for line in lines)


def test_the_first_lines_are_the_newest_that_fit(job: Any, worker: Worker) -> None:
    for _block in range(8):
        write(worker, 4, LONG)
    now, found = snapshot.lines(job.pk, "")
    assert now == 32
    assert found["lines"][-1]["seq"] == 32
    assert size(found["lines"]) == PAGE_BYTES


def test_lines_that_came_meanwhile_are_told_as_a_change_while_they_fit(job: Any, worker: Worker) -> None:
    for _block in range(8):
        write(worker, 4, LONG)
    now, lines = snapshot.lines_since(job.pk, 20)
    assert now == 32 and lines is not None
    assert [line["seq"] for line in lines] == list(range(21, 33))
    assert snapshot.lines_since(job.pk, 1) == (32, None)
    assert snapshot.lines_since(job.pk, 32) == (32, [])
