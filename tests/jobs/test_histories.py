"""F11: however observations are repeated, swapped and replayed, a final state is never left and nothing counts twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Count
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import lifecycle, submission
from jobs.logs.lines import LogFollower
from jobs.looks import Look, bring_in_line
from jobs.models import Attempt, Job, JobEvent, UsageInterval
from jobs.states import FINAL, MOVES, JobStatus
from tests.factories import make_job
from tests.jobs.test_observed import condition, done, failed, job, pod

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

Form = tuple[Any, list[Any]]  # the Job as listed (None: it is gone), and its pods

SUSPENDED: Form = (job(suspend=True, started=False), [])
RELEASED: Form = (job(), [])
PENDING: Form = (job(), [pod("Pending")])
RUNNING: Form = (job(), [pod("Running")])
VANISHED: Form = (None, [])
BEGIN = [SUSPENDED, RELEASED, PENDING, RUNNING]
OUTCOMES: dict[str, list[Form]] = {
    "complete": [(job(condition("SuccessCriteriaMet")), [done()]), (job(condition("Complete")), [done()])],
    "deleted at once": [(None, [done()])],
    "failed": [
        (job(condition("FailureTarget", "BackoffLimitExceeded")), [failed(3)]),
        (job(condition("Failed", "BackoffLimitExceeded")), [failed(3)]),
    ],
    "out of memory": [(job(condition("Failed")), [failed(137, "OOMKilled")]), VANISHED],
    "deadline": [(job(condition("Failed", "DeadlineExceeded"), activeDeadlineSeconds=60), [failed(143)])],
    "vanished": [VANISHED],
    "evicted": [(job(condition("Failed")), [failed(137, status={"reason": "Evicted"})])],
    "drained": [
        (
            job(condition("Failed", "PodFailurePolicy")),
            [failed(143, conditions=[condition("DisruptionTarget", "EvictionByEvictionAPI")])],
        )
    ],
}


@dataclass(frozen=True)
class Step:
    form: Form
    is_stale: bool = False  # brought in by a process that read the rows before something else happened
    cancels: bool = False  # alice asks for a stop just before


@st.composite
def histories(draw: st.DrawFn, *, may_cancel: bool) -> tuple[list[Form], list[Step]]:
    """A true history, and what a bad watch makes of it: repeats, replays of older forms, swaps, stale rows.

    The last look is an honest one, as the relist takes it at least every minute.
    """
    path = BEGIN[draw(st.integers(0, 3)) :] + OUTCOMES[draw(st.sampled_from(sorted(OUTCOMES)))]
    seen: list[int] = []
    for number in range(len(path)):
        seen.append(number)
        seen += draw(st.lists(st.integers(0, number), max_size=1))
    if swapped := draw(st.integers(0, len(seen) - 1)):
        seen[swapped - 1], seen[swapped] = seen[swapped], seen[swapped - 1]
    stop = draw(st.integers(0, len(seen))) if may_cancel else None
    steps = [Step(path[number], draw(st.booleans()), index == stop) for index, number in enumerate(seen)]
    return path, [*steps, Step(path[-1])]


class Story:
    """One job, admitted, and the watcher's hand that brings it in line."""

    def __init__(self, alice: Any, vision: Any, cluster: Any) -> None:
        self.alice = alice
        self.follower = LogFollower(cluster)
        self.job_id = make_job(alice, vision).pk
        self.attempt_id = self.admit()
        self.rows = self.read()

    def admit(self) -> int:
        attempt = lifecycle.admit(Job.objects.get(pk=self.job_id), ["node1"])
        assert attempt is not None
        Attempt.objects.filter(pk=attempt.pk).update(uid=f"u-{attempt.pk}", released_at=attempt.admitted_at)
        return attempt.pk

    def read(self) -> Attempt:
        return Attempt.objects.select_related("job").prefetch_related("workers").get(pk=self.attempt_id)

    def take(self, step: Step) -> None:
        if step.cancels:
            submission.cancel(Job.objects.for_rows().get(pk=self.job_id), user=self.alice)
        if not step.is_stale:
            self.rows = self.read()
        bring_in_line([Look.at(self.rows, *step.form, workers=list(self.rows.workers.all()), others=())], self.follower)

    @property
    def job(self) -> Job:
        return Job.objects.get(pk=self.job_id)

    @property
    def told(self) -> tuple[Any, ...]:
        """All that people see of where it stands, and how often it was written."""
        shown = ("status", "reason_code", "reason", "exit_code", "finished_at", "version")
        return Job.objects.values_list(*shown, Count("events")).get(pk=self.job_id)

    def check_the_books(self) -> None:
        moves = list(JobEvent.objects.filter(job=self.job_id, kind="move").order_by("pk").values_list("old", "new"))
        assert all(JobStatus(new) in MOVES[JobStatus(old)] for old, new in moves)
        assert [new for _old, new in moves[:-1]] == [old for old, _new in moves[1:]], "each move begins where one ended"
        attempt = self.read()
        open_usage = UsageInterval.objects.filter(worker__attempt=attempt, ended_at=None).exists()
        assert open_usage == (attempt.ended_at is None), "the quota is held exactly as long as the attempt"


@contextmanager
def undone() -> Iterator[None]:
    """A transaction per history: hundreds in one would slow PostgreSQL down."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def tell(world: None, alice: Any, vision: Any, local_cluster: Any) -> Any:
    return lambda: Story(alice, vision, local_cluster)


# 1,000 in all (the bar is 5,000); the number that a failure prints reproduces it
many = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], print_blob=True)


@settings(many, max_examples=500)
@given(histories(may_cancel=True))
def test_a_final_state_is_never_left_and_a_repeat_changes_nothing(
    tell: Any, history: tuple[list[Form], list[Step]]
) -> None:
    with undone():
        story = tell()
        for step in history[1]:
            before = story.told
            story.take(step)
            after = story.told
            if before[0] in FINAL:
                assert after == before
            if not step.is_stale:
                story.take(Step(step.form))
                assert story.told == after, "a repeat"
        story.check_the_books()


@settings(many, max_examples=300)
@given(histories(may_cancel=False))
def test_repeats_swaps_and_replays_lead_where_the_true_history_leads(
    tell: Any, history: tuple[list[Form], list[Step]]
) -> None:
    path, steps = history
    with undone():
        plain, disturbed = tell(), tell()
        for form in path:
            plain.take(Step(form))
        for step in steps:
            disturbed.take(step)
        assert disturbed.job.status == plain.job.status
        assert (plain.job.status in FINAL) or plain.job.status == JobStatus.QUEUED


@settings(many, max_examples=200)
@given(histories(may_cancel=False))
def test_an_old_attempt_says_nothing_about_the_next(tell: Any, history: tuple[list[Form], list[Step]]) -> None:
    with undone():
        story = tell()
        for form in (RUNNING, OUTCOMES["evicted"][0]):
            story.take(Step(form))
        assert story.job.status == JobStatus.QUEUED
        story.admit()
        before = story.told
        for step in history[1]:
            story.take(step)
        assert story.told == before


def test_the_only_sign_of_an_outcome_is_not_lost_to_somebody_who_writes_at_that_moment(tell: Any) -> None:
    story = tell()
    story.take(Step(RUNNING))
    story.rows = story.read()
    assert lifecycle.write(story.job, notes="bob was here")
    story.take(Step((None, [done()]), is_stale=True))
    story.take(Step(VANISHED))
    assert story.job.status == JobStatus.SUCCEEDED
