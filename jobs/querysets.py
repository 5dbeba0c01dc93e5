"""Questions about jobs: who may see which, and which of them a list asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, F, Func, Q, Value, When
from django.db.models.functions import Lower

from accounts.access import Person, visible_namespace_ids
from jobs.states import JobStatus

if TYPE_CHECKING:
    from jobs.models import Job

# what stands in that state comes first, the longest first; then the rest, newest first
_REST = ("-created_at", "-id")
ORDERS: dict[str, tuple[Any, ...]] = {
    "newest": _REST,
    "oldest": ("created_at", "id"),
    "waiting": (Case(When(status=JobStatus.QUEUED, then=F("queued_at"))).asc(nulls_last=True), *_REST),
    "running": (Case(When(status=JobStatus.RUNNING, then=F("started_at"))).asc(nulls_last=True), *_REST),
    "ended": (F("finished_at").desc(nulls_last=True), *_REST),
    "name": (Lower("name"), *_REST),
}
WITH_ARCHIVED, ONLY_ARCHIVED = "1", "only"
# what documents.job_row reads
IN_A_ROW = (
    *("name", "origin", "status", "reason_code", "reason", "version", "attempt_number", "exit_code", "tags"),
    *("priority_id", "cluster_id", "workers", "gpus", "gpu_type", "cancel_requested_at", "archived_at"),
    *("created_at", "queued_at", "started_at", "finished_at"),
    *("namespace__slug", "owner__username", "held_by__username", "archived_by__username"),
    *("feed__headline", "feed__progress"),
)


POSITION = "position"


class JobQuerySet(models.QuerySet):
    def visible_to(self, user: Person) -> JobQuerySet:
        """Jobs of the namespaces in which this person has a role: everything else does not exist for them."""
        return self.in_namespaces(visible_namespace_ids(user))

    def in_namespaces(self, visible: Collection[int] | None) -> JobQuerySet:
        """As `visible_to`, for who has asked already which those are."""
        return self if visible is None else self.filter(namespace_id__in=visible)

    def for_rows(self) -> JobQuerySet:
        """With all that a row of a list shows: a constant number of queries."""
        return self.select_related(
            "namespace", "owner", "feed", "priority", "held_by", "cancel_requested_by", "archived_by"
        ).defer("spec_text", "spec", "runtime_snapshot")

    def rows(self, ids: Sequence[str]) -> list[Job]:
        """These jobs with what a row shows and nothing else, in the order of the ids.

        A list looks for its ids first: only they are sorted, not the joined rows of everything that matches.
        """
        narrow: JobQuerySet = self.select_related("namespace", "owner", "feed", "held_by", "archived_by").only(
            *IN_A_ROW
        )
        found = narrow.in_bulk(list(ids))
        return [found[job_id] for job_id in ids if job_id in found]

    def in_order(self, order: str, *, line: Iterable[str] = ()) -> JobQuerySet:
        """`line`: of the order `position` the ids that wait, the first in line first; what does not wait comes behind."""
        if order != POSITION:
            return self.order_by(*ORDERS[order])
        ids = Value(list(line), output_field=ArrayField(models.CharField()))
        place = Func(ids, F("id"), function="array_position", output_field=models.IntegerField())
        return self.order_by(place.asc(nulls_last=True), *_REST)

    def counts(self) -> dict[str, int]:
        """How many of these jobs stand where."""
        rows = self.order_by().values_list("status").annotate(jobs=models.Count(Value(1)))
        return dict.fromkeys(map(str, JobStatus), 0) | dict(rows)

    def matching(
        self,
        *,
        namespace: str = "",
        statuses: Sequence[str] = (),
        user: str = "",
        tag: str = "",
        q: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        gpu: str = "",
        priority: str = "",
        archived: str = "",
    ) -> JobQuerySet:
        """The filters of the list; empty ones ask nothing, but that what is archived stays out."""
        found = self
        if archived != WITH_ARCHIVED:
            found = found.filter(archived_at__isnull=archived != ONLY_ARCHIVED)
        if namespace:
            found = found.filter(namespace__slug=namespace)
        if statuses:
            found = found.filter(status__in=statuses)
        if user:
            found = found.filter(owner__username=user)
        if tag:
            found = found.filter(tags__contains=[tag])
        if since:
            found = found.filter(created_at__gte=since)
        if until:
            found = found.filter(created_at__lte=until)
        if gpu:
            wanted = {"any": Q(gpus__gt=0), "none": Q(gpus=0)}
            found = found.filter(wanted.get(gpu, Q(gpu_type=gpu)))
        if priority:
            found = found.filter(priority_id=priority)
        for word in q.split()[:8]:
            found = found.filter(
                Q(name__icontains=word)
                | Q(id__startswith=word.lower())
                | Q(owner__username__icontains=word)
                | Q(tags__icontains=word)
            )
        return found
