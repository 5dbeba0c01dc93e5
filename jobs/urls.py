"""Pages of jobs, and their REST."""

from __future__ import annotations

from django.urls import path

from jobs import api, downloads, views

app_name = "jobs"
urlpatterns = [
    path("jobs/", views.job_list, name="list"),
    path("jobs/new/", views.job_new, name="new"),
    path("jobs/forecast/", views.job_forecast, name="forecast"),
    path("jobs/preview/", views.job_preview, name="manifest-preview"),
    path("jobs/sample/", views.job_sample, name="sample"),
    path("jobs/<str:job_id>/", views.job_detail, name="detail"),
    path("jobs/<str:job_id>/logs/", views.job_logs, name="logs"),
    path("jobs/<str:job_id>/workers/", views.job_workers, name="workers"),
    path("jobs/<str:job_id>/events/", views.job_events, name="events"),
    path("jobs/<str:job_id>/spec/", views.job_spec, name="spec"),
    path("jobs/<str:job_id>/stop/", views.job_stop, name="stop"),
    path("jobs/<str:job_id>/stop-now/", views.job_stop_now, name="stop-now"),
    path("jobs/<str:job_id>/hold/", views.job_hold, name="hold"),
    path("jobs/<str:job_id>/release/", views.job_release, name="release"),
    path("code/<sha256>/", downloads.code, name="code"),
]

api_urls = [
    path("jobs/", api.JobsView.as_view(), name="jobs"),
    path("jobs/<str:job_id>/", api.JobView.as_view(), name="job"),
    path("jobs/<str:job_id>/cancel/", api.JobCancelView.as_view(), name="job-cancel"),
    path("jobs/<str:job_id>/hold/", api.JobHoldView.as_view(), name="job-hold"),
    path("jobs/<str:job_id>/release/", api.JobReleaseView.as_view(), name="job-release"),
    path("jobs/<str:job_id>/why/", api.JobWhyView.as_view(), name="job-why"),
    path("jobs/<str:job_id>/events/", api.JobEventsView.as_view(), name="job-events"),
    path("jobs/<str:job_id>/manifest/", api.JobManifestView.as_view(), name="job-manifest"),
    path("jobs/<str:job_id>/logs/", api.JobLogsView.as_view(), name="job-logs"),
    path("forecast/", api.ForecastView.as_view(), name="forecast"),
    path("uploads/", api.UploadsView.as_view(), name="uploads"),
    path("runtimes/", api.RuntimesView.as_view(), name="runtimes"),
    path("clusters/", api.ClustersView.as_view(), name="clusters"),
]
