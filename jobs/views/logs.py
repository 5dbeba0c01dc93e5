"""The log viewer of a job's page."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from jobs.logs import last_lines, worker_of
from jobs.views.job import job_page

LINES_AT_FIRST = 2000


@require_GET
def job_logs(request: HttpRequest, job_id: str) -> HttpResponse:
    worker = request.GET.get("worker", "")
    if worker:
        try:
            worker = "{}-{}".format(*worker_of(worker))
        except ValueError as error:
            raise Http404 from error
    return job_page(
        request,
        job_id,
        "jobs/logs.html",
        tab=lambda _job: "logs",
        worker=lambda _job: worker,
        lines=lambda job: last_lines(job.pk, count=LINES_AT_FIRST, worker=worker or None),
    )
