"""The Metrics page of a job, fragments that other job pages include, and their REST."""

from __future__ import annotations

from django.urls import path, re_path

from metrics import views
from metrics.api import rules, series, sparklines

app_name = "metrics"
JOB = r"jobs/(?P<job_id>[0-9a-z]{1,32})"
urlpatterns = [
    re_path(rf"^{JOB}/metrics/$", views.job_metrics, name="job"),
    re_path(rf"^{JOB}/charts/$", views.charts, name="charts"),
    re_path(rf"^{JOB}/charts/overview/$", views.overview, name="overview"),
    re_path(rf"^{JOB}/marks/$", views.job_marks, name="marks"),
    re_path(rf"^{JOB}/layout/$", views.layout, name="layout"),
    re_path(rf"^{JOB}/layout/share/$", views.share_layout, name="share-layout"),
]

api_urls = [
    path("metric-rules/test/", rules.RuleTestView.as_view(), name="metric-rules-test"),
    path("sparklines/", sparklines.SparklinesView.as_view(), name="sparklines"),
    re_path(rf"^{JOB}/series/$", series.SeriesView.as_view(), name="job-series"),
]
