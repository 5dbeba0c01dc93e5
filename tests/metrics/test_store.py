"""What was accepted reads back, whatever the order of arrival, and sealing changes nothing that anyone can see."""

from __future__ import annotations

import itertools
import math
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.models import Attempt
from metrics import chunks, sealing, store
from metrics.arrivals import since
from metrics.models import Chunk, PointBatch
from tests.metrics.makers import make_job, report

pytestmark = pytest.mark.django_db
NOW = timedelta(0)


def seen(job: Any, **which: Any) -> dict[tuple[str, int, int], list[tuple[int, str]]]:
    """Everything that can be read, by series; values as text, so that NaN equals NaN."""
    keys = {one["key"] for one in store.list_series(job.pk)}
    return {
        tuple(one.id): list(zip(one.run.step.tolist(), map(str, one.run.value.tolist()), strict=True))  # type: ignore[misc,union-attr]
        for one in store.read_series(job.pk, keys=keys, all_attempts=True, **which)
    }


def summaries(job: Any) -> list[dict[str, Any]]:
    """The list of series, its numbers as text so that NaN equals NaN; a column of PostgreSQL has no -0.0, a body has."""
    found = store.list_series(job.pk)
    for one in found:
        one["last"]["value"] = str(one["last"]["value"] + 0.0)
    return found


values = st.one_of(st.floats(width=32), st.sampled_from([math.nan, math.inf, -math.inf]))
batches = st.lists(
    st.tuples(
        st.integers(0, 1),  # rank
        st.dictionaries(
            st.sampled_from(["loss", "acc"]),
            st.lists(st.tuples(st.integers(0, 40), values), min_size=1, max_size=12),
            min_size=1,
        ),
        st.booleans(),  # seal after it
    ),
    min_size=1,
    max_size=8,
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches)
def test_the_last_write_of_a_step_is_what_is_read(monkeypatch: Any, alice: Any, vision: Any, story: Any) -> None:
    """Small chunks, so that splitting and late points happen all the time."""
    monkeypatch.setattr(chunks, "FULL", 5)
    job = make_job(alice, vision)
    model: dict[tuple[str, int, int], dict[int, str]] = {}
    for rank, series, seal in story:
        report(job, {key: [(step, _word(value)) for step, value in pairs] for key, pairs in series.items()}, rank=rank)
        for key, pairs in series.items():
            model.setdefault((key, rank, 1), {}).update({step: str(float(value)) for step, value in pairs})
        before = summaries(job)
        if seal:
            sealing.seal(job.pk, 1, leave=NOW)
            assert summaries(job) == before
        assert seen(job) == {series_id: sorted(points.items()) for series_id, points in model.items()}
    for one in store.list_series(job.pk):
        points = model[one["key"], one["rank"], one["attempt"]]
        finite = [float(value) for value in points.values() if math.isfinite(float(value))]
        assert (one["count"], one["bad"]) == (len(points), len(points) - len(finite))
        assert (one["min"], one["max"]) == (min(finite, default=None), max(finite, default=None))
        assert (one["first_step"], one["last_step"]) == (min(points), max(points))
    _chunks_are_sound(job)


def _word(value: float) -> Any:
    return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")


def _chunks_are_sound(job: Any) -> None:
    """Sorted, never overlapping, never more than full, and only the newest of a series open."""
    rows = list(Chunk.objects.filter(job=job).order_by("key", "rank", "first_step"))
    for row in rows:
        run = chunks.decompress(row.body, row.count)
        assert row.count <= chunks.FULL and (run.step[1:] > run.step[:-1]).all()
    for left, right in itertools.pairwise(rows):
        if (left.key, left.rank) == (right.key, right.rank):
            assert left.last_step < right.first_step and not left.open


def test_sealing_fills_chunks_and_leaves_one_open(job: Any) -> None:
    for number in range(5):
        report(job, {"loss": [(number * 1000 + step, 1.0) for step in range(1000)]})
        sealing.seal(job.pk, 1, leave=NOW)
    assert list(Chunk.objects.order_by("first_step").values_list("count", "open")) == [(4096, False), (904, True)]
    assert not PointBatch.objects.filter(body__isnull=False).exists() and PointBatch.objects.count() == 5


def test_the_newest_rows_stay_open_a_moment(job: Any) -> None:
    report(job, {"loss": [(1, 1.0)]})
    assert sealing.seal(job.pk, 1) == 0
    PointBatch.objects.update(received_at=timezone.now() - timedelta(seconds=3))
    report(job, {"loss": [(2, 1.0)]})
    assert sealing.seal(job.pk, 1) == 1


def test_an_attempt_is_due_by_rows_by_age_and_by_its_end(job: Any, alice: Any, vision: Any) -> None:
    report(job, {"loss": [(1, 1.0)]})
    assert sealing.due() == []
    PointBatch.objects.update(received_at=timezone.now() - timedelta(seconds=61))
    assert sealing.due() == [(job.pk, 1)]
    PointBatch.objects.update(received_at=timezone.now())
    Attempt.objects.filter(job=job).update(ended_at=timezone.now())
    assert sealing.due() == [(job.pk, 1)]
    busy = make_job(alice, vision)
    for number in range(sealing.SEAL_ROWS):
        report(busy, {"loss": [(number, 1.0)]})
    assert set(sealing.due()) == {(job.pk, 1), (busy.pk, 1)}


def test_rows_are_forgotten_only_when_sealed_and_nobody_can_repeat_them(job: Any) -> None:
    report(job, {"loss": [(1, 1.0)]})
    sealing.seal(job.pk, 1, leave=NOW)
    report(job, {"loss": [(2, 1.0)]})
    assert sealing.forget_dead_batches() == 0
    Attempt.objects.filter(job=job).update(ended_at=timezone.now() - timedelta(minutes=20))
    assert sealing.forget_dead_batches() == 1
    assert seen(job) == {("loss", 0, 1): [(1, "1.0"), (2, "1.0")]}


def test_after_a_resume_the_newest_attempt_wins_where_they_overlap(alice: Any, vision: Any) -> None:
    """R72: steps 0..212, a crash, 200..400 under attempt 2."""
    job = make_job(alice, vision, attempts=2)
    report(job, {"loss": [(step, 1.0) for step in range(213)]}, attempt=1)
    report(job, {"loss": [(step, 2.0) for step in range(200, 401)]}, attempt=2)
    shown = {one.id.attempt: one.run.step.tolist() for one in store.read_series(job.pk, keys=["loss"])}  # type: ignore[union-attr]
    assert shown == {1: list(range(200)), 2: list(range(200, 401))}
    [first] = store.read_series(job.pk, keys=["loss"], attempts=[1])
    assert first.run is not None and len(first.run) == 213 and first.total == 213


def test_ranges_and_buckets_of_sealed_and_open_points_together(job: Any) -> None:
    report(job, {"loss": [(step, float(step % 7)) for step in range(6000)]})
    sealing.seal(job.pk, 1, leave=NOW)
    report(job, {"loss": [(step, 99.0 if step == 6500 else 0.0) for step in range(6000, 7000)]})
    [whole] = store.read_series(job.pk, keys=["loss"], buckets=100)
    assert whole.buckets is not None and len(whole.buckets) == 100 and whole.total == 7000
    assert whole.buckets.max.max() == 99.0 and whole.buckets.count.sum() == 7000
    [part] = store.read_series(job.pk, keys=["loss"], start=6400, end=6499, buckets=100)
    assert part.run is not None and part.run.step.tolist() == list(range(6400, 6500)) and part.total == 7000


def test_by_time_points_stand_in_order_of_time(job: Any) -> None:
    """R73: a pod whose clock jumped."""
    from metrics import ingest
    from tests.metrics.makers import read, wire

    body = wire({"loss": [(1, 1.0), (2, 2.0), (3, 3.0)]})
    body["series"][0]["time"] = [300.0, 100.0, 200.0]
    ingest.accept(job.pk, 1, read(body), namespace_id=job.namespace_id)
    [by_step] = store.read_series(job.pk, keys=["loss"])
    [by_time] = store.read_series(job.pk, keys=["loss"], x="time", start=150.0)
    assert by_step.run is not None and by_step.run.step.tolist() == [1, 2, 3]
    assert by_time.run is not None and by_time.run.step.tolist() == [3, 1]


def test_what_arrived_since_or_a_snapshot(job: Any) -> None:
    for step in range(3):
        report(job, {"loss": [(step, float(step))]})
    now, arrivals, _progress = since(job.pk, 1)
    assert now == 3 and arrivals is not None and [one.seq for one in arrivals] == [2, 3]
    assert since(job.pk, 3)[1] == []
    assert since(job.pk, 4)[1] is None  # a number of another database
    sealing.seal(job.pk, 1, leave=NOW)
    assert since(job.pk, 1)[1] is None and since(job.pk, 3)[1] == []
