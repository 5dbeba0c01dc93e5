"""Rows for stories that need a job but not its journey."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from accounts.models import Namespace, User
from jobs.models import Attempt, Job, JobFeed, Worker
from jobs.spec import JobSpec, spec_to_dict
from portal import seed


def make_job(owner: User, namespace: Namespace, *, name: str = "digits", **fields: Any) -> Job:
    """A queued job as submission would leave it, with nothing admitted yet."""
    seed.ensure_priorities()
    runtime = seed.ensure_runtime("shell")
    spec = JobSpec(namespace=namespace.slug, name=name, runtime=runtime.slug, image=runtime.image, command="echo hello")
    job = Job.objects.create(
        owner=owner,
        namespace=namespace,
        cluster=seed.ensure_clusters()[0],
        runtime_snapshot=runtime.snapshot(),
        spec=spec_to_dict(spec),
        spec_text='{"command": "echo hello"}',
        spec_format="json",
        name=name,
        priority_id=spec.priority,
        workers=spec.resources.workers,
        gpus=spec.resources.gpus,
        cpu_millis=spec.resources.cpu_millis,
        memory_bytes=spec.resources.memory_bytes,
        code_ready_at=timezone.now(),
        **fields,
    )
    JobFeed.objects.create(job=job)
    return job


def make_attempt(job: Job, *, number: int = 1, workers: int = 1, **fields: Any) -> Attempt:
    """An attempt with its workers; the job stands where the caller says it stands."""
    attempt = Attempt.objects.create(
        job=job,
        number=number,
        cluster=job.cluster,
        kubernetes_namespace=job.namespace.kubernetes_name,
        object_name=f"j-{job.pk}-{number}",
        **fields,
    )
    Worker.objects.bulk_create(Worker(attempt=attempt, index=index) for index in range(workers))
    return attempt


def leave_file(job: Job, path: str, body: bytes) -> Path:
    """A file as a pod of the job would leave it on the local cluster."""
    run = settings.TRAINHALL_DATA_DIR / "cluster" / job.namespace.kubernetes_name / "volumes" / "runs" / job.pk
    file = Path(run / path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body)
    return file
