"""The warning before a time limit ends an attempt (C13). The cluster enforces the limit, not we."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from jobs import lifecycle
from jobs.keeping import ends_by
from jobs.models import Attempt
from jobs.states import ACTIVE

WARN_AT = 0.9  # of the limit


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
