"""How far the points and lines of a job have come, and the lines themselves."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from jobs.models.attempt import Worker
from jobs.models.job import Job


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
