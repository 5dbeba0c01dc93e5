"""UX-A21: what happened to a job stands in its charts, at the step whose time is nearest before it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from jobs import intents, lifecycle
from jobs.models import Attempt, Job, JobEvent
from metrics import ingest, sealing
from metrics.chunks import FULL
from metrics.marks import BUCKETS, marks_of
from tests.factories import leave_file
from tests.metrics.makers import make_job, read, wire

pytestmark = pytest.mark.django_db

BEGAN = 1_700_000_000.0


def told(job: Job, key: str, steps: range, *, attempt: int = 1, began: float = BEGAN) -> None:
    """A point a second, from `began` on."""
    body = wire({key: [(step, 0.5) for step in steps]})
    body["series"][0]["time"] = [began + place for place in range(len(steps))]
    ingest.accept(job.pk, attempt, read(body), namespace_id=job.namespace_id)


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(BEGAN + seconds, UTC)


def steps_of(job: Job) -> list[tuple[str, int | None]]:
    return [(mark.kind, mark.step) for mark in marks_of(job)]


def test_a21_hold_release_and_warning_stand_at_the_step_before_them(alice: Any, carol: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    told(job, "loss", range(0, 1000, 10))
    told(job, "rare", range(0, 1000, 500))
    intents.hold(job, actor=carol)
    intents.release(job, actor=alice)
    lifecycle.warn_of_limit(job, ends_at=at(500))
    lifecycle.explain(job, "SettingUp", "Its pods are starting.")  # nothing that people look for in a chart
    for place, event in enumerate(JobEvent.objects.filter(job=job).order_by("pk")):
        JobEvent.objects.filter(pk=event.pk).update(at=at([20.5, 30, 10_000, 40][place]))
    assert steps_of(job) == [("hold", 200), ("release", 300), ("limit", 990)]
    assert marks_of(job)[0].text == "Held by carol."
    JobEvent.objects.filter(job=job).update(at=at(-60))
    assert {step for _kind, step in steps_of(job)} == {0}, "before the first point: at the first step"


def test_a21_an_attempt_starts_at_its_own_first_step(alice: Any, vision: Any) -> None:
    job = make_job(alice, vision, attempts=2)
    told(job, "loss", range(60))
    told(job, "loss", range(30, 90), attempt=2, began=BEGAN + 1000)
    Attempt.objects.filter(job=job, number=1).update(started_at=at(-5), reason="Preempted by a job of higher priority.")
    Attempt.objects.filter(job=job, number=2).update(started_at=at(990))
    first, second = marks_of(job)
    assert (first.step, first.text) == (0, "Attempt 1 started.")
    assert (second.step, second.text) == (
        30,
        "Attempt 2 started. The one before: Preempted by a job of higher priority.",
    )


def test_a21_checkpoints_stand_at_the_step_of_their_name_else_by_their_time(
    alice: Any, vision: Any, settings: Any, tmp_path: Any
) -> None:
    settings.TRAINHALL_DATA_DIR = tmp_path
    job = make_job(alice, vision)
    told(job, "loss", range(1000))
    names = {"step-400.npz": 900, "epoch-3.pt": 500, "last/weights.bin": 600, "last/rank0.bin": 610, "step-7.tmp": 1}
    for name, seconds in (names | {"step-5000.npz": 700}).items():
        file = leave_file(job, f"ckpt/{name}", b"x")
        os.utime(file, (BEGAN + seconds, BEGAN + seconds))
    found = {mark.text: mark.step for mark in marks_of(job)}
    assert found == {
        "Checkpoint step-400.npz": 400,
        "Checkpoint epoch-3.pt": 500,
        "Checkpoint last": 610,
        "Checkpoint step-5000.npz": 700,  # no such step is in these charts
    }


def test_a21_the_step_is_exact_where_a_chart_has_only_buckets(alice: Any, carol: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    count = max(3 * BUCKETS, 3 * FULL)
    told(job, "loss", range(count))
    sealing.seal(job.pk, 1, leave=timedelta(0))
    intents.hold(job, actor=carol)
    for second in (0, 17, 4999.5, count - 2):
        JobEvent.objects.filter(job=job).update(at=at(second))
        assert steps_of(job) == [("hold", int(second))]


def test_a21_without_points_there_are_marks_without_steps(alice: Any, carol: Any, dave: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    intents.hold(job, actor=carol)
    client = Client()
    client.force_login(alice)
    [mark] = client.get(f"/jobs/{job.pk}/marks/").json()["marks"]
    assert (mark["kind"], mark["step"], mark["text"]) == ("hold", None, "Held by carol.")
    client.force_login(dave)
    assert client.get(f"/jobs/{job.pk}/marks/").status_code == 404
