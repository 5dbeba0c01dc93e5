"""Jobs with an attempt, and batches, as tests of metrics need them."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from accounts.models import Namespace, User
from jobs.models import Job
from jobs.states import JobStatus
from metrics import ingest, points
from tests import factories


def make_job(owner: User, namespace: Namespace, *, attempts: int = 1, status: str = JobStatus.RUNNING) -> Job:
    """A job whose attempts 1 to N exist, the last one running."""
    job = factories.make_job(owner, namespace, status=status, attempt_number=attempts)
    for number in range(1, attempts + 1):
        factories.make_attempt(job, number=number)
    return job


def wire(
    series: dict[str, list[tuple[int, Any]]] | None = None, *, batch: str | None = None, **fields: Any
) -> dict[str, Any]:
    """A request body: {key: [(step, value), …]}."""
    return {
        "batch": batch or str(uuid.uuid4()),
        "series": [
            {"key": key, "step": [step for step, _value in pairs], "value": [value for _step, value in pairs]}
            for key, pairs in (series or {}).items()
        ],
        **fields,
    }


def read(body: dict[str, Any], *, now: float | None = None) -> points.Batch:
    return points.read(json.dumps(body).encode(), now=time.time() if now is None else now)


def report(job: Job, series: dict[str, list[tuple[int, Any]]], *, attempt: int = 1, **fields: Any) -> ingest.Outcome:
    """Store a batch through the one door."""
    return ingest.accept(job.pk, attempt, read(wire(series, **fields)), namespace_id=job.namespace_id)
