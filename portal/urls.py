"""The whole site as a page of contents."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, URLResolver, include, path
from django.views.i18n import JavaScriptCatalog
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from accounts import urls as accounts_urls
from jobs import urls as jobs_urls
from metrics import urls as metrics_urls
from portal import home, views

Routes = list[URLPattern | URLResolver]
OPERATORS_OWN: Routes = [path("metrics", views.metrics, name="metrics")]


def contents(*, schema_of: str, with_operators: bool) -> Routes:
    """Without operators their routes are not there at all, so they are answered like any made-up path."""
    accounts: Routes = [*accounts_urls.urlpatterns]
    jobs: Routes = [*jobs_urls.urlpatterns]
    accounts_api: Routes = [*accounts_urls.api_urls]
    jobs_api: Routes = [*jobs_urls.api_urls]
    if with_operators:
        accounts += accounts_urls.operator_urls
        jobs += jobs_urls.operator_urls
        accounts_api += accounts_urls.operator_api_urls
        jobs_api += jobs_urls.operator_api_urls
    else:
        accounts_api += accounts_urls.reader_api_urls
        jobs_api += jobs_urls.reader_api_urls
    return [
        path("", home.home, name="home"),
        path("", include((accounts, accounts_urls.app_name))),
        path("api/v1/", include((accounts_api, "api-accounts"))),
        path("api/v1/", include((jobs_api, "api-jobs"))),
        path("api/v1/", include((metrics_urls.api_urls, "api-metrics"))),
        path("", include((jobs, jobs_urls.app_name))),
        path("", include("metrics.urls")),
        path("api/v1/schema/", SpectacularAPIView.as_view(urlconf=schema_of), name="schema"),
        path("api/v1/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="api-docs"),
        path("words.js", login_not_required(JavaScriptCatalog.as_view()), name="words"),
        path("status/", views.status, name="status"),
        path("healthz", views.healthz, name="healthz"),
        path("readyz", views.readyz, name="readyz"),
        path("sdk/", views.sdk_index, name="sdk"),
        path("sdk/<name>", views.sdk_wheel, name="sdk-wheel"),
        *(OPERATORS_OWN if with_operators else []),
    ]


urlpatterns = contents(schema_of="portal.urls", with_operators=True)
