"""The audit trail as a page and as a file."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts import audit, trail
from accounts.access import namespaces_for
from accounts.models import User

PAGE = 50


@require_safe
def audit_trail(request: HttpRequest) -> HttpResponse:
    """Who did what to what, newest first; `before` is the id from which older rows go on."""
    person = cast(User, request.user)
    readable = trail.readable(person)
    wanted, wrong = trail.read_wanted(request.GET)
    rows = trail.matching(readable, wanted)
    before = request.GET.get("before", "")
    if before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: PAGE + 1])
    asked = urlencode({name: value for name in trail.Wanted.__slots__ if (value := getattr(wanted, name))})
    context = {
        "rows": found[:PAGE],
        "older": found[PAGE - 1].pk if len(found) > PAGE else None,
        "is_first": not before,
        "wanted": wanted,
        "wrong": wrong,
        "asked": asked,
        "actions": trail.ACTIONS,
        "namespaces": _namespaces(person),
    }
    return render(request, "accounts/audit.html", context, status=400 if wrong else 200)


def _namespaces(person: User) -> list[str]:
    return list(namespaces_for(person).order_by("slug").values_list("slug", flat=True)[:500])


@require_safe
def audit_csv(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """All that the page shows for this query string, as a file; taking it is itself a row."""
    person = cast(User, request.user)
    rows = trail.matching(trail.readable(person), trail.read_wanted(request.GET)[0])
    audit.record(person, "audit.export", after={"query": request.GET.urlencode()[:1000]}, request=request)
    response = StreamingHttpResponse(trail.as_csv(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="audit-{timezone.now():%Y-%m-%d}.csv"'
    return response
