"""Attempts that are taken away: their owner is told once, and what was saved, and so how much is lost, is kept (C15, C25).

It is told while they still save. What they saved is looked for when their pods are gone and before their job goes on, since its
next attempt writes into the same folder.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils.module_loading import import_string
from django.utils.translation import gettext, ngettext

from jobs import exits, lifecycle
from jobs.causes.words import unchanged
from jobs.checkpoints import files_of, newest_written
from jobs.cluster.notices import Notice
from jobs.exceptions import ClusterUnavailable
from jobs.losses import Loss, Outcome, loss_of
from jobs.models import ADOPTED, Attempt, Job, JobFeed
from jobs.states import FINAL, NOT_CHARGED, Reason

LOOKED_AT_ONCE = 20
TRIES = 5
_FOLLOWED = NOT_CHARGED - {Reason.START_TIMEOUT}


def tell(attempt: Attempt, notice: Notice) -> None:
    """That it has to go, and until when it may save: on its page and in its events, once."""
    job = attempt.job
    if attempt.interruption or attempt.ended_at or job.attempt_number != attempt.number or job.is_final:
        return
    found = {"code": notice.reason, "told_at": notice.told_at.timestamp()}
    until = ""
    if notice.deadline is not None:
        found["deadline"] = notice.deadline.timestamp()
        until = f" It was told to stop, and has until {notice.deadline:%H:%M:%S} UTC to save."
    with transaction.atomic():
        mine = Attempt.objects.filter(pk=attempt.pk, ended_at=None, interruption={})
        if not mine.update(interruption=found) or not lifecycle.explain(
            job, notice.reason, f"{notice.text.rstrip('.')}.{until}"
        ):
            transaction.set_rollback(True)  # written meanwhile: the next look tells it
            return
    attempt.interruption = found


def note_due() -> None:
    """What interrupted attempts saved, of jobs that are to go on."""
    over = Attempt.objects.filter(ended_at__isnull=False, number=F("job__attempt_number"), released_at__isnull=False)
    due = over.exclude(job__status__in=FINAL).exclude(interruption__has_key="outcome").filter(_was_interrupted())
    for attempt in due.select_related("job")[:LOOKED_AT_ONCE]:
        note(attempt)


def note_before(attempt: Attempt) -> None:
    """The same of the attempt before, which writes no more."""
    before = Attempt.objects.filter(_was_interrupted(), job=attempt.job_id, number=attempt.number - 1)
    for one in before.exclude(released_at=None).exclude(interruption__has_key="outcome").select_related("job"):
        note(one)


def _was_interrupted() -> Q:
    """Ended by no fault of its own, so that another attempt follows."""
    ended = Q(stop_code__in=_FOLLOWED) | Q(reason_code__in=_FOLLOWED) | Q(exit_code=exits.CHECKPOINTED, stop_code="")
    return ended & ~Q(job__origin=ADOPTED)  # where those save is their maker's business


def note(attempt: Attempt) -> None:
    """Store what it saved, and tell it; once."""
    told_at = attempt.interruption.get("told_at")
    if told_at is None and attempt.stop_requested_at is not None:
        told_at = attempt.stop_requested_at.timestamp()
    reached = _reached(attempt)
    try:
        loss = loss_of(newest_written(files_of(attempt)), told_at=told_at, reached=reached)
    except ClusterUnavailable:
        loss = Loss(Outcome.UNKNOWN, reached=reached)
    for _try in range(TRIES):
        if _stored(attempt, told_at, loss):
            return


def _stored(attempt: Attempt, told_at: float | None, loss: Loss) -> bool:
    """False if the job was written meanwhile: people write one now and then, and its next attempt waits for nobody."""
    found = {**attempt.interruption, "told_at": told_at, **asdict(loss)}
    with transaction.atomic():
        mine = Attempt.objects.filter(pk=attempt.pk).exclude(interruption__has_key="outcome")
        if not mine.update(interruption=found):
            return True
        job = Job.objects.get(pk=attempt.job_id)
        if not lifecycle.write(job):
            transaction.set_rollback(True)
            return False
        lifecycle.record(job, kind="cluster", attempt=attempt.number, reason=loss.words(unchanged, _plural))
    attempt.interruption = found
    return True


def _reached(attempt: Attempt) -> int | None:
    """The last step it reported, by its numbers or by its progress."""
    last: int | None = import_string(settings.TRAINHALL_LAST_STEP)(attempt.job_id, attempt.number)
    if last is not None:
        return last
    progress = JobFeed.objects.filter(pk=attempt.job_id).values_list("progress", flat=True).first() or {}
    return progress.get("step") if progress.get("attempt", 1) == attempt.number else None


def _plural(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def told(attempt: Attempt) -> dict[str, Any] | None:
    """In the active language; None where it was not interrupted, or nobody has looked yet."""
    kept = attempt.interruption
    if "outcome" not in kept:
        return None
    loss = Loss(Outcome(kept["outcome"]), kept["checkpoint"], kept["step"], kept["reached"])
    return {
        "attempt": attempt.number,
        "outcome": loss.outcome.value,
        "checkpoint": loss.checkpoint,
        "step": loss.step,
        "reached": loss.reached,
        "lost": loss.lost,
        "text": loss.words(gettext, ngettext),
    }
