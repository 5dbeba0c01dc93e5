"""Jobs with an attempt, and batches, as tests of metrics need them."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from accounts.models import Namespace, User
from jobs.models import Attempt, Cluster, Job, JobFeed, PriorityClass
from jobs.states import JobStatus
from metrics import ingest, points


def make_job(owner: User, namespace: Namespace, *, attempts: int = 1, status: str = JobStatus.RUNNING) -> Job:
    """A job whose attempts 1 to N exist, the last one running."""
    from portal import seed

    seed.ensure_priorities()
    cluster = seed.ensure_local_cluster()
    assert isinstance(cluster, Cluster)
    job = Job.objects.create(
        namespace=namespace,
        owner=owner,
        cluster=cluster,
        runtime_snapshot={"slug": "numpy"},
        spec_text="{}",
        spec_format="json",
        spec=document_spec(namespace.slug),
        status=status,
        attempt_number=attempts,
        name="digits",
        priority=PriorityClass.objects.get(name="normal"),
        workers=1,
        gpus=0,
        cpu_millis=500,
        memory_bytes=2**29,
    )
    JobFeed.objects.create(job=job)
    for number in range(1, attempts + 1):
        Attempt.objects.create(
            job=job,
            number=number,
            cluster=cluster,
            kubernetes_namespace=namespace.kubernetes_name,
            object_name=f"j-{job.pk}-{number}",
        )
    return job


def document_spec(namespace: str) -> dict[str, Any]:
    """The spec of the smallest job, as submission stores it."""
    from jobs.reading import document_of
    from jobs.spec import spec_to_dict
    from jobs.submission import check
    from portal import seed

    seed.ensure_runtime("numpy")
    return spec_to_dict(check(document_of({"namespace": namespace, "runtime": "numpy", "command": "true"})).spec)


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
