"""The one door in: each batch once, the feed beside it, and the limit of names."""

from __future__ import annotations

import random
import struct
import threading
import uuid
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.db import connection, connections

from jobs.models import JobFeed
from metrics import ingest, sealing, store
from metrics.models import Distribution, MetricKey, PointBatch
from tests.metrics.makers import make_job, read, report, wire

pytestmark = pytest.mark.django_db


def feed(job: Any) -> JobFeed:
    return JobFeed.objects.get(pk=job.pk)


def points_of(job: Any, key: str = "loss", **which: Any) -> dict[int, float]:
    found: dict[int, float] = {}
    for series in store.read_series(job.pk, keys=[key], **which):
        assert series.run is not None
        found |= dict(zip(series.run.step.tolist(), series.run.value.tolist(), strict=True))
    return found


def test_a_batch_is_one_row_and_raises_the_feed(job: Any) -> None:
    first = report(job, {"loss": [(1, 0.5), (2, 0.25)], "acc": [(2, 0.75)]}, progress={"step": 2, "total": 10})
    second = report(job, {"loss": [(3, "NaN")]})
    assert (first.seq, first.accepted, second.seq) == (1, 3, 2)
    assert PointBatch.objects.filter(job=job).count() == 2
    row = feed(job)
    assert (row.points_seq, row.key_count, row.headline) == (2, 2, {"loss": "NaN", "acc": 0.75})
    assert (row.progress["step"], row.progress["total"]) == (2, 10)
    assert row.points_at is not None


def test_a_batch_sent_three_times_is_as_sent_once(job: Any) -> None:
    body = wire({"loss": [(1, 0.5), (1, 0.25), (2, 1.0)]}, progress={"step": 2})
    outcomes = [ingest.accept(job.pk, 1, read(body), namespace_id=job.namespace_id) for _time in range(3)]
    assert [one.accepted for one in outcomes] == [3, 3, 3]
    assert [one.repeated for one in outcomes] == [False, True, True]
    assert PointBatch.objects.filter(job=job).count() == 1 and feed(job).points_seq == 1
    assert points_of(job) == {1: 0.25, 2: 1.0}


def test_a_repeat_with_new_names_or_tensors_is_a_repeat_too(job: Any) -> None:
    batch = str(uuid.uuid4())
    report(job, {"loss": [(1, 0.5)]}, batch=batch)
    tensor = {"key": "w", "step": 1, "edges": [0, 1], "counts": [1]}
    again = report(job, {"other": [(1, 1.0)]}, batch=batch, distributions=[tensor])
    assert again.repeated and again.accepted == 1
    assert not Distribution.objects.exists() and feed(job).key_count == 1


def test_a_repeat_after_sealing_is_known(job: Any) -> None:
    batch = str(uuid.uuid4())
    report(job, {"loss": [(1, 0.5)]}, batch=batch)
    assert sealing.seal(job.pk, 1, leave=timedelta(0)) == 1
    assert report(job, {"loss": [(1, 0.75)]}, batch=batch).repeated
    assert points_of(job) == {1: 0.5}


def test_names_beyond_the_limit_are_refused_by_name_and_known_ones_go_on(job: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(ingest, "MAX_KEYS", 3)
    report(job, {"a": [(1, 1.0)], "b": [(1, 1.0)]})
    batch = read(wire({"a": [(2, 2.0)], "c": [(1, 1.0)], "d": [(1, 1.0), (2, 1.0)], "e": [(1, 1.0)]}))
    outcome = ingest.accept(job.pk, 1, batch, namespace_id=job.namespace_id)
    assert outcome.accepted == 2 and batch.refusals.count == 3
    assert [(one["key"], one["code"]) for one in batch.refusals.listed] == [
        ("d", "too_many_keys"),
        ("e", "too_many_keys"),
    ]
    assert feed(job).key_count == 3 and feed(job).refused_points == 3
    assert set(MetricKey.objects.filter(job=job).values_list("key", flat=True)) == {"a", "b", "c"}


def test_the_headline_has_eight_keys_and_rank_0_leads(job: Any) -> None:
    report(job, {f"m{number}": [(1, float(number))] for number in range(12)})
    assert set(feed(job).headline) == {f"m{number}" for number in range(8)}
    report(job, {"m0": [(2, 5.0)], "m11": [(2, 5.0)]}, rank=1)
    report(job, {"m1": [(2, 6.0)], "m9": [(2, 5.0)]})
    headline = feed(job).headline
    assert len(headline) == 8 and headline["m0"] == 0.0 and headline["m1"] == 6.0


def test_the_lowest_rank_of_the_newest_attempt_tells_the_progress(alice: Any, vision: Any) -> None:
    job = make_job(alice, vision, attempts=2)
    for attempt, rank, step, shown in [(1, 1, 10, 10), (1, 0, 11, 11), (1, 1, 12, 11), (2, 1, 1, 1), (1, 0, 13, 1)]:
        report(job, {}, attempt=attempt, rank=rank, progress={"step": step})
        assert feed(job).progress["step"] == shown


def test_the_estimate_goes_by_the_pace_since_the_first_report(job: Any) -> None:
    def merge(old: Any, step: int, at: float) -> Any:
        new = {"step": step, "total": 100, "attempt": 1, "rank": 0, "at": at}
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT metrics_progress(%s::jsonb, %s::jsonb)",
                [orjson.dumps(old).decode(), orjson.dumps(new).decode()],
            )
            return orjson.loads(cursor.fetchone()[0])

    first = merge({}, 10, 1000.0)
    assert "eta" not in first
    second = merge(first, 20, 1005.0)
    assert second["eta"] == pytest.approx(40.0)
    assert merge(second, 40, 1006.0)["eta"] == pytest.approx(60 * 6 / 30)


def test_a_later_distribution_of_a_step_wins(job: Any) -> None:
    for count in (1, 2):
        report(job, {}, distributions=[{"key": "w", "step": 1, "edges": [0, 1], "counts": [count]}])
    assert Distribution.objects.get().counts == struct.pack("<d", 2.0)


@pytest.mark.django_db(transaction=True)
def test_writers_with_shuffled_keys_never_block_each_other_out(job: Any) -> None:
    """R67, F17: many writers, one job, keys in any order; nothing lost, no dead-lock, numbers without a gap."""
    writers, batches = 8, 25
    errors: list[BaseException] = []

    def write(rank: int) -> None:
        try:
            for number in range(batches):
                keys = [f"key{index}" for index in range(10)]
                random.Random(rank * 1000 + number).shuffle(keys)
                report(job, {key: [(number, float(rank))] for key in keys}, rank=rank)
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=(rank,)) for rank in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert feed(job).points_seq == writers * batches and feed(job).key_count == 10
    numbers = PointBatch.objects.filter(job=job).order_by("seq").values_list("seq", flat=True)
    assert list(numbers) == list(range(1, writers * batches + 1))
    assert sum(one["count"] for one in store.list_series(job.pk)) == writers * batches * 10
