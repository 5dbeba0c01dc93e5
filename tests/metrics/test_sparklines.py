"""The small drawings of a list: one request, a constant number of queries, no spike lost, nothing of strangers."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from jobs.models import Job
from metrics import sealing, sketch
from metrics.models import Chunk, PointBatch
from metrics.sketch import sketches
from tests.metrics.makers import make_job, report

pytestmark = pytest.mark.django_db


def drawn(person: User, *jobs: Job) -> dict[str, Any]:
    client = Client()
    client.force_login(person)
    answer = client.get("/api/v1/sparklines/", {"job": [job.pk for job in jobs]})
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


def test_the_key_metric_of_each_job_in_a_few_values(alice: User, vision: Any) -> None:
    one, two, silent = (make_job(alice, vision) for _number in range(3))
    report(one, {"lr": [(1, 0.1)], "train/loss": [(1, 3.0), (2, 2.0), (3, 1.0)]})
    report(two, {"accuracy": [(step, step / 1000) for step in range(1000)]})
    found = drawn(alice, one, two, silent)
    assert set(found) == {one.pk, two.pk}
    assert found[one.pk] == {"key": "train/loss", "values": [3.0, 2.0, 1.0], "first_step": 1, "last_step": 3}
    values = found[two.pk]["values"]
    assert len(values) <= 60
    assert (values[0], values[-1]) == (0.0, 0.999)


def test_a_spike_and_a_hole_are_drawn(alice: User, vision: Any) -> None:
    job = make_job(alice, vision)
    points: list[tuple[int, Any]] = [(step, 1.0) for step in range(5000)]
    points[2345] = (2345, 99.0)
    points[3456] = (3456, "NaN")
    report(job, {"loss": points})
    values = drawn(alice, job)[job.pk]["values"]
    assert 99.0 in values
    assert "NaN" in values


def test_the_same_before_and_after_sealing(alice: User, vision: Any) -> None:
    job = make_job(alice, vision)
    for start in range(0, 400, 40):
        report(job, {"loss": [(step, math.sin(step / 30)) for step in range(start, start + 40)]})
    before = drawn(alice, job)
    sealing.seal(job.pk, 1, leave=timedelta(0))
    assert not PointBatch.objects.filter(body__isnull=False).exists()
    assert drawn(alice, job) == before


def test_of_a_long_series_the_measures_of_its_chunks_are_enough(alice: User, vision: Any) -> None:
    job = make_job(alice, vision)
    for start in range(0, 40_000, 8000):
        report(job, {"loss": [(step, 50.0 if step == 20_001 else step / 1000) for step in range(start, start + 8000)]})
        sealing.seal(job.pk, 1, leave=timedelta(0))
    assert Chunk.objects.filter(job=job).count() > sketch.WHOLE
    found = drawn(alice, job)[job.pk]
    assert max(found["values"]) == 50.0
    assert (found["values"][-1], found["last_step"]) == (39.999, 39_999)


def test_a_newer_attempt_wins_where_two_overlap(alice: User, vision: Any) -> None:
    job = make_job(alice, vision, attempts=2)
    report(job, {"loss": [(step, 9.0) for step in range(10)]}, attempt=1)
    report(job, {"loss": [(step, 1.0) for step in range(5, 8)]}, attempt=2)
    assert sketches({job.pk: "loss"})[job.pk].values == [9.0] * 5 + [1.0] * 3


def test_strangers_get_nothing_and_cannot_tell_it_from_what_is_not_there(alice: User, dave: User, vision: Any) -> None:
    job = make_job(alice, vision)
    report(job, {"loss": [(1, 1.0), (2, 2.0)]})
    assert drawn(dave, job) == {}
    client = Client()
    client.force_login(dave)
    assert client.get("/api/v1/sparklines/?job=zzzzzzzzzz&job=a%00b").json() == {"results": {}}
    assert client.get("/api/v1/sparklines/").json() == {"results": {}}


def test_fifty_jobs_cost_the_queries_of_one(alice: User, vision: Any) -> None:
    jobs = [make_job(alice, vision) for _number in range(50)]
    for job in jobs:
        report(job, {"loss": [(step, step) for step in range(20)]})
    with CaptureQueriesContext(connection) as one:
        drawn(alice, jobs[0])
    with CaptureQueriesContext(connection) as many:
        assert len(drawn(alice, *jobs)) == 50
    assert len(many) == len(one)


def test_more_than_a_page_is_refused(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    answer = client.get("/api/v1/sparklines/", {"job": [f"{number:010}" for number in range(101)]})
    assert (answer.status_code, set(answer.json()["error"]["fields"])) == (400, {"job"})
