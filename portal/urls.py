"""The whole site as a page of contents."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.i18n import JavaScriptCatalog
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from accounts.urls import api_urls as accounts_api_urls
from jobs.urls import api_urls as jobs_api_urls
from metrics.urls import api_urls as metrics_api_urls
from portal import home, views

urlpatterns = [
    path("", home.home, name="home"),
    path("", include("accounts.urls")),
    path("api/v1/", include((accounts_api_urls, "api-accounts"))),
    path("api/v1/", include((jobs_api_urls, "api-jobs"))),
    path("api/v1/", include((metrics_api_urls, "api-metrics"))),
    path("", include("jobs.urls")),
    path("", include("metrics.urls")),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/v1/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="api-docs"),
    path("words.js", login_not_required(JavaScriptCatalog.as_view()), name="words"),
    path("status/", views.status, name="status"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("metrics", views.metrics, name="metrics"),
    path("sdk/", views.sdk_index, name="sdk"),
    path("sdk/<name>", views.sdk_wheel, name="sdk-wheel"),
]
