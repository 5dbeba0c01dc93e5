"""Jobs that somebody made on a cluster beside the portal, and that wait in its queue since."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.catalogue import Cluster
from jobs.models.job import Job


class Adoption(models.Model):
    """One object of a cluster, which is one job for ever: made again under the same name it is another."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="adoption")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="adoptions")
    uid = models.CharField(max_length=64)
    kubernetes_namespace = models.CharField(max_length=63)
    object_name = models.CharField(max_length=63)
    created_by = models.CharField(max_length=200, blank=True, help_text=_("Who made it, as the API server calls them."))
    is_known = models.BooleanField(help_text=_("Whether that is somebody who has a role in its namespace here."))
    manifest = models.JSONField(help_text=_("As its maker wrote it, with what the API server filled in."))
    gone_at = models.DateTimeField(null=True, help_text=_("When a cancelled one was seen gone from the cluster."))

    class Meta:
        constraints = [models.UniqueConstraint(fields=("cluster", "uid"), name="adopted_once")]

    def __str__(self) -> str:
        return f"{self.kubernetes_namespace}/{self.object_name}"
