"""Limits of an attempt: the warning before its time limit (C13), which the cluster enforces, and the time it has to start."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from jobs import lifecycle
from jobs.keeping import ends_by
from jobs.models import Attempt
from jobs.states import ACTIVE, HINDERED, LASTING, JobStatus, Reason

WARN_AT = 0.9  # of the limit
PATIENCE = 3  # times as long, where nothing is known to be missing: an image of many gigabytes is on its way
SEEN = timedelta(minutes=1)  # since when a cluster must have been heard: what it does now we would not know


def warn_of_limits() -> int:
    """Tell everyone who looks that a job is about to reach its limit; of how many that is new."""
    now, warned = timezone.now(), 0
    running = Attempt.objects.filter(
        ended_at=None, stop_code="", released_at__isnull=False, job__warned_at=None, job__status__in=ACTIVE
    )
    for attempt in running.select_related("job__namespace"):
        job = attempt.job
        end = ends_by(job, attempt)
        if end is None or job.attempt_number != attempt.number:
            continue
        if now >= end - timedelta(seconds=job.spec["time_limit"] * (1 - WARN_AT)):
            warned += lifecycle.warn_of_limit(job, ends_at=end)  # where somebody else wrote it, the next look does it
    return warned


def end_late_starts() -> int:
    """Take back the place of attempts that cannot start: what a person must mend fails, the rest is queued again; how many."""
    now, ended = timezone.now(), 0
    timeout = timedelta(minutes=settings.TRAINHALL_START_TIMEOUT)
    late = Attempt.objects.filter(
        ended_at=None,
        stop_code="",
        released_at__lt=now - timeout,
        number=F("job__attempt_number"),
        job__status=JobStatus.STARTING,
        job__cancel_requested_at=None,
        cluster__seen_at__gte=now - SEEN,
        cluster__error="",
    ).filter(Q(job__reason_code__in=HINDERED) | Q(released_at__lt=now - PATIENCE * timeout))
    for attempt in late.select_related("job"):
        ended += _end_late(attempt)
    return ended


def _end_late(attempt: Attempt) -> bool:
    """Store the intent and why; stopping and moving on are done as for every other end. False: written meanwhile."""
    job = attempt.job
    code = Reason(job.reason_code) if job.reason_code in LASTING else Reason.START_TIMEOUT
    text = f"It did not start within {settings.TRAINHALL_START_TIMEOUT} min. {job.reason}".strip()
    with transaction.atomic():
        mine = Attempt.objects.filter(pk=attempt.pk, ended_at=None, stop_code="")
        if not mine.update(stop_code=code, reason_code=code, reason=text) or not lifecycle.write(job):
            transaction.set_rollback(True)
            return False
        lifecycle.record(job, kind="cluster", code=Reason.START_TIMEOUT, reason=text)
    return True
