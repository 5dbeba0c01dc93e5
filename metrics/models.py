"""The rows of a point's life: batches as they came, chunks once sealed, histograms, and the names of metrics.

Nobody but `ingest` writes batches and nobody but `rows` and who stands on it reads them. Layout and reasons: DESIGN 11.13.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Namespace
from jobs.models import Job
from metrics.batches import NAME_LENGTH


class PointBatch(models.Model):
    """One accepted batch, append-only. Sealing empties `body`; the row stays, so that a repeat is known as one."""

    # no constraint in the database: ingest inserts from the job's JobFeed row, which has one, and the check of a foreign
    # key would lock the row of Job once per batch
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    attempt = models.IntegerField()
    rank = models.IntegerField()
    batch = models.UUIDField(help_text=_("The sender's own id: what makes a repeat harmless."))
    seq = models.BigIntegerField(help_text=_("JobFeed.points_seq as this batch raised it."))
    received_at = models.DateTimeField()
    points = models.IntegerField(help_text=_("Accepted points, told again to whoever repeats the batch."))
    body = models.BinaryField(null=True, help_text=_("packed.pack; empty once sealed."))

    class Meta:
        constraints = [models.UniqueConstraint(fields=("job", "attempt", "rank", "batch"), name="batch_stored_once")]
        indexes = [
            # every reader, the live hub and sealing: what is not sealed, in the order of its arrival
            models.Index("job", "seq", name="batch_not_sealed", condition=Q(body__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} {self.seq}"


class Chunk(models.Model):
    """Sealed points of one series: sorted, one per step. Chunks of a series never overlap."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    attempt = models.IntegerField()
    rank = models.IntegerField()
    key = models.CharField(max_length=NAME_LENGTH)
    group = models.CharField(max_length=NAME_LENGTH, blank=True)
    first_step = models.BigIntegerField()
    last_step = models.BigIntegerField()
    first_time = models.FloatField(help_text=_("The earliest, not that of the first step."))
    last_time = models.FloatField(help_text=_("The latest, not that of the last step."))
    count = models.IntegerField()
    bad = models.IntegerField(help_text=_("Points that are not finite."))
    min = models.FloatField(null=True, help_text=_("Of the finite points; empty if there are none."))
    max = models.FloatField(null=True)
    last = models.FloatField(help_text=_("Value at the last step."))
    seq = models.BigIntegerField(help_text=_("Batches up to this one are in it."))
    open = models.BooleanField(help_text=_("The newest of its series: rewritten until it is full."))
    body = models.BinaryField(help_text=_("chunks.compress."))
    coarse = models.BinaryField(
        null=True, help_text=_("coarse.of_chunk, packed; empty in chunks from before there were any.")
    )

    class Meta:
        constraints = [
            # a chart asks by job and key, the list of series by job alone
            models.UniqueConstraint(fields=("job", "key", "attempt", "rank", "first_step"), name="chunk_once"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} {self.key} {self.first_step}-{self.last_step}"


class MetricKey(models.Model):
    """A name a job has reported under. Written once per name, so that the limit of names costs no batch anything."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    key = models.CharField(max_length=NAME_LENGTH)
    source = models.CharField(
        max_length=20, db_default="sdk", help_text=_("The door it came by first: sdk, tensorboard, stdout …")
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=("job", "key"), name="metric_key_once")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.key}"


class Distribution(models.Model):
    """A tensor's histogram at a step; for an equal step the later one wins."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    attempt = models.IntegerField()
    rank = models.IntegerField()
    key = models.CharField(max_length=NAME_LENGTH)
    of = models.CharField(max_length=50, help_text=_("What is counted: weight, gradient …"))
    step = models.BigIntegerField()
    time = models.FloatField()
    edges = models.BinaryField(help_text=_("float64; one more than counts."))
    counts = models.BinaryField(help_text=_("float64."))
    nan = models.BigIntegerField(default=0)
    inf = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            # the charts of a tensor over steps read it in this order
            models.UniqueConstraint(fields=("job", "key", "of", "attempt", "rank", "step"), name="distribution_once"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} {self.key} {self.step}"


class ChartLayout(models.Model):
    """Pinned charts and their order, for all of a namespace or, with a person, only for them."""

    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    layout = models.JSONField(help_text=_('{"pins": [key, …], "hidden": [key, …]}'))
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("namespace", "owner"), name="one_layout", nulls_distinct=False),
        ]

    def __str__(self) -> str:
        return f"layout of {self.namespace_id}"
