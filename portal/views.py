"""Health for machines and people, and the package that users install."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from portal import gauges, health, wheel


@login_not_required
@require_GET
def healthz(request: HttpRequest) -> HttpResponse:
    """Alive: this process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@require_GET
def readyz(request: HttpRequest) -> JsonResponse:
    """Ready: each dependency by name; 503 if one that is needed for pages and jobs is not."""
    tiles = health.look()
    ready = all(tile.ok for tile in tiles if tile.is_needed)
    answer = JsonResponse(
        {"ready": ready, "parts": {tile.name: {"ok": tile.ok, "text": tile.text} for tile in tiles}},
        status=200 if ready else 503,
    )
    answer._has_been_logged = True  # type: ignore[attr-defined]  # a 503 is an answer here: no error line for each probe
    return answer


@login_not_required
@require_GET
def status(request: HttpRequest) -> HttpResponse:
    """The same for people, drawn also while the database is away."""
    tiles = health.look()
    if not next(tile.ok for tile in tiles if tile.name == "postgres"):
        request.user = AnonymousUser()  # who asks cannot be looked up now
    return render(request, "portal/status.html", {"tiles": tiles, "checked_at": timezone.now()})


@login_not_required
@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """Numbers about the portal itself, for Prometheus; none of them names a person or a namespace."""
    gauges.refresh()
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


@login_not_required
@require_GET
def sdk_index(request: HttpRequest) -> HttpResponse:
    """A list that pip understands, and the line for people to copy."""
    name = wheel.wheel_name()
    link = f'<a href="{name}">{name}</a>'
    line = f"pip install {settings.TRAINHALL_URL}/sdk/{name}"
    return HttpResponse(f"<!doctype html><title>trainhall</title><p>{link}</p><pre>{line}</pre>\n")


@login_not_required
@require_GET
def sdk_wheel(request: HttpRequest, name: str) -> HttpResponse:
    if name != wheel.wheel_name():
        raise Http404
    return HttpResponse(wheel.wheel_bytes(), content_type="application/octet-stream")
