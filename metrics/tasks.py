"""Celery doors into the sealing of points."""

from __future__ import annotations

import logging

from celery import shared_task

from metrics import sealing

logger = logging.getLogger(__name__)


@shared_task(soft_time_limit=60)
def seal_points() -> None:
    for job_id, attempt in sealing.due():
        if sealed := sealing.seal(job_id, attempt):
            logger.info("%d batches of %s, attempt %d, sealed", sealed, job_id, attempt)


@shared_task(soft_time_limit=120)
def forget_dead_batches() -> None:
    sealing.forget_dead_batches()
