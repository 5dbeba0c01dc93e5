"""Moments that follow from a job's rows: when its time limit ends it, and until when its files are kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from jobs.models import Attempt, Job


def ends_by(job: Job, attempt: Attempt) -> datetime | None:
    """When the time limit ends this attempt of the job; None before it is released. Each attempt has the whole limit."""
    return attempt.released_at + time_limit(job) if attempt.released_at else None


def time_limit(job: Job) -> timedelta:
    return timedelta(seconds=job.spec["time_limit"])


def kept_until(job: Job) -> datetime | None:
    """When the files of a job that is over go; None while it is not over, or where there never were any."""
    if job.finished_at is None or not job.is_final or not job.attempt_number or job.is_adopted:
        return None
    return job.finished_at + timedelta(days=settings.TRAINHALL_KEEP_FILES)
