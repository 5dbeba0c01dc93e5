"""The page of a namespace's secrets: names for who sees it, and for its leads a way to set and remove them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.access import get_namespace, may
from accounts.models import Namespace, User
from accounts.roles import Verb
from jobs import shared_secrets
from jobs.exceptions import SpecError
from jobs.scope import person

TYPED = ("name", "kind", "key", "registry", "username")  # never the value


@require_http_methods(["GET", "POST"])
def secrets(request: HttpRequest, name: str) -> HttpResponse:
    user = person(request)
    if request.method != "POST":
        return _page(request, user, get_namespace(user, name))
    namespace = get_namespace(user, name, Verb.MANAGE)
    secret = request.POST.get("name", "").strip()
    try:
        if "remove" in request.POST:
            shared_secrets.remove(namespace, secret, by=user, request=request)
            messages.success(request, _("%(name)s is removed.") % {"name": secret})
        else:
            shared_secrets.put(namespace, secret, _given(request), by=user, request=request)
            messages.success(request, _("%(name)s is set. Jobs that start from now on get it.") % {"name": secret})
    except SpecError as error:
        typed = {field: request.POST.get(field, "") for field in TYPED}
        errors = {_field(field): texts for field, texts in error.fields.items()} or {"form": [error.message]}
        return _page(request, user, namespace, typed, errors, status=422)
    except Http404:
        messages.info(request, _("%(name)s was removed before.") % {"name": secret})
    return redirect("jobs:secrets", namespace.slug)


def _given(request: HttpRequest) -> dict[str, Any]:
    if request.POST.get("kind") == shared_secrets.REGISTRY:
        account = {field: request.POST.get(field, "").strip() for field in ("registry", "username")}
        return {"kind": shared_secrets.REGISTRY, **account, "password": request.POST.get("password", "")}
    return {"values": {request.POST.get("key", "").strip(): request.POST.get("value", "")}}


def _field(field: str) -> str:
    """Where a message of the value's own key belongs."""
    return "value" if field.startswith("values.") else "key" if field == "values" else field


def _page(
    request: HttpRequest,
    user: User,
    namespace: Namespace,
    typed: dict[str, str] | None = None,
    errors: dict[str, list[str]] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    shown = {
        "namespace": namespace,
        "secrets": shared_secrets.listed(namespace),
        "may_set": may(user, Verb.MANAGE, namespace),
        "typed": typed or {},
        "errors": errors or {},
    }
    return render(request, "jobs/secrets.html", shown, status=status)
