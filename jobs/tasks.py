"""Celery doors into the dispatcher and the reconciler. Nothing they open imports this file."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db.models import Q
from django.utils import timezone

from jobs import adoption, cleaning, code, departures, dispatch, interruptions, limits, surveys, tenancy
from jobs.logs import sealing
from jobs.models import Attempt, Job
from jobs.states import FINAL, JobStatus

logger = logging.getLogger(__name__)


@shared_task(soft_time_limit=30)
def dispatch_waiting() -> None:
    departures.hold_jobs_of_who_left()  # a role may have ended since the last look, and nothing new starts without one
    for attempt_id in dispatch.admit_waiting():
        launch.delay(attempt_id)  # where this message is lost, reconcile_attempts finds the attempt


@shared_task(soft_time_limit=60)
def launch(attempt_id: int) -> None:
    dispatch.launch(attempt_id)


@shared_task(soft_time_limit=60)
def stop_wanted() -> None:
    """Take the next step for every attempt that somebody wants ended."""
    wanted = Attempt.objects.filter(ended_at=None).exclude(stop_code="")
    todo = wanted.filter(Q(stop_requested_at=None) | Q(job__stop_now_at__gte=timezone.now() - timedelta(minutes=5)))
    for attempt_id in todo.values_list("pk", flat=True):
        dispatch.stop(attempt_id)
    adoption.remove_cancelled()


@shared_task(soft_time_limit=120)
def reconcile_attempts() -> None:
    """Go on with whatever a crash interrupted: launches, stops, removals."""
    for attempt_id in Attempt.objects.filter(ended_at=None, released_at=None).values_list("pk", flat=True):
        dispatch.launch(attempt_id)
    stop_wanted()
    interruptions.note_due()


@shared_task(soft_time_limit=30)
def warn_of_limits() -> None:
    limits.warn_of_limits()


@shared_task(soft_time_limit=30)
def end_late_starts() -> None:
    """Their place is given back once their pods are gone; `stop_wanted` takes the steps to that."""
    if limits.end_late_starts():
        stop_wanted()


@shared_task(soft_time_limit=300)
def fetch_waiting_code() -> None:
    """Fetch the code of every job that waits for it."""
    waiting = Job.objects.filter(code_ready_at=None, status=JobStatus.QUEUED).exclude(status__in=FINAL)
    for job_id in waiting.values_list("pk", flat=True)[:20]:
        code.fetch(job_id)


@shared_task(soft_time_limit=120)
def seal_logs() -> None:
    """Move what is full, or over, into the storage."""
    for job_id, over in sealing.due():
        try:
            while sealing.seal(job_id, whole=over):
                pass
        except SoftTimeLimitExceeded:
            raise
        except Exception:  # the others' logs must not wait for one that cannot be sealed
            logger.exception("The log of %s could not be sealed", job_id)


@shared_task(soft_time_limit=600)
def clean_up() -> None:
    """Objects that an ended attempt left, then files past their keeping."""
    cleaning.remove_left_objects()
    cleaning.remove_old_files()


@shared_task(soft_time_limit=60)
def hold_jobs_of_who_left() -> None:
    departures.hold_jobs_of_who_left()


@shared_task(soft_time_limit=110)
def follow_rights() -> None:
    """Write what changed about people and limits to the clusters."""
    tenancy.follow_rights()


@shared_task(soft_time_limit=110)
def survey_clusters() -> None:
    """Look whether the clusters are as an admin prepared them."""
    surveys.look()


@shared_task(soft_time_limit=280)
def keep_namespaces() -> None:
    """Look for what other hands changed on the clusters, and put it right."""
    tenancy.keep()
