"""What a namespace has for its jobs: secrets, set by its lead and shown to nobody, and volumes that an admin offers."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Namespace


class NamespaceSecret(models.Model):
    """One value of a secret, encrypted. Those of one name are one secret, all of one kind."""

    KINDS = (("values", _("values")), ("registry", _("registry")))
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=10, choices=KINDS, default="values")
    key = models.CharField(max_length=200, help_text=_("Of a registry: its address."))
    ciphertext = models.BinaryField()
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    set_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("name", "key")
        constraints = [models.UniqueConstraint(fields=("namespace", "name", "key"), name="one_value_per_key")]

    def __str__(self) -> str:
        return f"{self.name}/{self.key} of {self.namespace}"


class NamespaceVolume(models.Model):
    """A claim on the cluster, in the namespace of that name there, which jobs may mount. An admin of it made it there."""

    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="volumes")
    name = models.CharField(max_length=61, help_text=_("Of the claim."))
    path = models.CharField(max_length=200, help_text=_("Where jobs mount it unless they say otherwise."))
    read_only = models.BooleanField(default=False, help_text=_("Nobody's job may write there."))
    is_home = models.BooleanField(default=False, help_text=_("Every job gets it, and its HOME lies there."))
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    set_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.UniqueConstraint(fields=("namespace", "name"), name="one_volume_per_name"),
            models.UniqueConstraint(fields=("namespace",), condition=Q(is_home=True), name="one_home_per_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.namespace}"
