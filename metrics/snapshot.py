"""What the database says about a topic: all of it, or what is new since a number. One shape with REST (DESIGN 12)."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, F, Sum

from jobs.documents import job_document, job_row, progress_of
from jobs.lists.filters import JobFilter
from jobs.logs import lines as logs
from jobs.logs.stretches import PAGE_BYTES
from jobs.models import Cluster, Job, JobFeed
from jobs.outlook import cluster_document
from jobs.states import JobStatus
from metrics import store
from metrics.arrivals import Arrival, since
from metrics.documents import arrived, summary
from metrics.rows import one_moment

LOG_LINES = 500  # of a snapshot, and no more than PAGE_BYTES of them
LOG_CHANGES = 5000  # lines of one change; further behind than this a reader gets a snapshot
JOB_ROWS = 50  # of a snapshot: the first page of the list


def job(job_id: str) -> tuple[int, dict[str, Any]]:
    found = Job.objects.for_rows().get(pk=job_id)
    return found.version, {"job": job_document(found)}


def points(job_id: str) -> tuple[int, dict[str, Any]]:
    with one_moment():
        feed = JobFeed.objects.get(pk=job_id)
        series = store.list_series(job_id)
    return feed.points_seq, {"series": [summary(one) for one in series], "progress": progress_of(feed)}


def points_since(job_id: str, seq: int) -> tuple[int, list[Arrival] | None, dict[str, Any] | None]:
    """arrivals.since, with the progress as it is shown."""
    now, arrivals, progress = since(job_id, seq)
    return now, arrivals, progress_of(JobFeed(progress=progress))


def points_change(arrivals: list[Arrival], progress: dict[str, Any] | None) -> dict[str, Any]:
    """Batches as one change: each series once, its points in the order of their arrival."""
    series: dict[tuple[str, int, int], dict[str, Any]] = {}
    for arrival in arrivals:
        for one in arrival.series:
            new = arrived(one, rank=arrival.rank, attempt=arrival.attempt)
            if known := series.get((one.key, arrival.rank, arrival.attempt)):
                known["group"] = new["group"]
                for column in ("step", "time", "value"):
                    known[column] += new[column]
            else:
                series[one.key, arrival.rank, arrival.attempt] = new
    return {"series": list(series.values()), "progress": progress}


def lines(job_id: str, worker: str) -> tuple[int, dict[str, Any]]:
    # the number first: lines that come after it are left to the changes
    now = logs.last_seq(job_id)
    found = logs.read_lines(job_id, before=now + 1, worker=worker or None, limit=LOG_LINES, most_bytes=PAGE_BYTES)
    return now, {"lines": found}


def lines_since(job_id: str, seq: int) -> tuple[int, list[dict[str, Any]] | None]:
    """The lines of all workers after `seq`; None where they are too many or too long, or `seq` is not of this database."""
    now = logs.last_seq(job_id)
    if seq > now or now - seq > LOG_CHANGES:
        return now, None
    if now == seq:
        return now, []
    found = logs.read_lines(job_id, after=seq, limit=LOG_CHANGES, most_bytes=PAGE_BYTES)
    if not found or found[-1]["seq"] < now:
        return now, None  # cut off at that many bytes
    return now, [line for line in found if line["seq"] <= now]


def _visible(filtered: JobFilter, namespaces: frozenset[int] | None) -> Any:
    jobs = Job.objects.matching(**filtered.as_arguments())
    return jobs if namespaces is None else jobs.filter(namespace_id__in=namespaces)


def job_rows(filtered: JobFilter, namespaces: frozenset[int] | None) -> list[dict[str, Any]]:
    return [job_row(one) for one in _visible(filtered, namespaces).for_rows()[:JOB_ROWS]]


def job_versions(filtered: JobFilter, namespaces: frozenset[int] | None) -> dict[str, int]:
    """The ids and versions of what `job_rows` would show: enough to notice that something was missed."""
    return dict(_visible(filtered, namespaces).values_list("pk", "version")[:JOB_ROWS])


def changed_rows(job_ids: list[str]) -> list[tuple[int, dict[str, Any]]]:
    """The rows of some jobs, each with its namespace."""
    return [(one.namespace_id, job_row(one)) for one in Job.objects.for_rows().filter(pk__in=job_ids)]


def matching_ids(filtered: JobFilter, job_ids: list[str]) -> set[str]:
    return set(Job.objects.filter(pk__in=job_ids).matching(**filtered.as_arguments()).values_list("pk", flat=True))


def positions(job_ids: list[str]) -> dict[str, tuple[int, int]]:
    """Of each job where its points and its lines stand."""
    rows = JobFeed.objects.filter(pk__in=job_ids).values_list("pk", "points_seq", "log_seq")
    return {job_id: (points_seq, log_seq) for job_id, points_seq, log_seq in rows}


def namespace(slug: str) -> dict[str, Any]:
    """How many jobs of a namespace stand where, and the GPUs of those that hold some."""
    live = [JobStatus.QUEUED, JobStatus.STARTING, JobStatus.RUNNING]
    counts = (
        Job.objects.filter(namespace__slug=slug, status__in=live)
        .order_by()
        .values("status")
        .annotate(jobs=Count("pk"), gpus=Sum(F("workers") * F("gpus")))
    )
    found = {row["status"]: row for row in counts}
    return {
        "namespace": slug,
        "jobs": {status.value: found[status]["jobs"] if status in found else 0 for status in live},
        "gpus": {status.value: found[status]["gpus"] if status in found else 0 for status in live},
    }


def clusters() -> dict[str, Any]:
    return {"clusters": [cluster_document(one) for one in Cluster.objects.all()]}
