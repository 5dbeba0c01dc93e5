"""D2: the phases of a job add up to its whole time, whatever happened to it, and each says why it was as long as it was."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from jobs import dispatch, submission
from jobs.models import Attempt, Job, JobEvent, Worker
from jobs.states import JobStatus, Reason
from jobs.timeline import Kind, Phase, phases, split, totals
from tests.jobs.test_journey import Hall

T0 = datetime(2026, 8, 1, 9, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def move(seconds: float, new: str, attempt: int = 0, code: str = "", reason: str = "") -> JobEvent:
    return JobEvent(at=at(seconds), kind="move", new=new, attempt=attempt, reason_code=code, reason=reason)


def said(seconds: float, code: str, reason: str = "", *, attempt: int = 0, kind: str = "intent") -> JobEvent:
    return JobEvent(at=at(seconds), kind=kind, attempt=attempt, reason_code=code, reason=reason)


def tell(job: Job, events: list[JobEvent], attempts: list[Attempt], *, now: float = 9999) -> list[Phase]:
    found = split(job, events, attempts, now=at(now))
    whole = (job.finished_at or at(now)) - job.created_at
    assert sum((phase.length for phase in found), timedelta()) == whole
    assert sum((total.length for total in totals(found)), timedelta()) == whole
    for one, next_one in itertools.pairwise(found):
        assert one.started_at + one.length == next_one.started_at
        assert not one.is_open
    return found


def kinds(found: list[Phase]) -> list[tuple[str, int, float]]:
    return [(phase.kind.value, phase.attempt, phase.seconds) for phase in found]


def over(status: str, seconds: float) -> Job:
    return Job(created_at=T0, status=status, finished_at=at(seconds))


def attempt(
    number: int = 1, *, released: float | None = None, started: tuple[float, ...] = (), **fields: Any
) -> Attempt:
    """An attempt that is in no database, with workers that began then."""
    row = Attempt(pk=number, number=number, released_at=None if released is None else at(released), **fields)
    row._prefetched_objects_cache = {"workers": [Worker(started_at=at(seconds)) for seconds in started]}  # type: ignore[attr-defined]
    return row


def test_a_plain_life() -> None:
    events = [
        move(0.001, "queued", code="PendingEvaluation", reason="Waits for the dispatcher's next look."),
        said(2, "WaitingForCapacity", "Waiting for 1 GPU."),
        move(60, "starting", 1, "Admitted"),
        move(75, "running", 1),
        move(200, "succeeded", 1, "Completed"),
    ]
    found = tell(over("succeeded", 200), events, [attempt(released=61)])
    assert kinds(found) == [("queued", 0, 60), ("launching", 1, 1), ("setting-up", 1, 14), ("running", 1, 125)]
    assert found[0].reason == "Waiting for 1 GPU.", "the reason that stood longest"


def test_hold_release_and_a_stop_with_its_grace() -> None:
    events = [
        move(0, "queued", code="FetchingCode", reason="Its code is being fetched."),
        said(10, "", "Code fetched: abc.", kind="code"),
        move(12, "starting", 1, "Admitted"),
        move(14, "running", 1),
        said(50, "Held", "Held by alice.", attempt=1),
        move(55, "queued", 1, "Held", "Attempt 1: Stopped; exit code 75."),
        said(55.5, "Held", "Held by alice: release it to let it start.", attempt=1),
        said(100, "", "Released by alice.", attempt=1),
        said(100, "PendingEvaluation", attempt=1),
        move(103, "starting", 2, "Admitted"),
        move(105, "running", 2),
        said(150, "Stopped", "Stopped by alice.", attempt=2),
        move(160, "cancelled", 2, "Stopped"),
    ]
    found = tell(over("cancelled", 160), events, [attempt(1, released=13), attempt(2, released=104)])
    assert kinds(found) == [
        ("fetching", 0, 10),
        ("queued", 0, 2),
        ("launching", 1, 1),
        ("setting-up", 1, 1),
        ("running", 1, 36),
        ("stopping", 1, 5),
        ("held", 1, 45),
        ("queued", 1, 3),
        ("launching", 2, 1),
        ("setting-up", 2, 1),
        ("running", 2, 45),
        ("stopping", 2, 10),
    ]
    assert {total.kind: total.seconds for total in totals(found)}[Kind.RUNNING] == 81
    assert found[5].reason == "Held by alice."


def test_preemption_and_a_charged_retry() -> None:
    events = [
        move(0, "queued"),
        move(5, "starting", 1),
        move(7, "running", 1),
        move(40, "queued", 1, "Preempted", "Attempt 1: preempted by a job of higher priority."),
        move(60, "starting", 2),
        move(63, "running", 2),
        move(80, "queued", 2, "Retried", "Attempt 2 of at most 3: exit code 1."),
        move(95, "starting", 3),
        move(96, "running", 3),
    ]
    taken = attempt(1, released=6, stop_code="Preempted", stop_requested_at=at(30))
    now = Job(created_at=T0, status="running", reason="")
    found = tell(now, events, [taken, attempt(2, released=61), attempt(3)], now=120)
    assert kinds(found)[3:] == [
        ("running", 1, 23),
        ("stopping", 1, 10),
        ("queued", 1, 20),
        ("launching", 2, 1),
        ("setting-up", 2, 2),
        ("running", 2, 17),
        ("backing-off", 2, 15),
        ("launching", 3, 1),
        ("running", 3, 24),
    ]
    assert found[-1].is_open
    assert found[5].reason.startswith("Attempt 1: preempted")
    (running,) = [total for total in totals(found) if total.kind is Kind.RUNNING]
    assert running.since == at(120 - 64), "the sum goes on ticking"


def test_a_run_too_short_to_be_seen_is_told_by_its_workers() -> None:
    events = [move(0, "queued"), move(1, "starting", 1), move(5, "succeeded", 1)]
    quick = attempt(released=2, started=(2.5, 3.0), ended_at=at(4.9))
    assert kinds(tell(over("succeeded", 5), events, [quick])) == [
        ("queued", 0, 1),
        ("launching", 1, 1),
        ("setting-up", 1, 1),
        ("running", 1, 2),
    ]


def test_what_keeps_an_open_wait_is_what_the_job_says_now() -> None:
    now = Job(created_at=T0, status="queued", reason="Waiting for 8 GPUs. 2 jobs wait ahead.")
    found = tell(now, [move(0, "queued", code="PendingEvaluation", reason="Waits.")], [], now=30)
    assert kinds(found) == [("queued", 0, 30)]
    assert found[0].reason == "Waiting for 8 GPUs. 2 jobs wait ahead."


def test_a_job_refused_before_any_attempt() -> None:
    job = over("failed", 8)
    assert kinds(tell(job, [move(0, "queued", code="FetchingCode"), move(8, "failed", code="CodeNotFetched")], [])) == [
        ("fetching", 0, 8)
    ]


@given(
    st.lists(
        st.tuples(
            st.floats(-50, 500),
            st.sampled_from(["queued", "starting", "running", "said"]),
            st.sampled_from(["", "Held", "Retried", "Stopped", "FetchingCode", "Preempted", "WaitingForCapacity"]),
            st.integers(0, 4),
        ),
        max_size=12,
    ),
    st.lists(st.tuples(st.floats(-50, 600), st.floats(-50, 600), st.integers(1, 4)), max_size=4),
    st.booleans(),
)
def test_whatever_the_rows_say_the_sum_is_the_whole_time(
    told: list[tuple[float, str, str, int]], runs: list[tuple[float, float, int]], is_over: bool
) -> None:
    events = [
        said(seconds, code, "why", attempt=number) if what == "said" else move(seconds, what, number, code, "why")
        for seconds, what, code, number in told
    ]
    attempts = [
        attempt(number, released=released, stop_code="Preempted", stop_requested_at=at(stopped), started=(stopped,))
        for released, stopped, number in runs
    ]
    job = over("failed", 300) if is_over else Job(created_at=T0, status="running", reason="now")
    tell(job, events, attempts, now=300)


@pytest.mark.django_db(transaction=True)
def test_a_real_life_of_two_attempts_on_its_page(world: None, local_cluster: Any, alice: Any, client: Any) -> None:
    hall = Hall(local_cluster)
    job = hall.submit(alice, "[ $TRAINHALL_ATTEMPT = 2 ] || sleep 60")
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    client.force_login(alice)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert 'class="running running open"' in page
    submission.hold(Job.objects.get(pk=job.pk), user=alice)
    dispatch.stop(Attempt.objects.get(job=job).pk)
    hall.until(job, lambda found: found.status == JobStatus.QUEUED)
    submission.release(Job.objects.get(pk=job.pk), user=alice)
    hall.go()
    job = hall.over(job)
    found = phases(job)
    assert job.finished_at is not None
    assert sum((phase.length for phase in found), timedelta()) == job.finished_at - job.created_at
    told = [phase.kind for phase in found]
    assert told[:4] == [Kind.QUEUED, Kind.LAUNCHING, Kind.SETTING_UP, Kind.RUNNING]
    assert Kind.STOPPING in told and Kind.HELD in told
    assert {phase.attempt for phase in found if phase.kind is Kind.RUNNING} == {1, 2}
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert page.count('<tr><th scope="row"') == len(found) + 1
    assert "Held by alice." in page
    assert job.reason_code == Reason.COMPLETED and timezone.now() > job.finished_at
