"""An attempt that cannot start gives its place back: what a person must mend fails, the rest waits for another attempt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs import looks
from jobs.cluster.observed import Observed
from jobs.limits import end_late_starts
from jobs.models import Attempt, Cluster, Job, JobEvent
from jobs.states import JobStatus, Reason
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db

NO_IMAGE = "worker-0 cannot start. The image ml/numpy:1 cannot be fetched: there is no such image or tag."
QUOTA = "The namespace's quota is used up: GPUs 4 of 8, one more worker needs 8."
GONE = Observed(None, Reason.STOPPED, "Stopped.", ended=True, pods_gone=True)


@pytest.fixture
def seen(local_row: Any) -> None:
    Cluster.objects.update(seen_at=timezone.now(), error="")


def starting(alice: Any, vision: Any, code: Reason, text: str, *, minutes: float = 11, number: int = 1) -> Attempt:
    job = make_job(alice, vision, status=JobStatus.STARTING, attempt_number=number, reason_code=code, reason=text)
    Cluster.objects.update(seen_at=timezone.now(), error="")
    return make_attempt(
        job, number=number, released_at=timezone.now() - timedelta(minutes=minutes), deleted_at=timezone.now()
    )


def settled(attempt: Attempt) -> Job:
    attempt.refresh_from_db()
    looks.settle(attempt, GONE)
    return Job.objects.get(pk=attempt.job_id)


def test_an_image_that_does_not_exist_fails_the_job_with_its_cause(alice: Any, vision: Any, seen: None) -> None:
    attempt = starting(alice, vision, Reason.IMAGE_NOT_FOUND, NO_IMAGE)
    assert end_late_starts() == 1
    assert end_late_starts() == 0, "the intent is there already"
    assert JobEvent.objects.get(job=attempt.job).reason_code == Reason.START_TIMEOUT
    job = settled(attempt)
    assert (job.status, job.reason_code) == (JobStatus.FAILED, Reason.IMAGE_NOT_FOUND)
    assert job.reason == f"It did not start within 10 min. {NO_IMAGE}"
    cause = Attempt.objects.get(pk=attempt.pk).cause
    assert (cause["kind"], cause["owner"]) == ("image_not_found", "you")


def test_a_quota_that_is_used_up_is_another_attempt_later_and_not_charged(alice: Any, vision: Any, seen: None) -> None:
    attempt = starting(alice, vision, Reason.QUOTA_EXCEEDED, QUOTA)
    assert end_late_starts() == 1
    job = settled(attempt)
    assert (job.status, job.reason_code, job.charged_failures) == (JobStatus.QUEUED, Reason.START_TIMEOUT, 0)
    assert QUOTA in job.reason
    assert job.not_before is not None
    assert timedelta(seconds=50) < job.not_before - timezone.now() <= timedelta(minutes=1)


def test_each_time_it_waits_longer(alice: Any, vision: Any, seen: None) -> None:
    attempt = starting(alice, vision, Reason.QUOTA_EXCEEDED, QUOTA, number=4)
    for number in (1, 2, 3):
        before = timezone.now()
        make_attempt(attempt.job, number=number, ended_at=before, deleted_at=before, reason_code=Reason.START_TIMEOUT)
    end_late_starts()
    job = settled(attempt)
    assert job.not_before is not None
    assert timedelta(minutes=7) < job.not_before - timezone.now() <= timedelta(minutes=8)


def test_what_goes_on_has_more_time(alice: Any, vision: Any, seen: None) -> None:
    pulls = starting(alice, vision, Reason.ADMITTED, "worker-0 is starting.")
    assert end_late_starts() == 0
    Attempt.objects.filter(pk=pulls.pk).update(released_at=timezone.now() - timedelta(minutes=31))
    assert end_late_starts() == 1


def test_nothing_is_ended_on_a_cluster_that_cannot_be_seen(alice: Any, vision: Any, seen: None) -> None:
    starting(alice, vision, Reason.IMAGE_NOT_FOUND, NO_IMAGE, minutes=60)
    Cluster.objects.update(error="no route")
    assert end_late_starts() == 0
    Cluster.objects.update(error="", seen_at=timezone.now() - timedelta(minutes=2))
    assert end_late_starts() == 0


def test_neither_the_young_nor_the_running_nor_the_stopped_are_touched(alice: Any, vision: Any, seen: None) -> None:
    starting(alice, vision, Reason.IMAGE_NOT_FOUND, NO_IMAGE, minutes=9)
    running = starting(alice, vision, Reason.ADMITTED, "", minutes=600)
    Job.objects.filter(pk=running.job_id).update(status=JobStatus.RUNNING)
    stopped = starting(alice, vision, Reason.IMAGE_NOT_FOUND, NO_IMAGE)
    Attempt.objects.filter(pk=stopped.pk).update(stop_code=Reason.STOPPED)
    assert end_late_starts() == 0


def test_who_cancels_meanwhile_gets_what_he_asked_for(alice: Any, vision: Any, seen: None) -> None:
    attempt = starting(alice, vision, Reason.IMAGE_NOT_FOUND, NO_IMAGE)
    end_late_starts()
    Job.objects.filter(pk=attempt.job_id).update(cancel_requested_at=timezone.now(), cancel_requested_by=alice)
    assert settled(attempt).status == JobStatus.CANCELLED
