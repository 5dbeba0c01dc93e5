"""The bar of the job list that acts on all selected jobs, where there are no scripts: a page with an answer per job."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from jobs import bulk
from jobs.exceptions import JobError
from jobs.scope import person

UNDONE_BY = {"archive": "unarchive", "unarchive": "archive"}


@require_POST
def jobs_bulk(request: HttpRequest) -> HttpResponse:
    query = request.POST.get("query", "").replace("\0", "")
    wish = bulk.Wish(
        request.POST.get("action", ""),
        reason=request.POST.get("reason", "")[:500],
        tags=tuple(tag.strip() for tag in request.POST.get("tags", "").split(",") if tag.strip()),
        priority=request.POST.get("priority", ""),
    )
    try:
        results, counts = bulk.act(user=person(request), wish=wish, ids=request.POST.getlist("ids"), request=request)
    except JobError as error:
        messages.error(request, error.message)
        return redirect(f"{reverse('jobs:list')}{'?' if query else ''}{query}")
    return render(
        request,
        "jobs/bulk.html",
        {
            "results": results,
            "counts": counts,
            "action": wish.action,
            "query": query,
            "undo": UNDONE_BY.get(wish.action, "") if counts["done"] else "",
        },
    )
