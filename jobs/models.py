"""The rows of a job's life. What a status means is in `states`; only `lifecycle` changes Job.status."""

from __future__ import annotations

import secrets
import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Namespace
from jobs.querysets import JobQuerySet
from jobs.spec import JobSpec, spec_from_dict
from jobs.states import JobStatus

ID_ALPHABET = "0123456789bcdfghjklmnpqrstvwxyz"  # no vowels: an id never spells a word

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


class Runtime(models.Model):
    """An admin's template for jobs. A job keeps a snapshot, so an edit changes no job that exists."""

    slug = models.SlugField(primary_key=True, max_length=63)
    title = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    image = models.CharField(max_length=300, help_text=_("Container image; the local cluster ignores it."))
    launchers = models.JSONField(default=list, help_text=_("Launch styles it allows, the default first."))
    defaults = models.JSONField(default=dict, help_text=_("What a job document gets where it says nothing."))
    locked = models.JSONField(default=list, help_text=_("Dotted fields of the document that jobs may not set."))
    metric_rules = models.JSONField(
        default=list, help_text=_("RE2 patterns with named groups; each number they find in a line is a metric.")
    )
    is_active = models.BooleanField(default=True, help_text=_("Offered for new jobs."))
    deprecation = models.CharField(
        max_length=300, blank=True, help_text=_("What to use instead, shown to who still chooses it.")
    )
    version = models.PositiveIntegerField(default=1, help_text=_("Raised by every edit; a job keeps the one it got."))
    updated_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug

    def snapshot(self) -> dict[str, object]:
        return {
            "slug": self.slug,
            "version": self.version,
            "title": self.title,
            "image": self.image,
            "launchers": self.launchers,
            "defaults": self.defaults,
            "locked": self.locked,
            "metric_rules": self.metric_rules,
        }


class Cluster(models.Model):
    """A place where jobs run, as the watcher last saw it."""

    name = models.SlugField(primary_key=True, max_length=63)
    kind = models.CharField(max_length=20, choices=[("local", "local"), ("kubernetes", "kubernetes")])
    seen_at = models.DateTimeField(null=True, help_text=_("Last time its whole state was read."))
    nodes = models.JSONField(default=list, help_text=_("observed.NodeCapacity of each node then."))
    error = models.TextField(blank=True, help_text=_("Why it could not be read, if it could not."))

    def __str__(self) -> str:
        return self.name


class PriorityClass(models.Model):
    """A priority people may ask for, and how much of it one person may run at a time."""

    name = models.SlugField(primary_key=True, max_length=20)
    value = models.IntegerField(help_text=_("Higher goes first."))
    max_jobs_per_user = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Jobs of one person that may run at a time; empty means no limit.")
    )

    class Meta:
        ordering = ("-value",)

    def __str__(self) -> str:
        return self.name


class CodeArchive(models.Model):
    """A content-addressed tar.gz of code in the storage, named by its sha256."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    size = models.PositiveBigIntegerField(help_text=_("Bytes."))
    file_count = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
    uploaders = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="code_archives")

    def __str__(self) -> str:
        return self.sha256[:12]

    @property
    def storage_name(self) -> str:
        return f"code/{self.sha256[:2]}/{self.sha256}.tar.gz"


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
    def total_gpus(self) -> int:
        return self.workers * self.gpus


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


class Attempt(models.Model):
    """One placement of a job on a cluster: one object name, never used again."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="attempts")
    kubernetes_namespace = models.CharField(max_length=63)
    object_name = models.CharField(max_length=63, unique=True)
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
    ended_at = models.DateTimeField(null=True, help_text=_("When its pods were gone; its token dies 15 min later."))
    deleted_at = models.DateTimeField(null=True, help_text=_("When its objects were seen gone from the cluster."))

    class Meta:
        ordering = ("job", "number")
        constraints = [models.UniqueConstraint(fields=("job", "number"), name="attempt_number_once")]
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


class JobFeed(models.Model):
    """The one narrow row of a job that points and log lines raise; it never touches Job."""

    job = models.OneToOneField(Job, primary_key=True, on_delete=models.CASCADE, related_name="feed")
    points_seq = models.PositiveBigIntegerField(default=0)
    log_seq = models.PositiveBigIntegerField(default=0, help_text=_("Number of the job's last log line, 1, 2, …"))
    progress = models.JSONField(default=dict, help_text=_("step, total, epoch, at (epoch seconds)."))
    headline = models.JSONField(default=dict, help_text=_("Last value of up to 8 keys."))
    key_count = models.PositiveIntegerField(default=0)
    refused_points = models.PositiveBigIntegerField(default=0)
    points_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"feed of {self.job_id}"


class LogBlock(models.Model):
    """Some consecutive log lines of one worker, compressed. `seq` is one sequence per job."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="log_blocks")
    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="log_blocks")
    attempt = models.PositiveIntegerField()
    first_seq = models.PositiveBigIntegerField()
    last_seq = models.PositiveBigIntegerField()
    body = models.BinaryField(help_text=_("zstd of JSON [[time, text, overwritten, level], …]."))

    class Meta:
        constraints = [models.UniqueConstraint(fields=("job", "first_seq"), name="log_block_once")]
        indexes = [
            models.Index("job", "last_seq", name="log_block_of_job"),
            models.Index("worker", "last_seq", name="log_block_of_worker"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} {self.first_seq}-{self.last_seq}"


class LogChunk(models.Model):
    """Sealed lines of a job in the storage: consecutive seqs of all its workers. Blocks go once a chunk has them."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="log_chunks")
    first_seq = models.PositiveBigIntegerField()
    last_seq = models.PositiveBigIntegerField()
    writers = models.JSONField(help_text=_('Whose lines it has: [[attempt, "worker-0"], …].'))
    size = models.PositiveBigIntegerField(help_text=_("Bytes of text before compression."))
    storage_name = models.CharField(max_length=200)
    sealed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("job", "first_seq")
        constraints = [models.UniqueConstraint(fields=("job", "first_seq"), name="log_chunk_once")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.first_seq}-{self.last_seq}"


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
