"""Lines that the watcher stored become series, whatever happens to the watcher or the door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import OperationalError

from jobs.cluster.port import RawLine
from jobs.logs.lines import LogFollower, read_lines
from jobs.models import JobFeed, Worker
from metrics import ingest, store
from metrics.doors import sink
from metrics.doors.sink import StdoutDoor
from metrics.models import MetricKey, PointBatch
from tests.metrics.makers import report

pytestmark = pytest.mark.django_db


class Pod:
    """A cluster with one worker, whose lines the test writes."""

    def __init__(self, job: Any, *, index: int = 0) -> None:
        self.worker, _new = Worker.objects.get_or_create(attempt=job.attempts.get(), role="worker", index=index)
        self.written: list[str] = []

    def logs(self, _ref: Any, _worker: str, *, after: int, limit: int, positions: Any) -> Sequence[RawLine]:
        return [
            RawLine(number, 1000.0 + number, text)
            for number, text in enumerate(self.written, start=1)
            if after < number <= after + limit
        ]

    def write(self, *lines: str, door: StdoutDoor | None) -> None:
        self.written += lines
        worker = Worker.objects.select_related("attempt__job").get(pk=self.worker.pk)
        LogFollower(self, door).follow(worker.attempt, [worker])  # type: ignore[arg-type]

    def end(self, door: StdoutDoor) -> None:
        LogFollower(self, door).finish([self.worker])  # type: ignore[arg-type]


def steps(first: int, last: int) -> list[str]:
    return [f"step={step} loss={10 / step!r}" for step in range(first, last + 1)]


def series(job: Any) -> dict[str, dict[int, float]]:
    keys = {one["key"] for one in store.list_series(job.pk)}
    return {
        one.id.key: dict(zip(one.run.step.tolist(), one.run.value.tolist(), strict=True))  # type: ignore[union-attr]
        for one in store.read_series(job.pk, keys=keys)
    }


def expected(first: int, last: int) -> dict[int, float]:
    return {step: 10 / step for step in range(first, last + 1)}


@pytest.fixture
def pod(job: Any) -> Pod:
    return Pod(job)


def test_lines_become_a_series_with_its_source(job: Any, pod: Pod) -> None:
    door = StdoutDoor()
    pod.write(*steps(1, 2), door=door)
    assert series(job) == {}
    pod.write(*steps(3, 5), door=door)
    assert series(job) == {"loss": expected(1, 5)}
    assert {one["key"]: one["source"] for one in store.list_series(job.pk)} == {"loss": "stdout"}
    [times] = store.read_series(job.pk, keys=["loss"])
    assert times.run is not None and times.run.time.tolist() == [1001, 1002, 1003, 1004, 1005]


def test_each_worker_has_a_line_of_its_own(job: Any, pod: Pod) -> None:
    door, other = StdoutDoor(), Pod(job, index=1)
    pod.write(*steps(1, 3), door=door)
    other.write(*steps(1, 3), door=door)
    assert [(one["key"], one["rank"]) for one in store.list_series(job.pk)] == [("loss", 0), ("loss", 1)]


def test_a_new_watcher_goes_on_where_the_old_one_stopped(job: Any, pod: Pod) -> None:
    pod.write("step=1", "acc: 1.0", "step=2", "acc: 2.0", door=StdoutDoor())
    pod.write("step=3", door=None)  # stored, and the watcher died before the door read it
    pod.write("acc: 3.0", door=StdoutDoor())
    assert series(job) == {"acc": {1: 1.0, 2: 2.0, 3: 3.0}}


def test_what_a_crash_kept_from_the_door_is_read_at_the_start(job: Any, pod: Pod) -> None:
    pod.write(*steps(1, 4), door=StdoutDoor())
    pod.write(*steps(5, 6), door=None)
    door = StdoutDoor()
    door.resume("local")
    assert series(job) == {"loss": expected(1, 6)}
    before = PointBatch.objects.count()
    StdoutDoor().resume("local")
    assert PointBatch.objects.count() == before  # the same batch, known by its id
    assert door.failures == 0


def test_only_so_many_lines_are_read_again(job: Any, pod: Pod, monkeypatch: Any) -> None:
    monkeypatch.setattr(sink, "READ_AGAIN", 10)
    monkeypatch.setattr(sink, "MAX_LIMIT", 10)
    pod.write("step=7", *["acc: 1.0"] * 30, door=None)
    pod.write("acc: 1.0", door=StdoutDoor())
    assert min(series(job)["acc"]) > 7  # the step is forgotten, so lines are counted


def test_an_error_in_the_door_stops_no_line(job: Any, pod: Pod, monkeypatch: Any, caplog: Any) -> None:
    def broken(*_arguments: Any) -> Any:
        raise ZeroDivisionError

    door = StdoutDoor()
    monkeypatch.setattr(sink, "read_line", broken)
    pod.write("step=1 loss=1", door=door)
    assert [line["text"] for line in read_lines(job.pk)] == ["step=1 loss=1"]
    assert door.failures == 1
    assert job.pk in caplog.text


def test_points_wait_while_the_database_is_away(job: Any, pod: Pod, monkeypatch: Any) -> None:
    door, accept = StdoutDoor(), ingest.accept

    def away(*_arguments: Any, **_more: Any) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(ingest, "accept", away)
    pod.write(*steps(1, 4), door=door)
    monkeypatch.setattr(ingest, "accept", accept)
    assert series(job) == {}
    pod.write(*steps(5, 5), door=door)
    assert series(job) == {"loss": expected(1, 5)}


def test_no_more_than_200_names(job: Any, pod: Pod) -> None:
    pod.write(
        *[f"step={step} " + " ".join(f"k{key}a=1" for key in range(150)) for step in (1, 2, 3)], door=StdoutDoor()
    )
    pod.write(
        *[f"step={step} " + " ".join(f"j{key}a=1" for key in range(150)) for step in (4, 5, 6)], door=StdoutDoor()
    )
    assert MetricKey.objects.filter(job=job, source="stdout").count() == sink.MOST_KEYS


# Two doors, one name


def exact(first: int, last: int) -> dict[str, list[tuple[int, Any]]]:
    return {"loss": [(step, 10 / step) for step in range(first, last + 1)]}


def test_the_same_values_are_left_to_the_sdk(job: Any, pod: Pod) -> None:
    report(job, exact(1, 6))
    before = PointBatch.objects.count()
    pod.write(*[f"step={step} loss={10 / step:.3f}" for step in range(1, 7)], door=StdoutDoor())
    assert series(job) == {"loss": expected(1, 6)}
    assert PointBatch.objects.count() == before


def test_other_values_are_a_second_series_with_nothing_missing(job: Any, pod: Pod) -> None:
    report(job, exact(1, 6))
    door = StdoutDoor()
    pod.write(*[f"step={step} loss=7.5" for step in range(1, 4)], door=door)
    pod.write(*[f"step={step} loss=7.5" for step in range(4, 7)], door=door)
    assert series(job) == {"loss": expected(1, 6), "loss (stdout)": dict.fromkeys(range(1, 7), 7.5)}
    assert {one["key"]: one["source"] for one in store.list_series(job.pk)} == {
        "loss": "sdk",
        "loss (stdout)": "stdout",
    }


def test_text_waits_for_the_sdk_to_tell_the_same_steps(job: Any, pod: Pod) -> None:
    door = StdoutDoor()
    report(job, exact(1, 1))
    pod.write(*[f"step={step} loss=7.5" for step in range(2, 7)], door=door)
    assert set(series(job)) == {"loss"}
    report(job, exact(2, 6))
    pod.write("step=7 loss=7.5", door=door)
    assert series(job)["loss (stdout)"] == dict.fromkeys(range(2, 8), 7.5)


def test_the_sdk_takes_over_a_name_that_text_had_first(job: Any, pod: Pod) -> None:
    door = StdoutDoor()
    pod.write(*steps(1, 3), door=door)
    report(job, {"loss": [(step, 1.0) for step in range(4, 7)]})
    pod.write(*steps(4, 6), door=door)
    assert series(job) == {"loss": expected(1, 3) | dict.fromkeys((4, 5, 6), 1.0), "loss (stdout)": expected(4, 6)}
    assert MetricKey.objects.get(job=job, key="loss").source == "sdk"


def test_what_waits_is_settled_when_the_worker_ends(job: Any, pod: Pod) -> None:
    door = StdoutDoor()
    report(job, exact(1, 1))
    pod.write(*steps(1, 6), door=door)
    assert set(series(job)) == {"loss"}
    pod.end(door)
    assert series(job) == {"loss": expected(1, 1), "loss (stdout)": expected(1, 6)}
    pod.write("step=7 loss=7.5", door=door)  # lines that came late wait for nobody
    assert series(job)["loss (stdout)"] == expected(1, 6) | {7: 7.5}


def test_what_the_sdk_has_told_too_needs_no_second_series_at_the_end(job: Any, pod: Pod) -> None:
    door = StdoutDoor()
    report(job, exact(1, 2))
    pod.write(*steps(1, 2), "loss=5.0", door=door)  # the third time the name comes, and still step 2
    pod.end(door)
    assert series(job) == {"loss": expected(1, 2)}


def test_the_end_is_sent_again_when_the_database_was_away(job: Any, pod: Pod, monkeypatch: Any) -> None:
    door, accept = StdoutDoor(), ingest.accept
    report(job, exact(1, 1))
    pod.write(*steps(1, 6), door=door)

    def away(*_arguments: Any, **_more: Any) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(ingest, "accept", away)
    pod.end(door)
    assert door.failures == 1
    monkeypatch.setattr(ingest, "accept", accept)
    pod.end(door)
    assert series(job)["loss (stdout)"] == expected(1, 6)


def test_steps_that_the_sdk_has_passed_over_are_not_waited_for(job: Any, pod: Pod) -> None:
    door = StdoutDoor()
    report(job, {"loss": [(1, 10.0), (6, 10 / 6), (7, 10 / 7)]})
    pod.write(*steps(1, 7), door=door)
    assert series(job)["loss (stdout)"] == expected(1, 7)


def test_too_many_waiting_points_are_stored_and_none_is_lost(job: Any, pod: Pod, monkeypatch: Any) -> None:
    monkeypatch.setattr(sink, "MOST_UNDECIDED", 10)
    door = StdoutDoor()
    report(job, exact(1, 1))
    pod.write(*steps(2, 9), door=door)
    assert set(series(job)) == {"loss"}
    pod.write(*steps(10, 15), door=door)
    assert series(job)["loss (stdout)"] == expected(2, 15)


def test_a_worker_that_is_forgotten_leaves_what_had_waited(job: Any, pod: Pod, monkeypatch: Any) -> None:
    monkeypatch.setattr(sink, "MOST_WORKERS", 1)
    door, other = StdoutDoor(), Pod(job, index=1)
    report(job, exact(1, 1))
    pod.write(*steps(2, 6), door=door)
    other.write("nothing", door=door)
    assert series(job)["loss (stdout)"] == expected(2, 6)


def test_what_had_waited_for_long_is_read_again_by_a_new_watcher(job: Any, pod: Pod, monkeypatch: Any) -> None:
    monkeypatch.setattr(sink, "STORED_AGAIN", 5)
    report(job, exact(1, 1))
    pod.write(*steps(2, 6), *["nothing"] * 20, door=StdoutDoor())
    door = StdoutDoor()
    door.resume("local")
    pod.end(door)
    assert series(job)["loss (stdout)"] == expected(2, 6)


def test_progress_of_the_sdk_is_not_overwritten(job: Any, pod: Pod) -> None:
    door = StdoutDoor()
    pod.write("10%|█| 10/100 [00:01<00:09, 9.0it/s]", door=door)
    assert JobFeed.objects.get(pk=job.pk).progress["step"] == 10
    report(job, {}, progress={"step": 11, "total": 200})
    pod.written += [""] * 5
    pod.write("50%|█| 50/100 [00:05<00:05, 9.0it/s]", door=door)
    assert JobFeed.objects.get(pk=job.pk).progress["total"] == 200
