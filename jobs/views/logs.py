"""The log viewer of a job's page, and the same lines as plain text."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.views.decorators.http import require_GET

from jobs.api.logs import text_response
from jobs.logs.lines import read_lines, worker_of
from jobs.logs.stretches import NO_END, PAGE_BYTES
from jobs.scope import visible_job
from jobs.views.job import job_page

LINES_AT_FIRST = 2000


def chosen(query: QueryDict) -> tuple[str, int | None]:
    """The worker and the attempt whose lines are asked for; "" and None mean all. Raise Http404."""
    worker, attempt = query.get("worker", ""), query.get("attempt", "")
    try:
        worker = "{}-{}".format(*worker_of(worker)) if worker else ""
    except ValueError as error:
        raise Http404 from error
    if not attempt:
        return worker, None
    if not (attempt.isascii() and attempt.isdecimal() and 0 < len(attempt) < 7):
        raise Http404
    return worker, int(attempt)


@require_GET
def job_logs(request: HttpRequest, job_id: str) -> HttpResponse:
    worker, attempt = chosen(request.GET)
    same_lines = {name: value for name, value in (("worker", worker), ("attempt", attempt)) if value}
    return job_page(
        request,
        job_id,
        "jobs/logs.html",
        tab=lambda _job: "logs",
        worker=lambda _job: worker,
        attempt=lambda _job: attempt,
        attempts=lambda job: list(range(1, job.attempts.count() + 1)),
        q=lambda _job: request.GET.get("q", ""),
        times=lambda _job: request.GET.get("ts") != "0",
        wrap=lambda _job: request.GET.get("wrap") == "1",
        same_lines=lambda _job: f"?{urlencode(same_lines)}" if same_lines else "",
        download=lambda _job: f"?{urlencode({'text': 1, **same_lines})}",
        lines=lambda job: read_lines(
            job.pk,
            before=NO_END,
            worker=worker or None,
            attempt=attempt,
            limit=LINES_AT_FIRST,
            most_bytes=PAGE_BYTES,
        ),
    )


@require_GET
def job_log_raw(request: HttpRequest, job_id: str) -> StreamingHttpResponse:
    """The lines as they were written, in a page where the browser's own search works."""
    job = visible_job(request, job_id)
    worker, attempt = chosen(request.GET)
    response = text_response(job, attempt=attempt, worker=worker or None)
    response["Content-Disposition"] = "inline"
    return response
