"""Where waiting jobs stand in the line: the planner's own order, for as many jobs as a list has, in two queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, F, Sum, Value
from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.models import Attempt, Job
from jobs.queue import ranked
from jobs.states import JobStatus


class Place(NamedTuple):
    """From 1, of all that wait for the same cluster. No promise: one behind may go first where this one finds no room."""

    position: int
    of: int

    @property
    def words(self) -> str:
        return _("#%(position)s of %(of)s") % self._asdict()


class _InLine(NamedTuple):
    id: str
    cluster: str
    namespace: str
    priority_value: int
    queued_at: datetime
    waited_before: float
    held_by: int | None


def places(*, now: datetime | None = None) -> dict[str, Place]:
    """The place of every job that waits and is not held, the first in line first.

    Held ones keep their place, as they do before the planner, but a place tells nothing of when they start.
    """
    lines: dict[str, list[_InLine]] = defaultdict(list)
    for row in _waiting():
        lines[row.cluster].append(row)
    # what a namespace holds decides between namespaces only
    used = _used() if any(len({row.namespace for row in line}) > 1 for line in lines.values()) else {}
    found = [
        (position, cluster, job, len(line))
        for cluster, line in lines.items()
        for position, job in enumerate(ranked(line, used.get(cluster, {}), now or timezone.now()), start=1)
    ]
    found.sort(key=lambda one: one[:2])
    return {job.id: Place(position, of) for position, _cluster, job, of in found if job.held_by is None}


def _waiting() -> list[_InLine]:
    fields = ("pk", "cluster_id", "namespace__slug", "priority__value", "queued_at", "waited_seconds", "held_by_id")
    rows = Job.objects.filter(status=JobStatus.QUEUED).order_by().values_list(*fields)
    return [_InLine._make(row) for row in rows]


def _used() -> dict[str, dict[str, int]]:
    """By cluster and namespace, what snapshot.holding_on would tell the planner."""
    whole = BigIntegerField()
    weight = Sum(Greatest(Value(1), F("workers__usage__gpus"), output_field=whole))
    rows = Attempt.objects.filter(ended_at=None).order_by().values_list("cluster_id", "job__namespace__slug")
    used: dict[str, dict[str, int]] = defaultdict(dict)
    for cluster, namespace, weighs in rows.annotate(weighs=weight):
        used[cluster][namespace] = weighs
    return used


def with_places(rows: list[dict[str, Any]], line: Mapping[str, Place] | None = None) -> None:
    """Say `queue_position` and `queue_length` in rows as documents.job_row makes them; asks only where one of them waits."""
    if line is None and any(row["status"] == JobStatus.QUEUED and not row["held_by"] for row in rows):
        line = places()
    for row in rows:
        place = (line or {}).get(row["id"]) if row["status"] == JobStatus.QUEUED else None
        row["queue_position"], row["queue_length"] = place or (None, None)
