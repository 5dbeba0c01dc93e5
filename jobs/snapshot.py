"""What the planner decides on, read from the database: the waiting, the holding, the limits, the nodes."""

from __future__ import annotations

from collections.abc import Iterator

from accounts.models import Namespace
from jobs.capacity import Node, Request
from jobs.cluster.registry import topology
from jobs.gang import places
from jobs.keeping import ends_by, time_limit
from jobs.models import Attempt, Cluster, Job, PriorityClass
from jobs.queue import Holding, NamespaceLimit, Snapshot, Waiting
from jobs.states import HELD_FOR_CAUSE, JobStatus, Reason


def take_snapshot() -> Iterator[tuple[str, Snapshot, dict[str, Job]]]:
    """For each cluster its name, the snapshot, and the waiting jobs by id: a constant number of queries a cluster."""
    limits = {priority.name: priority.max_jobs_per_user for priority in PriorityClass.objects.all()}
    namespaces = {
        namespace.slug: NamespaceLimit(namespace.gpu_limit, namespace.cpu_limit_millis, namespace.memory_limit_bytes)
        for namespace in Namespace.objects.all()
    }
    for cluster in Cluster.objects.order_by("name"):
        waiting = list(
            Job.objects.filter(status=JobStatus.QUEUED, cluster=cluster).select_related(
                "namespace", "owner", "priority", "held_by"
            )
        )
        snapshot = Snapshot(
            waiting=[waiting_of(job) for job in waiting],
            holding=holding_on(cluster),
            nodes=nodes_of(cluster),
            seen_at=cluster.seen_at,
            jobs_per_user=limits,
            namespaces=namespaces,
        )
        yield cluster.name, snapshot, {job.pk: job for job in waiting}


def holding_on(cluster: Cluster) -> list[Holding]:
    """What the attempts that have not ended hold there, by our own ledger."""
    attempts = Attempt.objects.filter(cluster=cluster, ended_at=None).select_related("job__namespace", "job__owner")
    return [_holding_of(attempt) for attempt in attempts.prefetch_related("workers")]


def nodes_of(cluster: Cluster) -> list[Node]:
    keys = topology(cluster.name)
    return [
        Node(
            name=node["name"],
            gpus=node["gpus"],
            gpu_type=node["gpu_type"],
            cpu_millis=node["cpu_millis"],
            memory_bytes=node["memory_bytes"],
            ready=node["ready"],
            domains=tuple(node.get("domains", {}).get(key, "") for key in keys),
        )
        for node in cluster.nodes
    ]


def domains_of(cluster: Cluster) -> dict[str, dict[str, str]]:
    """What the labels of its nodes say about where they stand, by node."""
    return {node["name"]: node.get("domains", {}) for node in cluster.nodes}


def request_of(job: Job) -> Request:
    return Request.of(job.pod_groups, gpu_type=job.gpu_type)


def waiting_of(job: Job) -> Waiting:
    return Waiting(
        id=job.pk,
        name=job.name,
        namespace=job.namespace.slug,
        owner=job.owner.username,
        priority=job.priority_id,
        priority_value=job.priority.value,
        request=request_of(job),
        queued_at=job.queued_at,
        waited_before=job.waited_seconds,
        time_limit=job.spec["time_limit"],
        code_ready=job.code_ready_at is not None,
        held_by=job.held_by.username if job.held_by else "",
        held_for=(Reason(job.reason_code), job.reason) if job.reason_code in HELD_FOR_CAUSE else None,
        not_before=job.not_before,
        failed_before=job.reason if job.reason_code == Reason.RETRIED else "",
    )


def _holding_of(attempt: Attempt) -> Holding:
    job = attempt.job
    order = {place: position for position, place in enumerate(places(job.pod_groups))}
    workers = sorted(attempt.workers.all(), key=lambda worker: order.get((worker.role, worker.index), len(order)))
    return Holding(
        job_id=job.pk,
        namespace=job.namespace.slug,
        owner=job.owner.username,
        priority=job.priority_id,
        request=request_of(job),
        nodes=tuple(worker.node for worker in workers),
        ends_by=ends_by(job, attempt)
        or attempt.admitted_at + time_limit(job),  # of one not released yet, at the soonest
    )
