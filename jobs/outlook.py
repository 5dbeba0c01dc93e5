"""What the planner says when asked now: of a job to come, of one that waits, and of the room on a cluster."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Namespace, User
from jobs.capacity import Free, Request
from jobs.cluster.registry import chosen
from jobs.documents import iso
from jobs.forecast import Forecast, Verdict, forecast
from jobs.gang import pod_groups
from jobs.models import Cluster, Job, PriorityClass
from jobs.parsing import Parsed
from jobs.queue import Wait, Waiting, plan
from jobs.snapshot import holding_on, nodes_of, take_snapshot


def look_ahead(parsed: Parsed, *, namespace: Namespace, user: User) -> Forecast:
    """Would this job start now, wait, or never run? Asked before anything is stored."""
    spec = parsed.spec
    now = timezone.now()
    asked = Waiting(
        id="",
        name=spec.name,
        namespace=namespace.slug,
        owner=user.username,
        priority=spec.priority,
        priority_value=PriorityClass.objects.get(pk=spec.priority).value,
        request=Request.of(pod_groups(spec.launcher, spec.resources), gpu_type=spec.resources.gpu_type),
        queued_at=now,
        waited_before=0,
        time_limit=spec.time_limit,
    )
    home = chosen(spec.cluster, namespace.slug)
    for name, snapshot, _jobs in take_snapshot():
        if name == home:
            return forecast(snapshot, asked, now)
    return Forecast(Verdict.NEVER, _("This portal has no cluster yet."))


def why_waiting(job: Job) -> Wait | None:
    """The planner's verdict on a queued job; None if it would be admitted by the next pass."""
    for name, snapshot, waiting in take_snapshot():
        if name == job.cluster_id and job.pk in waiting:
            return next((wait for wait in plan(snapshot, timezone.now()).waits if wait.job_id == job.pk), None)
    return None


def cluster_document(cluster: Cluster, *, reader: User | None = None) -> dict[str, Any]:
    """A cluster as last seen, and what our own ledger leaves free on it.

    What it answered while it could not be seen may name a pod or a namespace: that is for who sees all of them.
    """
    nodes = nodes_of(cluster)
    free = Free(nodes)
    for held in holding_on(cluster):
        free.take(held.request, held.nodes)
    silent = (timezone.now() - cluster.seen_at).total_seconds() if cluster.seen_at else None
    return {
        "name": cluster.name,
        "kind": cluster.kind,
        "seen_at": iso(cluster.seen_at),
        "silent_seconds": round(silent, 1) if silent is not None else None,
        "error": cluster.error if reader is not None and reader.sees_everything else _trouble(cluster),
        "gpus": {
            "total": sum(node.gpus for node in nodes if node.ready),
            "free": sum(max(0, room.gpus) for room in free.rooms.values()),
            "virtual": any(node.get("virtual") for node in cluster.nodes),
        },
        "nodes": [
            {
                **node,
                "free_gpus": max(0, free.rooms[node["name"]].gpus) if node["name"] in free.rooms else 0,
                "free_cpu_millis": max(0, free.rooms[node["name"]].cpu_millis) if node["name"] in free.rooms else 0,
            }
            for node in cluster.nodes
        ],
    }


def _trouble(cluster: Cluster) -> str:
    return _("It cannot be seen now; what it answers is shown to admins.") if cluster.error else ""
