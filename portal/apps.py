from __future__ import annotations

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # makes our Celery app the current one in every process, so that a task woken by name finds the broker
        import portal.celery  # noqa: F401, PLC0415 - needs the settings, which are ready only now
