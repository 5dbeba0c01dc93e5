"""How long the files of a job are kept, in the words of settings."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from jobs.models import Job


def kept_until(job: Job) -> datetime | None:
    """When the files of a job that is over go; None while it is not over, or where there never were any."""
    if job.finished_at is None or not job.is_final or not job.attempt_number:
        return None
    return job.finished_at + timedelta(days=settings.TRAINHALL_KEEP_FILES)
