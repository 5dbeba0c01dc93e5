"""What `/metrics` tells Prometheus about the portal itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import Count, Min
from prometheus_client import Gauge

from jobs.models import Cluster, ClusterEvent, Job
from jobs.states import JobStatus

JOBS = Gauge("trainhall_jobs", "Jobs that are not over, by status.", ["status"])
OLDEST_WAIT = Gauge("trainhall_oldest_wait_seconds", "How long the job that waits longest has waited.")
CLUSTER_AGE = Gauge("trainhall_cluster_age_seconds", "Time since a cluster was last seen.", ["cluster"])
UNTOLD = Gauge(
    "trainhall_untold_cluster_messages",
    "Messages of clusters in the last day that no sentence of ours tells, and that people read as they are.",
    ["reason"],
)
DAY = timedelta(days=1)
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
    UNTOLD.clear()  # a reason that is heard no more has no series either
    untold = ClusterEvent.objects.filter(is_known=False, last_at__gte=now - DAY)
    for reason, count in untold.order_by().values_list("reason").annotate(Count("pk")):
        UNTOLD.labels(reason=reason).set(count)
