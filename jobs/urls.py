"""Pages of jobs, and their REST."""

from __future__ import annotations

from django.urls import path

from jobs import downloads
from jobs.api import bulk as bulk_api
from jobs.api import catalogue, clones, drafts, files, logs, runtimes, verbs
from jobs.api import export as export_api
from jobs.api import jobs as api
from jobs.api import saved as saved_api
from jobs.api import secrets as secrets_api
from jobs.api import volumes as volumes_api
from jobs.views import asking, bulk, export, job, listing, new, saved, shell
from jobs.views import clusters as cluster_pages
from jobs.views import logs as log_pages
from jobs.views import runtimes as admin_runtimes
from jobs.views import secrets as secret_pages
from jobs.views import verbs as buttons
from jobs.views import volumes as volume_pages

app_name = "jobs"
urlpatterns = [
    path("jobs/", listing.job_list, name="list"),
    path("jobs/bulk/", bulk.jobs_bulk, name="bulk"),
    path("jobs/export.csv", export.jobs_csv, name="export"),
    path("jobs/views/", saved.view_save, name="views"),
    path("jobs/views/<int:view_id>/", saved.view_change, name="view-change"),
    path("jobs/new/", new.job_new, name="new"),
    path("jobs/forecast/", asking.job_forecast, name="forecast"),
    path("jobs/preview/", asking.job_preview, name="manifest-preview"),
    path("jobs/document/", asking.job_document, name="document"),
    path("jobs/sample/", new.job_sample, name="sample"),
    path("jobs/<str:job_id>/", job.job_detail, name="detail"),
    path("jobs/<str:job_id>/logs/", log_pages.job_logs, name="logs"),
    path("jobs/<str:job_id>/logs/raw/", log_pages.job_log_raw, name="log-raw"),
    path("jobs/<str:job_id>/workers/", job.job_workers, name="workers"),
    path("jobs/<str:job_id>/events/", job.job_events, name="events"),
    path("jobs/<str:job_id>/shell/", shell.job_shell, name="shell"),
    path("jobs/<str:job_id>/files/", job.job_files, name="files"),
    path("jobs/<str:job_id>/spec/", job.job_spec, name="spec"),
    path("jobs/<str:job_id>/stop/", buttons.job_stop, name="stop"),
    path("jobs/<str:job_id>/stop-now/", buttons.job_stop_now, name="stop-now"),
    path("jobs/<str:job_id>/edit/", buttons.job_edit, name="edit"),
    path("jobs/<str:job_id>/pin/", buttons.job_pin, name="pin"),
    path("jobs/<str:job_id>/unpin/", buttons.job_unpin, name="unpin"),
    path("jobs/<str:job_id>/archive/", buttons.job_archive, name="archive"),
    path("jobs/<str:job_id>/unarchive/", buttons.job_unarchive, name="unarchive"),
    path("jobs/<str:job_id>/hold/", buttons.job_hold, name="hold"),
    path("jobs/<str:job_id>/release/", buttons.job_release, name="release"),
    path("namespaces/<str:name>/secrets/", secret_pages.secrets, name="secrets"),
    path("namespaces/<str:name>/volumes/", volume_pages.volumes, name="volumes"),
    path("code/<sha256>/", downloads.code, name="code"),
]
# answered only where operators are: portal/settings/operator.py
operator_urls = [
    path("admin/clusters/", cluster_pages.clusters, name="clusters"),
    path("admin/volumes/<str:name>/", volume_pages.offer, name="offer-volume"),
    path("admin/runtimes/", admin_runtimes.runtime_list, name="runtimes"),
    path("admin/runtimes/new/", admin_runtimes.runtime_new, name="runtime-new"),
    path("admin/runtimes/<str:slug>/", admin_runtimes.runtime_edit, name="runtime"),
]

api_urls = [
    path("jobs/", api.JobsView.as_view(), name="jobs"),
    path("jobs/bulk/", bulk_api.JobsBulkView.as_view(), name="jobs-bulk"),
    path("jobs/export.csv", export_api.JobsCsvView.as_view(), name="jobs-csv"),
    path("jobs/<str:job_id>/", api.JobView.as_view(), name="job"),
    path("jobs/<str:job_id>/cancel/", verbs.JobCancelView.as_view(), name="job-cancel"),
    path("jobs/<str:job_id>/hold/", verbs.JobHoldView.as_view(), name="job-hold"),
    path("jobs/<str:job_id>/release/", verbs.JobReleaseView.as_view(), name="job-release"),
    path("jobs/<str:job_id>/archive/", verbs.JobArchiveView.as_view(), name="job-archive"),
    path("jobs/<str:job_id>/unarchive/", verbs.JobUnarchiveView.as_view(), name="job-unarchive"),
    path("jobs/<str:job_id>/clone/", clones.JobCloneView.as_view(), name="job-clone"),
    path("jobs/<str:job_id>/why/", api.JobWhyView.as_view(), name="job-why"),
    path("jobs/<str:job_id>/events/", api.JobEventsView.as_view(), name="job-events"),
    path("jobs/<str:job_id>/manifest/", api.JobManifestView.as_view(), name="job-manifest"),
    path("jobs/<str:job_id>/logs/", logs.JobLogsView.as_view(), name="job-logs"),
    path("jobs/<str:job_id>/files/", files.JobFilesView.as_view(), name="job-files"),
    path("jobs/<str:job_id>/files.zip", files.JobFilesZipView.as_view(), name="job-files-zip"),
    path("jobs/<str:job_id>/files/<path:path>", files.JobFileView.as_view(), name="job-file"),
    path("jobs/<str:job_id>/code/", files.JobCodeView.as_view(), name="job-code"),
    path("views/", saved_api.SavedViewsView.as_view(), name="views"),
    path("views/<int:view_id>/", saved_api.SavedViewView.as_view(), name="view"),
    path("drafts/", drafts.DraftsView.as_view(), name="drafts"),
    path("drafts/<str:draft_id>/", drafts.DraftView.as_view(), name="draft"),
    path("forecast/", catalogue.ForecastView.as_view(), name="forecast"),
    path("uploads/", catalogue.UploadsView.as_view(), name="uploads"),
    path("namespaces/<str:name>/secrets/", secrets_api.SecretsView.as_view(), name="secrets"),
    path("namespaces/<str:name>/secrets/<str:secret>/", secrets_api.SecretView.as_view(), name="secret"),
    path("namespaces/<str:name>/volumes/", volumes_api.VolumesView.as_view(), name="volumes"),
    path("clusters/", catalogue.ClustersView.as_view(), name="clusters"),
]
operator_api_urls = [
    path("namespaces/<str:name>/volumes/<str:volume>/", volumes_api.VolumeView.as_view(), name="volume"),
    path("runtimes/", runtimes.RuntimesView.as_view(), name="runtimes"),
    path("runtimes/<str:slug>/", runtimes.RuntimeView.as_view(), name="runtime"),
]
# what is read at an address where operators write, for where they are not
reader_api_urls = [
    path("runtimes/", runtimes.RuntimesReadView.as_view(), name="runtimes"),
    path("runtimes/<str:slug>/", runtimes.RuntimeReadView.as_view(), name="runtime"),
]
