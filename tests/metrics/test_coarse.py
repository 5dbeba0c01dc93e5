"""Buckets of stored rows are what buckets of points are: nothing counted twice, no extreme lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from metrics import coarse, sealing, store
from metrics.chunks import Run
from metrics.models import Chunk
from tests.metrics.makers import report

pytestmark = pytest.mark.django_db
COUNT = 20_000
BUCKETS = 80


def run_of(count: int) -> Run:
    value = np.random.default_rng(7).normal(size=count)
    value[::1000] = [np.nan, np.inf, -np.inf][count % 3]
    return Run(np.arange(count, dtype=np.int64) * 3, np.arange(count, dtype=np.float64), value)


@pytest.mark.parametrize("count", [1, 127, 128, 129, 4096])
def test_rows_of_a_chunk(count: int) -> None:
    run = run_of(count)
    rows = coarse.unpack(coarse.of_chunk(run).pack())
    good = run.value[np.isfinite(run.value)]
    assert len(rows) == -(-count // coarse.POINTS) and rows.count.sum() == count
    assert rows.bad.sum() == count - len(good) and rows.step[-1] == run.step[-1]
    np.testing.assert_array_equal(rows.last[-1], run.value[-1])
    lowest, highest = coarse.extremes(rows)
    if not len(good):
        assert lowest is None and highest is None
        return
    assert lowest is not None and highest is not None
    assert (lowest[1], highest[1]) == (good.min(), good.max())
    assert run.value[run.step == lowest[0]] == good.min() and run.value[run.step == highest[0]] == good.max()


@pytest.fixture
def long(job: Any) -> Any:
    """Sealed chunks, then a tail that is not, with a spike in each, and a late point."""
    value = np.sin(np.arange(COUNT) / 100)
    value[5001], value[COUNT - 2], value[17] = 50.0, 60.0, -40.0
    pairs = [(step, "NaN" if step % 500 == 1 and step != 5001 else float(value[step])) for step in range(COUNT)]
    report(job, {"a": pairs[:-3]})
    sealing.seal(job.pk, 1, leave=timedelta(0))
    report(job, {"a": pairs[-3:]})
    return job


def exactly(job: Any, **asked: Any) -> store.SeriesPoints:
    """Buckets, held against every point of the range."""
    [found] = store.read_series(job.pk, keys=["a"], buckets=BUCKETS, **asked)
    [every] = store.read_series(job.pk, keys=["a"], **asked)
    assert found.buckets is not None and every.run is not None
    good = every.run.value[np.isfinite(every.run.value)]
    assert (found.lowest, found.highest) == (every.lowest, every.highest)
    assert (np.nanmin(found.buckets.min), np.nanmax(found.buckets.max)) == (good.min(), good.max())
    assert found.buckets.count.sum() == len(every.run) and found.total == every.total
    assert found.buckets.bad.sum() == len(every.run) - len(good)
    assert found.buckets.step[-1] == every.run.step[-1] and found.buckets.last[-1] == every.run.value[-1]
    assert len(found.buckets) <= BUCKETS and (np.diff(found.buckets.step) > 0).all()
    return found


@pytest.mark.parametrize(
    "asked", [{}, {"start": 100}, {"end": 17_000}, {"start": 1, "end": 19_000}, {"x": "time"}], ids=str
)
def test_a_long_series_is_exact_and_its_points_are_not_read(long: Any, asked: Any) -> None:
    found = exactly(long, **asked)
    inside = Chunk.objects.filter(first_step__gte=asked.get("start", 0), last_step__lte=asked.get("end", COUNT - 4))
    newest = Chunk.objects.latest("first_step")
    assert inside.exclude(pk=newest.pk).update(body=b"no points here") >= 3
    [again] = store.read_series(long.pk, keys=["a"], buckets=BUCKETS, **asked)
    assert again.buckets is not None and found.buckets is not None
    np.testing.assert_array_equal(again.buckets.max, found.buckets.max)


def test_late_points_between_sealed_ones_count(long: Any) -> None:
    report(long, {"a": [(18_000, 99.0)]})
    assert exactly(long).highest == (18_000, 99.0)


def test_chunks_from_before_have_no_rows_and_are_read_whole(long: Any) -> None:
    Chunk.objects.filter(job=long).order_by("first_step").update(coarse=None)
    assert exactly(long).highest == (COUNT - 2, 60.0)


def test_the_newest_attempt_wins_also_here(long: Any, job: Any) -> None:
    report(job, {"a": [(10_000, 0.5), (10_001, 0.5)]}, attempt=1, rank=0)
    report(job, {"a": [(12_000, 0.25)]}, attempt=2)
    [old, _new] = store.read_series(job.pk, keys=["a"], buckets=50)
    assert old.buckets is not None and old.buckets.step[-1] == 11_999 and old.buckets.count.sum() == 12_000


@pytest.mark.parametrize(("count", "buckets"), [(100, 20), (2 * coarse.POINTS, 20)])
def test_a_chunk_that_is_not_full_answers_as_many_buckets_as_asked(job: Any, count: int, buckets: int) -> None:
    report(job, {"a": [(step, step / 7) for step in range(count)]})
    sealing.seal(job.pk, 1, leave=timedelta(0))
    assert Chunk.objects.get(job=job).coarse is not None
    [found] = store.read_series(job.pk, keys=["a"], buckets=buckets)
    assert found.buckets is not None and len(found.buckets) == buckets


def test_few_sealed_points_come_as_they_are(job: Any) -> None:
    report(job, {"a": [(1, 0.5), (2, 0.25), (3, 0.125)]})
    sealing.seal(job.pk, 1, leave=timedelta(0))
    [found] = store.read_series(job.pk, keys=["a"], buckets=10)
    assert found.run is not None and found.run.value.tolist() == [0.5, 0.25, 0.125]
