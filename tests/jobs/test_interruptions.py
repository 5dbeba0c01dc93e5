"""C15: what a held job had saved is told, on the local cluster; tests/cluster/test_disruption.py has what others do to a job."""

from __future__ import annotations

import shlex
import time
from typing import Any

import pytest

from jobs import dispatch, interruptions, submission
from jobs.documents import job_document
from jobs.models import Attempt, Job, JobEvent
from jobs.states import JobStatus
from tests.jobs.test_journey import Hall
from tests.jobs.test_lifecycle_resume import EXAMPLE, lines


@pytest.fixture
def hall(world: None, local_cluster: Any) -> Hall:
    return Hall(local_cluster)


def interrupt(hall: Hall, job: Job, user: Any) -> Job:
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    hall.until(job, lambda found: bool(lines(found, 1)))
    time.sleep(0.5)
    submission.hold(Job.objects.get(pk=job.pk), user=user)
    dispatch.stop(Attempt.objects.get(job=job).pk)
    return hall.until(job, lambda found: found.status == JobStatus.QUEUED)


def told(job: Job) -> list[tuple[int, str]]:
    return list(
        JobEvent.objects.filter(job=job, kind="cluster", reason__startswith="It ").values_list("attempt", "reason")
    )


@pytest.mark.django_db(transaction=True)
def test_what_it_saved_is_told_once(hall: Hall, alice: Any) -> None:
    job = interrupt(hall, hall.submit(alice, f"python {shlex.quote(str(EXAMPLE))}", stop_grace="20s"), alice)
    assert job_document(job)["interruption"] is None, "nobody has looked yet"
    before = job.version
    for _twice in range(2):
        interruptions.note_due()
    (saved,) = [line for line in lines(job, 1) if line.startswith("saved at step ")]
    step = int(saved.removeprefix("saved at step "))
    job = Job.objects.get(pk=job.pk)
    assert job.version == before + 1
    found = job_document(job)["interruption"]
    assert (found["attempt"], found["outcome"], found["checkpoint"], found["step"]) == (
        1,
        "saved",
        f"step-{step}.json",
        step,
    )
    assert told(job) == [(1, found["text"])]


@pytest.mark.django_db(transaction=True)
def test_it_is_noted_before_the_next_attempt_writes(hall: Hall, alice: Any) -> None:
    job = interrupt(hall, hall.submit(alice, "echo ready; sleep 60", stop_grace="1s"), alice)
    submission.release(Job.objects.get(pk=job.pk), user=alice)
    hall.go()
    found = job_document(Job.objects.get(pk=job.pk))["interruption"]
    assert (found["attempt"], found["outcome"], found["lost"]) == (1, "nothing", None)
    assert told(job) == [(1, "It had saved nothing. It had reported no step.")]
    assert Job.objects.get(pk=job.pk).attempt_number == 2


@pytest.mark.django_db(transaction=True)
def test_a_failure_of_its_own_is_no_interruption(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "exit 1", retries=1)
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.QUEUED)
    interruptions.note_due()
    assert told(job) == [] and job_document(Job.objects.get(pk=job.pk))["interruption"] is None
