"""Questions about jobs: who may see which, and which of them a list asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from accounts.models import User


class JobQuerySet(models.QuerySet["Job"]):
    def visible_to(self, user: User) -> JobQuerySet:
        """Jobs of the namespaces in which this person has a role: everything else does not exist for them."""
        if user.sees_everything:
            return self
        return self.filter(namespace__memberships__user=user).distinct()

    def for_rows(self) -> JobQuerySet:
        """With all that a row of a list shows: a constant number of queries."""
        return self.select_related("namespace", "owner", "feed", "priority", "held_by", "cancel_requested_by")
