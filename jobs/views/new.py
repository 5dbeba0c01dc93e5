"""The page of a new job: blank, from a draft, or from another job."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import namespaces_for
from accounts.models import Namespace, User
from accounts.roles import Verb
from jobs import clones, lineage, shared_secrets, shared_volumes, submission
from jobs.cluster.registry import kinds
from jobs.exceptions import IdempotencyConflict, JobError, WrongState
from jobs.form import drafts, posted
from jobs.form.fields import Fields
from jobs.form.sample import sample_document
from jobs.form.tries import with_tries
from jobs.models import ADOPTED, Job, PriorityClass, Runtime
from jobs.scope import person, visible_job

WANTS_JSON = "application/json"


@require_http_methods(["GET", "POST"])
def job_new(request: HttpRequest) -> HttpResponse:
    user = person(request)
    namespaces = list(namespaces_for(user, Verb.SUBMIT))
    if request.method != "POST":
        became = _became(request, user)
        return _page(request, user, namespaces, _fields_at_first(request, user, namespaces, became), {}, became)
    values = posted.typed(request.POST)
    job, errors = _submit(request, user, values)
    if request.headers.get("Accept") == WANTS_JSON and job is not None:
        return JsonResponse({"id": job.pk, "url": reverse("jobs:detail", args=[job.pk])}, status=201)
    if job is not None:
        return redirect("jobs:detail", job.pk)
    return _page(request, user, namespaces, values, errors)


def _submit(request: HttpRequest, user: User, values: Fields) -> tuple[Job | None, dict[str, list[str]]]:
    """The job, or what stands in its way by field."""
    errors = posted.keep_uploads(request, user, values)
    if errors:
        return None, errors
    try:
        done = submission.submit(
            user=user,
            document=posted.document_in(values, secrets=posted.pairs_of(request.POST, "secret")),
            request=request,
            origin="page",
            idempotency_key=values["idempotency_key"][:100],
            parent=parent_in(user, values),
        )
    except IdempotencyConflict:
        # the form came back from the browser's history, was changed, and is sent again: that is another job
        mine = Job.objects.filter(owner=user, idempotency_key=values["idempotency_key"][:100])
        # of one in a namespace that this person has left nothing is told: it may have another name by now
        made = mine.visible_to(user).first()
        values |= {"idempotency_key": posted.of_a_new_page()["idempotency_key"]}
        if made is None:
            return None, {"form": [_("This form has made a job already. Submit again to make another job.")]}
        text = _("This form has made %(name)s (%(id)s) already. Submit again to make another job.")
        return None, {"form": [text % {"name": made.name, "id": made.pk}]}
    except JobError as error:
        errors = posted.errors_by_field(error.fields) or {"form": [posted.sentence(error.message)]}
        if values["written"] == "yaml" and "form" in errors:
            errors.setdefault("yaml", []).extend(errors.pop("form"))
        return None, errors
    if values["draft"]:
        drafts.remove_sent(user, values["draft"], job=done.job, request=request)
    return done.job, {}


def parent_in(user: User, values: Fields) -> Job | None:
    """The job the form is a clone of; one that may no longer be seen is forgotten."""
    text = values["parent"].replace("\0", "")
    return Job.objects.visible_to(user).filter(pk=text).exclude(origin=ADOPTED).first() if text else None


def _became(request: HttpRequest, user: User) -> Job | None:
    """The job that the draft in the address has become: who comes back to it is led there, not to a form half filled."""
    wanted = request.GET.get("draft", "")
    # only of one that is gone: what became of it is told by the audit log, which is long
    return drafts.job_of(user, wanted) if wanted and not drafts.lives(user, wanted) else None


def _fields_at_first(request: HttpRequest, user: User, namespaces: list[Namespace], became: Job | None) -> Fields:
    if (wanted := request.GET.get("draft")) and not became:
        try:
            return drafts.fields_of_draft(drafts.draft_of(user, wanted))
        except Http404:
            messages.info(request, _("That draft is gone: it was removed."))
    if wanted := request.GET.get("from"):
        try:
            return with_tries(clones.fields_to_clone(visible_job(request, wanted)), request.GET)
        except WrongState as error:
            messages.info(request, error.message)
    first = next((n.slug for n in namespaces if n.kind == "project"), namespaces[0].slug if namespaces else "")
    usual = Runtime.objects.filter(is_active=True, deprecation="", locked=[]).first()
    return {
        **posted.blank(namespace=request.GET.get("namespace") or first),
        # not the first of the alphabet, which may be a special one that locks fields or is about to go
        "runtime": usual.slug if usual else "",
    }


def _page(
    request: HttpRequest,
    user: User,
    namespaces: list[Namespace],
    values: Fields,
    errors: dict[str, list[str]],
    became: Job | None = None,
) -> HttpResponse:
    parent = parent_in(user, values)
    runtimes = list(Runtime.objects.filter(is_active=True))
    return render(
        request,
        "jobs/new.html",
        {
            "form": values,
            "errors": errors,
            "parent": parent,
            "became": became,
            "commit": _commit_choice(parent),
            "drafts": drafts.drafts_of(user),
            "extra": posted.extra_shown(values, errors),
            "namespaces": namespaces,
            "runtimes": runtimes,
            "catalogue": [_card(runtime) for runtime in runtimes],
            "priorities": list(PriorityClass.objects.all()),
            "max_script": posted.MAX_SCRIPT,
            "clusters": list(kinds()),
            "shared_names": shared_secrets.names_in(namespaces),
            "volume_names": shared_volumes.names_in(namespaces),
        },
        status=422 if errors else 200,
    )


def _card(runtime: Runtime) -> dict[str, Any]:
    """What the form shows of a runtime that is chosen."""
    launchers = runtime.launchers or ["plain"]
    return {
        "slug": runtime.slug,
        "title": runtime.title,
        "description": runtime.description,
        "image": runtime.image,
        "launchers": launchers,
        "defaults": {"launcher": launchers[0], "image": runtime.image, **runtime.defaults},
        "locked": runtime.locked,
        "metric_rules": runtime.metric_rules,
        "deprecation": runtime.deprecation,
    }


def _commit_choice(parent: Job | None) -> dict[str, str] | None:
    """For code from git: the commit that the parent ran, and the branch or tag it was found at."""
    commit = clones.commit_of(parent) if parent else ""
    if parent is None or not commit:
        return None
    code = lineage.data_of(parent).get("code") or {}
    return {"url": str(code.get("git", "")), "commit": commit, "ref": str(code.get("ref") or "HEAD")}


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
