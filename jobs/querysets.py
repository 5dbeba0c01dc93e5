"""Questions about jobs: who may see which, and which of them a list asks for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models

from accounts.access import Person, visible_namespace_ids

if TYPE_CHECKING:
    from jobs.models import Job


class JobQuerySet(models.QuerySet):
    def visible_to(self, user: Person) -> JobQuerySet:
        """Jobs of the namespaces in which this person has a role: everything else does not exist for them."""
        visible = visible_namespace_ids(user)
        return self if visible is None else self.filter(namespace_id__in=visible)

    def for_rows(self) -> JobQuerySet:
        """With all that a row of a list shows: a constant number of queries."""
        return self.select_related("namespace", "owner", "feed", "priority", "held_by", "cancel_requested_by").defer(
            "spec_text", "spec", "runtime_snapshot"
        )

    def rows(self, ids: Sequence[str]) -> list[Job]:
        """These jobs with all that a row shows, in the order of the ids.

        A list looks for its ids first: only they are sorted, not the joined rows of everything that matches.
        """
        found = self.for_rows().in_bulk(list(ids))
        return [found[job_id] for job_id in ids if job_id in found]

    def matching(
        self,
        *,
        namespace: str = "",
        statuses: Sequence[str] = (),
        user: str = "",
        tag: str = "",
        q: str = "",
        since: datetime | None = None,
    ) -> JobQuerySet:
        """The filters of the list; empty ones ask nothing."""
        found = self
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
        for word in q.split()[:8]:
            found = found.filter(
                models.Q(name__icontains=word)
                | models.Q(id__startswith=word.lower())
                | models.Q(owner__username__icontains=word)
                | models.Q(tags__icontains=word)
            )
        return found
