"""The list of jobs."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.access import namespaces_for
from jobs.documents import job_row
from jobs.exceptions import SpecError
from jobs.filters import JobFilter, read_filter
from jobs.models import STATUS_LABELS, Job
from jobs.scope import person
from jobs.states import JobStatus

ROWS = 50


@require_GET
def job_list(request: HttpRequest) -> HttpResponse:
    user = person(request)
    error = ""
    try:
        wanted = read_filter(request.GET)
    except SpecError as problem:
        wanted, error = JobFilter(), problem.message
    seen = Job.objects.visible_to(user)
    found = seen.matching(**wanted.as_arguments())
    in_scope = seen.matching(**{**wanted.as_arguments(), "statuses": ()})
    counts = in_scope.aggregate(**{status.value: Count("pk", filter=Q(status=status)) for status in JobStatus})
    pages = Paginator(found.values_list("pk", flat=True), ROWS)
    pages.count = sum(
        counts[status] for status in wanted.statuses or JobStatus
    )  # counted once: a search reads every row
    page = pages.get_page(request.GET.get("page"))
    rows = [job_row(job) for job in Job.objects.rows(list(page.object_list))]
    query = request.GET.copy()
    query.pop("page", None)
    return render(
        request,
        "jobs/list.html",
        {
            "jobs": rows,
            "page": page,
            "filter": wanted,
            "query": query.urlencode(),
            "topic": f"jobs?{query.urlencode()}",
            "counts": [(status.value, STATUS_LABELS[status], counts[status.value]) for status in JobStatus],
            "namespaces": namespaces_for(user),
            "error": error,
            "has_any": bool(rows) or seen.exists(),
        },
    )
