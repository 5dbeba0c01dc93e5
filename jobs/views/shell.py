"""The Shell tab of a job: the page around the terminal, whose socket asks again who may."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from jobs.cluster import registry
from jobs.scope import person, visible_job
from jobs.shell.rights import may_open
from jobs.views.job import job_page


@require_GET
def job_shell(request: HttpRequest, job_id: str) -> HttpResponse:
    if not may_open(person(request), visible_job(request, job_id)):
        raise PermissionDenied(_("A shell acts as the job's owner, so it is for the owner alone."))
    return job_page(
        request,
        job_id,
        "jobs/shell.html",
        tab=lambda _job: "shell",
        worker=lambda _job: request.GET.get("worker", ""),
        idle_minutes=lambda _job: settings.TRAINHALL_SHELL_IDLE,
        is_local=lambda job: registry.kinds().get(job.cluster_id) == registry.LOCAL,
    )
