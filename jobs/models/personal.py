"""What people keep for themselves: drafts, views of the list, pins."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Namespace
from jobs.models.job import Job


class Draft(models.Model):
    """A form not yet sent, kept for its writer. Never holds a secret's value."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="drafts")
    values = models.JSONField(help_text=_("The fields of the form as typed."))
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-updated_at",)

    def __str__(self) -> str:
        return f"draft {self.pk}"


class SavedView(models.Model):
    """A filter of the job list with a name: for one person, or shared in a namespace."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    namespace = models.ForeignKey(
        Namespace, null=True, on_delete=models.CASCADE, related_name="saved_views", help_text=_("Shared with it.")
    )
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000, help_text=_("Query string of the list, columns included."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        constraints = [models.UniqueConstraint(fields=("owner", "name"), name="one_saved_view_per_name")]

    def __str__(self) -> str:
        return self.name


class JobPin(models.Model):
    """A job a person keeps on top."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="pins")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="pins")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=("job", "user"), name="pinned_once")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.job_id}"
