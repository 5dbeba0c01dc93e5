"""What `/metrics` tells Prometheus about the portal itself."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db.models import Count, Min
from prometheus_client import Gauge

from jobs.models import Cluster, Job
from jobs.states import JobStatus

JOBS = Gauge("trainhall_jobs", "Jobs that are not over, by status.", ["status"])
OLDEST_WAIT = Gauge("trainhall_oldest_wait_seconds", "How long the job that waits longest has waited.")
CLUSTER_AGE = Gauge("trainhall_cluster_age_seconds", "Time since a cluster was last seen.", ["cluster"])
LIVE = (JobStatus.QUEUED, JobStatus.STARTING, JobStatus.RUNNING)


def refresh() -> None:
    """Read the gauges' values anew."""
    now = datetime.now(UTC)
    counts = dict(Job.objects.filter(status__in=LIVE).values_list("status").annotate(Count("pk")))
    for status in LIVE:
        JOBS.labels(status=status.value).set(counts.get(status.value, 0))
    oldest = Job.objects.filter(status=JobStatus.QUEUED).aggregate(at=Min("queued_at"))["at"]
    OLDEST_WAIT.set((now - oldest).total_seconds() if oldest else 0)
    for name, seen_at in Cluster.objects.values_list("name", "seen_at"):
        CLUSTER_AGE.labels(cluster=name).set((now - seen_at).total_seconds() if seen_at else float("inf"))
