"""The page of a namespace's volumes: what jobs may mount for who sees it, and for admins of the site a way to offer claims."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access import get_namespace
from accounts.models import Namespace
from jobs import shared_volumes
from jobs.exceptions import SpecError
from jobs.scope import person

FLAGS = {"": {}, "read_only": {"read_only": True}, "home": {"is_home": True}}  # the three kinds that the page knows


@require_safe
def volumes(request: HttpRequest, name: str) -> HttpResponse:
    return _page(request, get_namespace(person(request), name))


@require_POST
def offer(request: HttpRequest, name: str) -> HttpResponse:
    """Offer a claim, offer it otherwise, or no longer."""
    by = person(request)
    namespace = get_namespace(by, name)
    if not by.is_site_admin:
        raise PermissionDenied(_("Volumes are offered by admins of the site."))
    volume = request.POST.get("name", "").strip()
    try:
        if "remove" in request.POST:
            shared_volumes.remove(namespace, volume, by=by, request=request)
            messages.success(request, _("%(name)s is not offered any more.") % {"name": volume})
        else:
            flags = FLAGS.get(request.POST.get("kind", ""), {})
            given = {"path": request.POST.get("path", "").strip(), **flags}
            shared_volumes.put(namespace, volume, given, by=by, request=request)
            messages.success(
                request, _("%(name)s is offered. Jobs that start from now on get it so.") % {"name": volume}
            )
    except SpecError as error:
        typed = {field: request.POST.get(field, "") for field in ("name", "path", "kind")}
        errors = {
            "kind" if field in ("is_home", "read_only") else field: texts for field, texts in error.fields.items()
        }
        return _page(request, namespace, typed, errors, status=422)
    except Http404:
        messages.info(request, _("%(name)s was removed before.") % {"name": volume})
    return redirect("jobs:volumes", namespace.slug)


def _page(
    request: HttpRequest,
    namespace: Namespace,
    typed: dict[str, str] | None = None,
    errors: dict[str, list[str]] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    found = shared_volumes.listed(namespace)
    shown: dict[str, Any] = {
        "namespace": namespace,
        "volumes": found,
        "example": _example(found),
        "may_set": person(request).is_site_admin and settings.OPERATOR.is_here,
        "typed": typed or {},
        "errors": errors or {},
    }
    return render(request, "jobs/volumes.html", shown, status=status)


def _example(found: list[dict[str, Any]]) -> str:
    """What a job says to have the first of them, which is not the home: that it has anyway."""
    first = next((one for one in found if not one["is_home"]), {"name": "datasets", "path": "/data", "read_only": True})
    mode = ", read_only: true" if first["read_only"] else ""
    return f"volumes: [{{name: {first['name']}, path: {first['path']}{mode}}}]"
