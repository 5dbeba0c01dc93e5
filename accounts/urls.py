"""Pages about oneself and who may do what."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "accounts"
urlpatterns: list[URLPattern] = []
