"""What clusters said of attempts."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.attempt import Attempt


class ClusterEvent(models.Model):
    """Something the cluster said of an attempt's objects, once however often; the cluster forgets it within an hour."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="cluster_events")
    about = models.CharField(max_length=60, blank=True, help_text=_("The worker; empty for the attempt as a whole."))
    reason = models.CharField(max_length=100)
    message = models.TextField(blank=True)
    is_warning = models.BooleanField(default=True)
    is_known = models.BooleanField(default=True, help_text=_("Whether a sentence of ours tells it."))
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    fingerprint = models.CharField(max_length=40, help_text=_("Of who, why and the words without their numbers."))

    class Meta:
        ordering = ("first_at", "id")
        constraints = [
            models.UniqueConstraint(fields=("attempt", "fingerprint"), name="cluster_event_once"),
        ]
        indexes = [models.Index("last_at", name="cluster_event_untold", condition=models.Q(is_known=False))]

    def __str__(self) -> str:
        return f"{self.about} {self.reason} ×{self.count}"
