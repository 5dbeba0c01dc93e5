"""The form of a new job, and the answers it asks for while one types."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import namespaces_for
from accounts.roles import Verb
from jobs import forms, submission
from jobs.exceptions import JobError
from jobs.models import PriorityClass, Runtime
from jobs.outlook import look_ahead
from jobs.preview import manifests_to_be
from jobs.sample import sample_document
from jobs.scope import person, visible_job
from jobs.yaml_text import to_yaml


@require_http_methods(["GET", "POST"])
def job_new(request: HttpRequest) -> HttpResponse:
    user = person(request)
    namespaces = list(namespaces_for(user, Verb.SUBMIT))
    errors: dict[str, list[str]] = {}
    parent = None
    if request.method == "POST":
        values = forms.typed(request.POST)
        errors = forms.keep_uploads(request, user, values)
        if not errors:
            try:
                done = submission.submit(
                    user=user,
                    document=forms.to_document(request.POST, values),
                    request=request,
                    origin="page",
                    idempotency_key=values["idempotency_key"][:100],
                )
                return redirect("jobs:detail", done.job.pk)
            except JobError as error:
                errors = forms.errors_by_field(error.fields) or {"form": [error.message]}
    elif request.GET.get("from"):
        parent = visible_job(request, request.GET["from"])
        values = forms.of_job(parent)
    else:
        first = next((n.slug for n in namespaces if n.kind == "project"), namespaces[0].slug if namespaces else "")
        values = forms.blank(user, namespace=request.GET.get("namespace") or first)
    return render(
        request,
        "jobs/new.html",
        {
            "form": values,
            "errors": errors,
            "parent": parent,
            "namespaces": namespaces,
            "runtimes": list(Runtime.objects.filter(is_active=True)),
            "priorities": list(PriorityClass.objects.all()),
        },
        status=422 if errors else 200,
    )


def _draft(request: HttpRequest) -> dict[str, Any]:
    """The form as it stands, without its files: what forecast and preview ask about."""
    values = forms.typed(request.POST)
    parsed = submission.check(forms.to_document(request.POST, values))
    return {"parsed": parsed, "namespace": submission.namespace_to_submit(person(request), parsed.spec.namespace)}


@require_POST
def job_forecast(request: HttpRequest) -> HttpResponse:
    """Fragment: will the job of the form start now?"""
    try:
        draft = _draft(request)
        will = look_ahead(draft["parsed"], namespace=draft["namespace"], user=person(request))
    except JobError as error:
        return render(request, "jobs/_forecast.html", {"forecast": None, "problem": error.message})
    spec = draft["parsed"].spec
    return render(request, "jobs/_forecast.html", {"forecast": will, "spec": spec, "namespace": draft["namespace"]})


@require_POST
def job_preview(request: HttpRequest) -> HttpResponse:
    """Fragment: the exact objects the form becomes."""
    try:
        draft = _draft(request)
        shown = manifests_to_be(draft["parsed"], namespace=draft["namespace"], user=person(request))
    except JobError as error:
        return render(request, "jobs/_manifest.html", {"manifest": "", "problem": error.message})
    return render(request, "jobs/_manifest.html", {"manifest": to_yaml(shown)})


@require_POST
def job_sample(request: HttpRequest) -> HttpResponse:
    """Run the sample job in the namespace that is most the person's own."""
    user = person(request)
    namespace = request.POST.get("namespace") or next(
        (found.slug for found in namespaces_for(user, Verb.SUBMIT).order_by("kind", "slug")), ""
    )
    try:
        done = submission.submit(
            user=user,
            document=sample_document(user, namespace=namespace),
            request=request,
            origin="page",
            idempotency_key=request.POST.get("idempotency_key", "")[:100],
        )
    except JobError as error:
        messages.error(request, error.message)
        return redirect("jobs:list")
    return redirect("jobs:detail", done.job.pk)
