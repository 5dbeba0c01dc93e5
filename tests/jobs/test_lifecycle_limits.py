"""C13: a job is told before its time limit, ends at it by that name, and keeps what it saved."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs import lifecycle
from jobs.keeping import ends_by
from jobs.limits import warn_of_limits
from jobs.logs.lines import read_lines
from jobs.models import Attempt, Job, JobEvent
from jobs.snapshot import holding_on
from jobs.states import JobStatus, Reason
from tests.factories import make_attempt, make_job
from tests.jobs.test_journey import Hall

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hall(world: None, local_cluster: Any) -> Hall:
    return Hall(local_cluster)


def running(alice: Any, vision: Any, *, since: float, limit: int = 3600) -> Job:
    job = make_job(alice, vision, status="running", attempt_number=1)
    job.spec["time_limit"] = limit
    job.save(update_fields=["spec"])
    make_attempt(job, released_at=timezone.now() - timedelta(seconds=since))
    return job


def test_the_planner_counts_with_the_end_that_the_page_tells(alice: Any, vision: Any) -> None:
    job = running(alice, vision, since=600)
    Attempt.objects.filter(job=job).update(started_at=timezone.now() - timedelta(seconds=300))
    [held] = holding_on(job.cluster)
    attempt = Attempt.objects.get(job=job)
    assert held.ends_by == ends_by(job, attempt) == attempt.released_at + timedelta(hours=1)
    Attempt.objects.filter(job=job).update(released_at=None)
    [held] = holding_on(job.cluster)
    assert held.ends_by == attempt.admitted_at + timedelta(hours=1)


def test_nine_tenths_are_told_once_and_on_the_page(alice: Any, vision: Any, client: Any) -> None:
    job = running(alice, vision, since=3241)
    young = running(alice, vision, since=3230)
    assert warn_of_limits() == 1
    assert warn_of_limits() == 0
    job, young = Job.objects.get(pk=job.pk), Job.objects.get(pk=young.pk)
    assert job.warned_at is not None and young.warned_at is None
    assert job.version == 2, "whoever looks is told"
    event = JobEvent.objects.get(job=job)
    assert (event.kind, event.reason_code) == ("cluster", Reason.TIME_LIMIT)
    ends = Attempt.objects.get(job=job).released_at + timedelta(hours=1)
    assert event.reason == f"Ends at {ends:%H:%M:%S} UTC: time limit."
    client.force_login(alice)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert '<span class="mark warn" data-bind="limit">' in page
    assert '<span class="mark warn" data-bind="limit" hidden>' in client.get(f"/jobs/{young.pk}/").content.decode()
    assert client.get(f"/api/v1/jobs/{job.pk}/").json()["warned_at"]


def test_a_job_that_is_being_stopped_is_not_warned(alice: Any, vision: Any) -> None:
    job = running(alice, vision, since=3500)
    Attempt.objects.update(stop_code=Reason.STOPPED)
    assert warn_of_limits() == 0
    assert not JobEvent.objects.filter(job=job).exists()


def test_the_next_attempt_has_the_whole_limit_and_a_warning_of_its_own(alice: Any, vision: Any) -> None:
    job = running(alice, vision, since=3500)
    warn_of_limits()
    job = Job.objects.get(pk=job.pk)
    assert lifecycle.move(job, JobStatus.QUEUED, code=Reason.HELD)
    attempt = lifecycle.admit(job, ["node1"])
    assert attempt is not None
    assert Job.objects.get(pk=job.pk).warned_at is None
    Attempt.objects.filter(pk=attempt.pk).update(released_at=timezone.now())
    assert warn_of_limits() == 0


def test_at_its_limit_a_job_ends_by_that_name_and_its_files_stay(hall: Hall, alice: Any) -> None:
    command = 'echo 5 > "$TRAINHALL_CHECKPOINT_DIR/step"; echo up; sleep 60'
    job = hall.over(hall_start(hall, alice, command, time_limit=2))
    assert (job.status, job.reason_code) == (JobStatus.FAILED, Reason.TIME_LIMIT)
    assert job.reason == "The time limit of 2 s was reached."
    run = Path(hall.cluster.root, job.namespace.kubernetes_name, "volumes", "runs", job.pk)
    assert (run / "ckpt" / "step").read_text() == "5\n"
    assert read_lines(job.pk)[0]["text"] == "up"


def test_the_limit_is_not_tried_again(hall: Hall, alice: Any) -> None:
    job = hall.over(hall_start(hall, alice, "sleep 60", time_limit=1, retries=3))
    assert (job.status, job.attempt_number) == (JobStatus.FAILED, 1)


def test_the_notice_file_tells_the_program_before_its_limit(hall: Hall, alice: Any) -> None:
    command = 'while [ ! -e "$TRAINHALL_NOTICE_FILE" ]; do sleep 0.05; done; cat "$TRAINHALL_NOTICE_FILE"; echo'
    began = time.time()
    job = hall.over(hall_start(hall, alice, command, time_limit=5, stop_grace=20))
    assert (job.status, job.reason_code) == (JobStatus.SUCCEEDED, Reason.COMPLETED), "it ended before the limit"
    told = float(read_lines(job.pk)[0]["text"])
    assert told == pytest.approx(began + 5 + 20, abs=5)


def hall_start(hall: Hall, user: Any, command: str, **more: Any) -> Job:
    job = hall.submit(user, command, **more)
    hall.go()
    return job
