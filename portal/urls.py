"""The whole site as a page of contents."""

from __future__ import annotations

from django.urls import include, path

from accounts.urls import api_urls as accounts_api_urls
from jobs.urls import api_urls as jobs_api_urls
from metrics.urls import api_urls as metrics_api_urls

urlpatterns = [
    path("", include("accounts.urls")),
    path("api/v1/", include((accounts_api_urls, "api-accounts"))),
    path("api/v1/", include((jobs_api_urls, "api-jobs"))),
    path("api/v1/", include((metrics_api_urls, "api-metrics"))),
    path("", include("jobs.urls")),
    path("", include("metrics.urls")),
]
