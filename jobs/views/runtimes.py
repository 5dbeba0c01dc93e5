"""The admin's pages of runtimes: the catalogue, and the editor of one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from jobs import catalogue
from jobs.cluster.launchers import LAUNCHERS
from jobs.exceptions import JobError, NotAllowed, SpecError
from jobs.models import Runtime
from jobs.parsing import RESOURCE_FIELDS
from jobs.reading import read_document
from jobs.scope import person
from jobs.yaml_text import to_yaml

LOCKABLE = [
    "image",
    "launcher",
    "command",
    *(f"resources.{name}" for name in RESOURCE_FIELDS),
    "priority",
    "preemptible",
    "time_limit",
    "retries",
    "stop_grace",
]
TEXTS = ("slug", "title", "description", "image", "deprecation", "defaults", "locked_more", "launcher_first", "version")


@require_safe
def runtime_list(request: HttpRequest) -> HttpResponse:
    if refused := _refused(request):
        return refused
    used = catalogue.uses()
    rows = [
        (runtime, used.get(runtime.pk, catalogue.Use())) for runtime in Runtime.objects.select_related("updated_by")
    ]
    return render(request, "jobs/runtimes.html", {"rows": rows})


@require_http_methods(["GET", "HEAD", "POST"])
def runtime_new(request: HttpRequest) -> HttpResponse:
    if refused := _refused(request):
        return refused
    values = _typed(request.POST) if request.method == "POST" else _blank(request.GET.get("like", ""))
    errors: dict[str, list[str]] = {}
    if request.method == "POST":
        try:
            made = catalogue.create(user=person(request), slug=values["slug"], values=_wanted(values), request=request)
        except JobError as error:
            errors = error.fields or {"form": [error.message]}
        else:
            messages.success(request, _("%(name)s is offered for new jobs from now on.") % {"name": made.title})
            return redirect("jobs:runtimes")
    return _editor(request, values, errors, runtime=None)


@require_http_methods(["GET", "HEAD", "POST"])
def runtime_edit(request: HttpRequest, slug: str) -> HttpResponse:
    if refused := _refused(request):
        return refused
    runtime = get_object_or_404(Runtime, pk=slug.replace("\0", "\ufffd"))
    values = _typed(request.POST) if request.method == "POST" else _of(runtime)
    errors: dict[str, list[str]] = {}
    if request.method == "POST":
        version = int(values["version"]) if values["version"].isdecimal() else None
        try:
            catalogue.edit(runtime, user=person(request), values=_wanted(values), version=version, request=request)
        except JobError as error:
            errors = error.fields or {"form": [error.message]}
        else:
            messages.success(
                request, _("Saved. New jobs get this; jobs that exist keep what they were submitted with.")
            )
            return redirect("jobs:runtimes")
    return _editor(request, values, errors, runtime=runtime)


def _refused(request: HttpRequest) -> HttpResponse | None:
    try:
        catalogue.check_admin(person(request))
    except NotAllowed as error:
        return render(request, "403.html", {"reason": error.message}, status=403)
    return None


def _editor(
    request: HttpRequest, values: dict[str, Any], errors: dict[str, list[str]], *, runtime: Runtime | None
) -> HttpResponse:
    context = {
        "form": values,
        "errors": errors,
        "runtime": runtime,
        "launchers": list(LAUNCHERS),
        "lockable": LOCKABLE,
        "fields": ", ".join(catalogue.DEFAULT_FIELDS),
    }
    return render(request, "jobs/runtime.html", context, status=422 if errors else 200)


def _blank(like: str) -> dict[str, Any]:
    if like and (other := Runtime.objects.filter(pk=like).first()):
        return {**_of(other), "slug": "", "title": "", "version": ""}
    return {**dict.fromkeys(TEXTS, ""), "launchers": ["plain"], "locked": [], "rules": [], "is_active": True}


def _of(runtime: Runtime) -> dict[str, Any]:
    return {
        "slug": runtime.slug,
        "title": runtime.title,
        "description": runtime.description,
        "image": runtime.image,
        "deprecation": runtime.deprecation,
        "defaults": to_yaml([runtime.defaults]) if runtime.defaults else "",
        "launchers": runtime.launchers,
        "launcher_first": runtime.launchers[0] if runtime.launchers else "plain",
        "locked": [name for name in runtime.locked if name in LOCKABLE],
        "locked_more": ", ".join(name for name in runtime.locked if name not in LOCKABLE),
        "rules": runtime.metric_rules,
        "is_active": runtime.is_active,
        "version": str(runtime.version),
    }


def _typed(data: QueryDict) -> dict[str, Any]:
    """The form as it was sent, so that a refused one shows what was typed."""
    rules = zip(data.getlist("rule_pattern"), data.getlist("rule_group"), strict=False)
    return {
        **{name: data.get(name, "").replace("\r\n", "\n") for name in TEXTS},
        "launchers": data.getlist("launchers"),
        "locked": data.getlist("locked"),
        "rules": [{"pattern": pattern, "group": group} for pattern, group in rules if pattern.strip()],
        "is_active": "is_active" in data,
    }


def _wanted(values: dict[str, Any]) -> dict[str, Any]:
    """What the verbs of the catalogue take. Raise SpecError where the defaults are no YAML."""
    first = values["launcher_first"]
    launchers = sorted(dict.fromkeys(values["launchers"]), key=lambda name: name != first)
    more = [name.strip() for name in values["locked_more"].replace("\n", ",").split(",") if name.strip()]
    return {
        "title": values["title"],
        "description": values["description"],
        "image": values["image"],
        "deprecation": values["deprecation"],
        "launchers": launchers,
        "defaults": _defaults(values["defaults"]),
        "locked": [*values["locked"], *more],
        "metric_rules": [
            {"pattern": rule["pattern"], **({"group": rule["group"].strip()} if rule["group"].strip() else {})}
            for rule in values["rules"]
        ],
        "is_active": values["is_active"],
    }


def _defaults(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        return read_document(text, format="yaml").data
    except SpecError as error:
        raise SpecError(error.message, fields={"defaults": [error.message]}) from error
