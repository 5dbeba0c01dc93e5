"""The whole site as a page of contents."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("", include("accounts.urls")),
    path("", include("jobs.urls")),
    path("", include("metrics.urls")),
]
