"""Pages of jobs: each asks for what the person may see and hands it to a template."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import may, namespaces_for
from accounts.roles import Verb
from jobs import forms, submission
from jobs.archives import text_files
from jobs.documents import job_document, job_row
from jobs.exceptions import JobError, NotAllowed, SpecError
from jobs.filters import JobFilter, read_filter
from jobs.logs import last_lines, worker_of
from jobs.models import STATUS_LABELS, Job, PriorityClass, Runtime
from jobs.outlook import look_ahead, why_waiting
from jobs.preview import manifests_of, manifests_to_be
from jobs.sample import sample_document
from jobs.scope import person, visible_job
from jobs.states import JobStatus
from jobs.timeline import phases
from jobs.yaml_text import to_yaml

ROWS = 50
LINES_AT_FIRST = 2000


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


def _job_page(request: HttpRequest, job_id: str, template: str, **more: Any) -> HttpResponse:
    job = visible_job(request, job_id)
    user = person(request)
    own = job.owner_id == user.pk
    document = job_document(job)
    return render(
        request,
        template,
        {
            "job": document,
            "record": job,
            "phases": phases(job),
            "may_change": may(user, Verb.CHANGE_OWN, job.namespace, owns=own),
            "may_clone": may(user, Verb.SUBMIT, job.namespace),
            **{name: make(job) for name, make in more.items()},
        },
    )


@require_GET
def job_detail(request: HttpRequest, job_id: str) -> HttpResponse:
    return _job_page(
        request,
        job_id,
        "jobs/detail.html",
        tab=lambda _job: "overview",
        lines=lambda job: last_lines(job.pk, count=20),
        wait=lambda job: why_waiting(job) if job.status == JobStatus.QUEUED else None,
    )


@require_GET
def job_logs(request: HttpRequest, job_id: str) -> HttpResponse:
    worker = request.GET.get("worker", "")
    if worker:
        try:
            worker = "{}-{}".format(*worker_of(worker))
        except ValueError as error:
            raise Http404 from error
    return _job_page(
        request,
        job_id,
        "jobs/logs.html",
        tab=lambda _job: "logs",
        worker=lambda _job: worker,
        lines=lambda job: last_lines(job.pk, count=LINES_AT_FIRST, worker=worker or None),
    )


@require_GET
def job_workers(request: HttpRequest, job_id: str) -> HttpResponse:
    return _job_page(request, job_id, "jobs/workers.html", tab=lambda _job: "workers")


@require_GET
def job_events(request: HttpRequest, job_id: str) -> HttpResponse:
    return _job_page(
        request,
        job_id,
        "jobs/events.html",
        tab=lambda _job: "events",
        events=lambda job: list(job.events.order_by("-at", "-id")[:500]),
    )


@require_GET
def job_spec(request: HttpRequest, job_id: str) -> HttpResponse:
    return _job_page(
        request,
        job_id,
        "jobs/spec.html",
        tab=lambda _job: "spec",
        manifest=lambda job: to_yaml(manifests_of(job)),
        files=lambda job: text_files(job.code) if job.code else [],
    )


@require_POST
def job_stop(request: HttpRequest, job_id: str) -> HttpResponse:
    return _change(request, job_id, submission.cancel, note=request.POST.get("reason", ""))


@require_POST
def job_stop_now(request: HttpRequest, job_id: str) -> HttpResponse:
    return _change(request, job_id, submission.cancel, note=request.POST.get("reason", ""), at_once=True)


@require_POST
def job_hold(request: HttpRequest, job_id: str) -> HttpResponse:
    return _change(request, job_id, submission.hold)


@require_POST
def job_release(request: HttpRequest, job_id: str) -> HttpResponse:
    return _change(request, job_id, submission.release)


def _change(request: HttpRequest, job_id: str, verb: Any, **wish: Any) -> HttpResponse:
    job = visible_job(request, job_id)
    try:
        verb(job, user=person(request), request=request, **wish)
    except NotAllowed as error:
        return render(request, "403.html", {"reason": error.message}, status=403)
    except JobError as error:
        messages.error(request, error.message)
    return redirect("jobs:detail", job_id)
