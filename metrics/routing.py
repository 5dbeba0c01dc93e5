"""Websockets of metrics."""

from __future__ import annotations

from django.urls import path

from metrics.consumers import live

websocket_urlpatterns = [
    path("ws/", live),  # type: ignore[arg-type] # Channels routes to ASGI applications with Django's path()
]
