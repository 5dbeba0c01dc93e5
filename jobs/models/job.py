"""A job, its secrets and its events. What a status means is in `states`; only `lifecycle` changes Job.status."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Namespace
from jobs.gang import PodGroup, pod_groups
from jobs.models.catalogue import Cluster, CodeArchive, PriorityClass
from jobs.querysets import JobQuerySet
from jobs.spec import JobSpec, Resources, spec_from_dict
from jobs.states import JobStatus

ID_ALPHABET = "0123456789bcdfghjklmnpqrstvwxyz"  # no vowels: an id never spells a word

ADOPTED = "kubectl"  # the origin of a job that was made on its cluster; nobody can send it

STATUS_LABELS = {
    JobStatus.QUEUED: _("queued"),
    JobStatus.STARTING: _("starting"),
    JobStatus.RUNNING: _("running"),
    JobStatus.SUCCEEDED: _("succeeded"),
    JobStatus.FAILED: _("failed"),
    JobStatus.CANCELLED: _("cancelled"),
}


def new_job_id() -> str:
    """Ten characters, 50 bits: the same in URLs, labels and object names, so it begins with a letter after `j-`."""
    return "".join(secrets.choice(ID_ALPHABET) for _i in range(10))


class Job(models.Model):
    """What a user submits: a verbatim document, its typed form, a status, and N attempts."""

    id = models.CharField(primary_key=True, max_length=10, default=new_job_id, editable=False)
    namespace = models.ForeignKey(Namespace, on_delete=models.PROTECT, related_name="jobs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="jobs")
    runtime_snapshot = models.JSONField()
    spec_text = models.TextField(help_text=_("The document as sent, but for secret values."))
    spec_format = models.CharField(max_length=4, choices=[("json", "json"), ("yaml", "yaml")])
    spec = models.JSONField(help_text=_("The parsed form: spec.JobSpec with all defaults."))
    idempotency_key = models.CharField(max_length=100, null=True, blank=True)
    idempotency_digest = models.CharField(max_length=64, blank=True)
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="clones", help_text=_("The job it is a clone of.")
    )
    origin = models.CharField(max_length=10, default="api", help_text=_("page, api, cli, kubectl."))

    status = models.CharField(max_length=10, default=JobStatus.QUEUED, choices=list(STATUS_LABELS.items()))
    reason_code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    version = models.PositiveBigIntegerField(default=1, help_text=_("Raised by every write: the fence."))
    attempt_number = models.PositiveIntegerField(default=0, help_text=_("0 until first admitted."))
    exit_code = models.IntegerField(null=True)

    # Copies of the spec that the planner and the list read without decoding it.
    name = models.CharField(max_length=200)
    priority = models.ForeignKey(PriorityClass, on_delete=models.PROTECT, related_name="jobs")
    preemptible = models.BooleanField(default=True)
    workers = models.PositiveIntegerField()
    gpus = models.PositiveIntegerField(help_text=_("Per worker."))
    gpu_type = models.CharField(max_length=60, blank=True)
    cpu_millis = models.PositiveIntegerField(help_text=_("Per worker."))
    memory_bytes = models.PositiveBigIntegerField(help_text=_("Per worker."))
    tags = models.JSONField(default=list)
    notes = models.TextField(blank=True)

    code = models.ForeignKey(CodeArchive, null=True, on_delete=models.PROTECT, related_name="jobs")
    code_ready_at = models.DateTimeField(null=True, help_text=_("Empty while code is being fetched from git."))
    code_label = models.CharField(max_length=200, blank=True, help_text=_("The commit or digest, for people."))

    # Intents are not states.
    cancel_requested_at = models.DateTimeField(null=True)
    cancel_requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    cancel_note = models.CharField(max_length=500, blank=True)
    stop_now_at = models.DateTimeField(null=True)
    held_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    warned_at = models.DateTimeField(null=True, help_text=_("When nine tenths of its time limit were over."))
    cleaned_at = models.DateTimeField(null=True, help_text=_("When its files were removed, a while after its end."))

    created_at = models.DateTimeField(default=timezone.now)
    queued_at = models.DateTimeField(default=timezone.now, help_text=_("Start of the present wait."))
    waited_seconds = models.FloatField(default=0, help_text=_("Waits of earlier attempts."))
    not_before = models.DateTimeField(null=True, help_text=_("Back-off: not started earlier."))
    charged_failures = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # Out of the lists, not out of the world: pages, links, metrics and logs go on.
    archived_at = models.DateTimeField(null=True)
    archived_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = [
            models.UniqueConstraint(fields=("owner", "idempotency_key"), name="one_job_per_idempotency_key"),
        ]
        indexes = [
            models.Index(F("created_at").desc(), F("id").desc(), name="job_newest"),
            models.Index("namespace", F("created_at").desc(), F("id").desc(), name="job_newest_of_namespace"),
            models.Index("owner", F("created_at").desc(), F("id").desc(), name="job_newest_of_owner"),
            # the dispatcher, reconcile and the list's chips read only what is not final
            models.Index(
                "status", "queued_at", name="job_live", condition=Q(status__in=("queued", "starting", "running"))
            ),
            # the numbers on the list's chips, from the index alone
            models.Index("namespace", "status", name="job_counted", condition=Q(archived_at=None)),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    @property
    def parsed(self) -> JobSpec:
        return spec_from_dict(self.spec)

    @property
    def is_final(self) -> bool:
        return JobStatus(self.status).is_final

    @property
    def is_adopted(self) -> bool:
        """Made on its cluster beside the portal: its one object is its maker's (see Adoption)."""
        return self.origin == ADOPTED

    @property
    def total_gpus(self) -> int:
        return self.workers * self.gpus

    @property
    def pod_groups(self) -> tuple[PodGroup, ...]:
        size = Resources(
            workers=self.workers,
            gpus=self.gpus,
            gpu_type=self.gpu_type,
            cpu_millis=self.cpu_millis,
            memory_bytes=self.memory_bytes,
            parameter_servers=self.spec["resources"].get("parameter_servers", 0),  # jobs from before there were any
        )
        return pod_groups(self.spec["launcher"], size)


class JobSecret(models.Model):
    """A secret value the user typed, encrypted; deleted when the job is final."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=200)
    ciphertext = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=("job", "name"), name="one_value_per_secret")]

    def __str__(self) -> str:
        return self.name


class JobEvent(models.Model):
    """Something that happened to a job. Rows of a move are also the outbox: who missed a message reads them."""

    KINDS = (("move", _("move")), ("intent", _("intent")), ("cluster", _("cluster")), ("code", _("code")))
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=10, choices=KINDS, default="move")
    attempt = models.PositiveIntegerField(default=0)
    old = models.CharField(max_length=10, blank=True)
    new = models.CharField(max_length=10, blank=True)
    reason_code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    actor = models.CharField(max_length=150, blank=True, help_text=_("User name; empty for the portal."))

    class Meta:
        ordering = ("at", "id")
        indexes = [models.Index("job", "at", name="event_of_job")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.old}->{self.new} {self.reason_code}"
