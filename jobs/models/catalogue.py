"""What jobs are made from and where they run: templates, clusters, priorities, code."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Namespace


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
    survey = models.JSONField(default=dict, help_text=_("kubernetes.survey.Survey, as last made; empty before."))
    surveyed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class ClusterNamespace(models.Model):
    """A namespace as it was last brought in line on a cluster, and what was found otherwise there."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="namespaces")
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="on_clusters")
    digest = models.CharField(max_length=64, blank=True, help_text=_("Of the objects that were applied."))
    looked_at = models.DateTimeField(null=True)
    applied_at = models.DateTimeField(null=True, help_text=_("When something was written there last."))
    drift = models.JSONField(default=list, help_text=_("Sentences: what was last found otherwise, and put right."))
    drifted_at = models.DateTimeField(null=True)
    is_drift_there = models.BooleanField(default=False, help_text=_("Whether the last look found some, too."))
    error = models.TextField(blank=True, help_text=_("Why it could not be brought in line, if it could not."))

    class Meta:
        constraints = [models.UniqueConstraint(fields=("cluster", "namespace"), name="namespace_once_per_cluster")]

    def __str__(self) -> str:
        return f"{self.namespace} on {self.cluster}"


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


class BoundUpload(models.Model):
    """An archive that was sent with a token of one namespace: such a token finds no other of its person's archives."""

    archive = models.ForeignKey(CodeArchive, on_delete=models.CASCADE, related_name="bound_uploads")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=("archive", "user", "namespace"), name="bound_upload_once")]

    def __str__(self) -> str:
        return f"{self.archive} for {self.namespace}"
