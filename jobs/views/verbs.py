"""What the buttons of a job do; each is one verb of `submission`."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from jobs import labels, submission
from jobs.exceptions import JobError, NotAllowed, SpecError
from jobs.scope import person, visible_job
from jobs.views.job import detail_page


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


@require_POST
def job_edit(request: HttpRequest, job_id: str) -> HttpResponse:
    """The form of name, notes and tags; what is wrong is said on the page, with what was typed."""
    job = visible_job(request, job_id)
    typed = {name: request.POST.get(name, "").replace("\r\n", "\n") for name in ("name", "notes", "tags")}
    # what the page showed when it was opened: only what its reader changed is written, others may have changed the rest
    values: dict[str, Any] = {name: typed[name] for name in typed if typed[name] != request.POST.get(f"was_{name}")}
    if "tags" in values:
        values["tags"] = values["tags"].replace("，", ",").split(",")
    try:
        labels.edit(job, user=person(request), values=values, request=request)
    except NotAllowed as error:
        return render(request, "403.html", {"reason": error.message}, status=403)
    except SpecError as error:
        return detail_page(request, job_id, label_errors=error.fields, label_values=typed)
    return redirect("jobs:detail", job_id)


@require_POST
def job_pin(request: HttpRequest, job_id: str) -> HttpResponse:
    labels.pin(visible_job(request, job_id), user=person(request))
    return redirect("jobs:detail", job_id)


@require_POST
def job_unpin(request: HttpRequest, job_id: str) -> HttpResponse:
    labels.unpin(visible_job(request, job_id), user=person(request))
    return redirect("jobs:detail", job_id)


@require_POST
def job_archive(request: HttpRequest, job_id: str) -> HttpResponse:
    return _change(request, job_id, labels.archive)


@require_POST
def job_unarchive(request: HttpRequest, job_id: str) -> HttpResponse:
    return _change(request, job_id, labels.unarchive)


def _change(request: HttpRequest, job_id: str, verb: Any, **wish: Any) -> HttpResponse:
    job = visible_job(request, job_id)
    try:
        verb(job, user=person(request), request=request, **wish)
    except NotAllowed as error:
        return render(request, "403.html", {"reason": error.message}, status=403)
    except JobError as error:
        messages.error(request, error.message)
    return redirect("jobs:detail", job_id)
