"""What people want of a job: that it stops, waits, or may go. An intent is no move; what follows from it `lifecycle` writes."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from jobs.lifecycle import explain, move, record, write
from jobs.models import Attempt, Job
from jobs.states import JobStatus, Reason


def request_cancel(job: Job, *, actor: User, note: str = "", at_once: bool = False) -> bool:
    """Store the wish to stop. A job with nothing on the cluster is cancelled here; for others the tasks go on."""
    now = timezone.now()
    fields: dict[str, Any] = {"cancel_requested_at": job.cancel_requested_at or now, "cancel_requested_by": actor}
    if note or not job.cancel_note:
        fields["cancel_note"] = note[:500]
    if at_once:
        fields["stop_now_at"] = job.stop_now_at or now
    text = f"Stopped by {actor.username}." + (f" {note}" if note else "")
    with transaction.atomic():
        if job.status == JobStatus.QUEUED:
            return move(
                job,
                JobStatus.CANCELLED,
                code=Reason.STOPPED,
                reason=text,
                actor=actor.username,
                finished_at=now,
                **fields,
            )
        _mark_to_stop(job, Reason.STOPPED)
        if not write(job, **fields):
            transaction.set_rollback(True)
            return False
        record(job, kind="intent", code=Reason.STOPPED, reason=text, actor=actor.username)
    return True


def _mark_to_stop(job: Job, code: Reason) -> None:
    """The attempt that runs is to end, and why; the first reason stays."""
    running = Attempt.objects.filter(job=job, number=job.attempt_number, ended_at=None, stop_code="")
    running.update(stop_code=code)


def hold(job: Job, *, actor: User) -> bool:
    """Keep a job from starting; a running one is stopped and waits as queued and held."""
    with transaction.atomic():
        _mark_to_stop(job, Reason.HELD)
        if not write(job, held_by=actor):
            transaction.set_rollback(True)
            return False
        text = f"Held by {actor.username}."
        record(job, kind="intent", code=Reason.HELD, reason=text, actor=actor.username)
        if job.status == JobStatus.QUEUED:
            explain(job, Reason.HELD, f"Held by {actor.username}: release it to let it start.")
    return True


def hold_for_lead(job: Job, *, text: str) -> bool:
    """A waiting job whose owner has lost the right to run it: it waits for the decision of a lead of its namespace."""
    with transaction.atomic():
        if job.status != JobStatus.QUEUED or not write(job, held_by=job.owner):
            transaction.set_rollback(True)
            return False
        explain(job, Reason.OWNER_LEFT, text)
    return True


def release(job: Job, *, actor: User) -> bool:
    with transaction.atomic():
        if not write(job, held_by=None):
            return False
        record(job, kind="intent", reason=f"Released by {actor.username}.", actor=actor.username)
        if job.status == JobStatus.QUEUED:
            explain(job, Reason.PENDING_EVALUATION, "Waits for the dispatcher's next look.")
    return True
