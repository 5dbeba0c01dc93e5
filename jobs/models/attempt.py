"""The placements of a job on clusters, and the ledger of what they held."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Namespace
from jobs.models.catalogue import Cluster
from jobs.models.job import Job


class Attempt(models.Model):
    """One placement of a job on a cluster: one object name, never used again."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="attempts")
    kubernetes_namespace = models.CharField(max_length=63)
    object_name = models.CharField(max_length=63)
    uid = models.CharField(max_length=64, blank=True, help_text=_("The cluster's own id of the Job object."))
    placement = models.JSONField(default=list, help_text=_("Node names the planner had in mind; a hint only."))
    resume_from = models.TextField(
        null=True, help_text=_("The checkpoint it was told to go on from; null before that.")
    )
    admitted_at = models.DateTimeField(default=timezone.now)
    created_on_cluster_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    stop_code = models.CharField(max_length=40, blank=True, help_text=_("Why it is being ended by us, if it is."))
    stop_requested_at = models.DateTimeField(null=True)
    stop_deadline = models.DateTimeField(null=True)
    reason_code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    exit_code = models.IntegerField(null=True)
    cause = models.JSONField(default=dict, help_text=_("explain.Cause of a failure: kind, owner, evidence, next step."))
    interruption = models.JSONField(
        default=dict,
        help_text=_("When somebody took it away: code, told_at, deadline; then losses.Loss."),
    )
    ended_at = models.DateTimeField(null=True, help_text=_("When its pods were gone; its token dies 15 min later."))
    deleted_at = models.DateTimeField(null=True, help_text=_("When its objects were seen gone from the cluster."))

    class Meta:
        ordering = ("job", "number")
        constraints = [
            models.UniqueConstraint(fields=("job", "number"), name="attempt_number_once"),
            # an adopted object bears the name that its maker gave it, which never begins like ours
            models.UniqueConstraint(
                fields=("object_name",), condition=Q(object_name__startswith="j-"), name="attempt_object_name_once"
            ),
        ]
        indexes = [
            models.Index("cluster", name="attempt_not_deleted", condition=Q(deleted_at=None)),
        ]

    def __str__(self) -> str:
        return self.object_name


class Worker(models.Model):
    """One pod of an attempt."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="workers")
    role = models.CharField(max_length=20, default="worker")
    index = models.PositiveIntegerField()
    node = models.CharField(max_length=253, blank=True)
    pod_name = models.CharField(max_length=253, blank=True)
    pod_uid = models.CharField(max_length=64, blank=True)
    phase = models.CharField(max_length=20, default="Pending", help_text=_("The pod's phase."))
    exit_code = models.IntegerField(null=True)
    signal = models.IntegerField(null=True)
    reason = models.CharField(max_length=100, blank=True)
    message = models.TextField(blank=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    log_number = models.PositiveBigIntegerField(default=0, help_text=_("Number of the last line stored."))
    log_positions = models.JSONField(
        default=dict,
        blank=True,
        help_text=_("Where the stored part of each container's log ends, in the cluster's words."),
    )
    log_opened = models.JSONField(default=list, blank=True, help_text=_("Tracebacks that its next lines go on with."))

    class Meta:
        ordering = ("attempt", "role", "index")
        constraints = [models.UniqueConstraint(fields=("attempt", "role", "index"), name="worker_once")]

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"


class UsageInterval(models.Model):
    """What a worker held, from admission until its pod was gone: the ledger of GPU-hours and of quota."""

    worker = models.OneToOneField(Worker, on_delete=models.PROTECT, related_name="usage")
    namespace = models.ForeignKey(Namespace, on_delete=models.PROTECT, related_name="usage")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="usage")
    priority = models.CharField(max_length=20)
    gpus = models.PositiveIntegerField()
    gpu_type = models.CharField(max_length=60, blank=True)
    cpu_millis = models.PositiveIntegerField()
    memory_bytes = models.PositiveBigIntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index("namespace", name="usage_open", condition=Q(ended_at=None))]

    def __str__(self) -> str:
        return f"{self.worker}: {self.gpus} GPUs"
