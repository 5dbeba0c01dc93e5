"""Websockets of jobs."""

from __future__ import annotations

from django.urls import path

from jobs.shell.socket import shell

websocket_urlpatterns = [
    path("ws/jobs/<str:job_id>/shell/", shell),  # type: ignore[arg-type] # Channels routes to ASGI applications
]
