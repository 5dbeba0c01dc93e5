"""C14: the platform's failures are not charged, the user's are counted, and what no try can mend is not tried."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import dispatch, retries
from jobs.causes.catalogue import KINDS
from jobs.cluster.observed import Observed
from jobs.lifecycle import settle
from jobs.models import Attempt, Job
from jobs.states import JobStatus, Reason
from tests.factories import make_attempt, make_job
from tests.jobs.test_journey import Hall

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hall(world: None, local_cluster: Any) -> Hall:
    return Hall(local_cluster)


def after_failure(hall: Hall, alice: Any, command: str, **more: Any) -> Job:
    job = hall.submit(alice, command, retries=2, **more)
    hall.go()
    return hall.until(job, lambda found: found.is_final or found.status == JobStatus.QUEUED)


def say(text: str) -> str:
    return f"echo '{text}' >&2; exit 1"


PERMANENT = {
    "CUDA OOM": say("[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB."),
    "CUDA OOM, then a traceback's end": say("CUDA out of memory") + "; echo 'RuntimeError: worker died'",
    "ImportError": 'python -c "from json import nothing"',
    "ModuleNotFoundError": 'python -c "import nosuch"',
    "SyntaxError": 'echo "def" > a.py; python a.py',
    "command not found": "no-such-program",
    "wrong arguments": "exit 2",
    "bad data": "exit 65",
}


@pytest.mark.parametrize("kind", PERMANENT)
def test_what_no_try_can_mend_ends_the_job_and_says_so(kind: str, hall: Hall, alice: Any) -> None:
    job = after_failure(hall, alice, PERMANENT[kind])
    assert (job.status, job.attempt_number, job.charged_failures) == (JobStatus.FAILED, 1, 0)
    assert "Not tried again, since another try cannot mend this" in job.reason


PASSING = {
    "an exit code": "exit 1",
    "an import that was only tried": "echo 'ImportError: no apex, going on'; echo 'OSError: connection reset'; exit 1",
    "a warning of long ago": "echo \"WARNING: No module named 'flash_attn', the slow path\"; seq 20; exit 1",
    "a signal": "kill -SEGV $$",
    "an exception": say("ValueError: bad batch"),
}


@pytest.mark.parametrize("kind", PASSING)
def test_what_may_pass_is_tried_again_counted_and_shown(kind: str, hall: Hall, alice: Any, client: Any) -> None:
    job = after_failure(hall, alice, PASSING[kind])
    assert (job.status, job.reason_code, job.charged_failures) == (JobStatus.QUEUED, Reason.RETRIED, 1)
    assert job.not_before is not None
    assert job.reason.startswith("Attempt 1 of at most 3: ")
    assert f"Tries again at {job.not_before:%H:%M:%S} UTC." in job.reason
    # the dispatcher's look at what waits leaves these words, and writes nothing
    hall.go()
    assert (Job.objects.get(pk=job.pk).reason, Job.objects.get(pk=job.pk).version) == (job.reason, job.version)
    client.force_login(alice)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "attempt 1 of at most 3: " in page and "tries again at" in page


def test_the_second_attempt_says_why_it_is_there(hall: Hall, alice: Any, client: Any) -> None:
    job = after_failure(hall, alice, "[ $TRAINHALL_ATTEMPT = 1 ] && exit 3; sleep 60")
    Job.objects.filter(pk=job.pk).update(not_before=None)
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    client.force_login(alice)
    assert "attempt 2 of at most 3: exit code 3" in client.get(f"/jobs/{job.pk}/").content.decode()
    told = client.get(f"/api/v1/jobs/{job.pk}/").json()["retries"]
    assert told == {"asked": 2, "used": 1, "at_most": 3, "because": "exit code 3"}


def test_the_last_failure_says_that_no_retry_is_left(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "exit 3", retries=1)
    for _attempt in range(2):
        Job.objects.filter(pk=job.pk).update(not_before=None)
        hall.go()
        job = hall.until(job, lambda found: found.is_final or found.status == JobStatus.QUEUED)
    assert (job.status, job.attempt_number) == (JobStatus.FAILED, 2)
    assert "Not tried again: its one retry is used." in job.reason


@pytest.mark.parametrize("code", [Reason.NODE_LOST, Reason.DISRUPTION, Reason.PREEMPTED, Reason.START_TIMEOUT])
def test_what_the_platform_did_is_not_charged(code: Reason, alice: Any, vision: Any) -> None:
    job = make_job(alice, vision, status="running", attempt_number=1)
    job.spec["retries"] = 1
    job.save(update_fields=["spec"])
    attempt = make_attempt(job)
    lost = Observed(status=JobStatus.FAILED, reason=code, text="Its node was lost.", ended=True, exit_code=137)
    assert settle(job, attempt, lost)
    job = Job.objects.get(pk=job.pk)
    assert (job.status, job.reason_code, job.charged_failures) == (JobStatus.QUEUED, code, 0)
    assert job.reason == "Attempt 1: Its node was lost. Not charged to its retries."
    assert retries.at_most(job) == 3, "one more than asked for: the lost one does not count"


def test_every_permanent_kind_is_one_that_explanations_know() -> None:
    assert KINDS.keys() >= retries.PERMANENT_KINDS


def test_back_off_doubles_up_to_ten_minutes() -> None:
    assert [retries.backoff(number).seconds for number in range(1, 9)] == [10, 20, 40, 80, 160, 320, 600, 600]


def test_a_held_job_that_is_stopped_is_not_charged(hall: Hall, alice: Any) -> None:
    from jobs import submission

    job = hall.submit(alice, "sleep 60", retries=1)
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    submission.hold(Job.objects.get(pk=job.pk), user=alice)
    dispatch.stop(Attempt.objects.get(job=job).pk)
    job = hall.until(job, lambda found: found.status == JobStatus.QUEUED)
    assert (job.reason_code, job.charged_failures) == (Reason.HELD, 0)
