"""What people have running and waiting, by namespace: `accounts` asks it, by a dotted path, before it takes a role away."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Count, Q

from jobs.models import Job
from jobs.states import JobStatus


def of_people(pks: Collection[int]) -> dict[tuple[int, str], tuple[int, int]]:
    """(owner, slug): (running, waiting). One query."""
    going = Job.objects.filter(owner__in=pks, status__in=(JobStatus.QUEUED, JobStatus.STARTING, JobStatus.RUNNING))
    waits = Q(status=JobStatus.QUEUED)
    rows = (
        going.order_by()
        .values_list("owner_id", "namespace__slug")
        .annotate(running=Count("pk", filter=~waits), waiting=Count("pk", filter=waits))
    )
    return {(owner, slug): (running, waiting) for owner, slug, running, waiting in rows}
