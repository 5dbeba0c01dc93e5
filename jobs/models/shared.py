"""Secrets of a namespace: set by its lead, used by name in jobs there, shown to nobody."""

from __future__ import annotations

from django.conf import settings
from django.db import models
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
