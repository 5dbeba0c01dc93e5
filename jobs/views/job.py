"""The pages of one job: each tab asks for what it shows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.access import may
from accounts.roles import Verb
from jobs.archives import text_files
from jobs.cluster.registry import kinds
from jobs.documents import job_document
from jobs.keeping import kept_until
from jobs.logs.lines import last_lines
from jobs.models import ClusterEvent
from jobs.outlook import why_waiting
from jobs.preview import what_ran
from jobs.quoting import fill_in
from jobs.run_files import list_files
from jobs.scope import person, visible_job
from jobs.shell.rights import may_open
from jobs.states import JobStatus
from jobs.timeline import phases, totals


def job_page(request: HttpRequest, job_id: str, template: str, *, status: int = 200, **more: Any) -> HttpResponse:
    """A tab of a job's page in its frame; each of `more` is made from the job."""
    job = visible_job(request, job_id)
    user = person(request)
    own = job.owner_id == user.pk
    document = job_document(job)
    found = phases(job)
    return render(
        request,
        template,
        {
            "job": document,
            "record": job,
            "phases": found,
            "totals": totals(found),
            "whole": sum(phase.seconds for phase in found),
            "may_change": may(user, Verb.CHANGE_OWN, job.namespace, owns=own),
            "may_shell": may_open(user, job),
            "may_clone": may(user, Verb.SUBMIT, job.namespace) and not job.is_adopted,
            "several_clusters": len(kinds()) > 1,
            "is_pinned": job.pins.filter(user=user).exists(),
            **{name: make(job) for name, make in more.items()},
        },
        status=status,
    )


@require_GET
def job_detail(request: HttpRequest, job_id: str) -> HttpResponse:
    return detail_page(request, job_id)


def detail_page(
    request: HttpRequest,
    job_id: str,
    *,
    label_errors: dict[str, list[str]] | None = None,
    label_values: dict[str, str] | None = None,
) -> HttpResponse:
    """The overview; with the form of its labels as typed, where that was refused."""
    return job_page(
        request,
        job_id,
        "jobs/detail.html",
        status=422 if label_errors else 200,
        tab=lambda _job: "overview",
        label_errors=lambda _job: label_errors or {},
        label_values=lambda _job: label_values or {},
        tags_text=lambda job: ", ".join(job.tags),
        command=lambda job: fill_in(job.parsed.command, job.parsed.parameters),
        lines=lambda job: last_lines(job.pk, count=20),
        wait=lambda job: why_waiting(job) if job.status == JobStatus.QUEUED else None,
    )


@require_GET
def job_workers(request: HttpRequest, job_id: str) -> HttpResponse:
    return job_page(request, job_id, "jobs/workers.html", tab=lambda _job: "workers")


@require_GET
def job_events(request: HttpRequest, job_id: str) -> HttpResponse:
    return job_page(
        request,
        job_id,
        "jobs/events.html",
        tab=lambda _job: "events",
        events=lambda job: list(job.events.order_by("-at", "-id")[:500]),
        said=lambda job: (
            ClusterEvent.objects.filter(attempt__job=job).select_related("attempt").order_by("-last_at", "-id")
        ),
    )


@require_GET
def job_files(request: HttpRequest, job_id: str) -> HttpResponse:
    return job_page(
        request, job_id, "jobs/files.html", tab=lambda _job: "files", listing=list_files, kept_until=kept_until
    )


@require_GET
def job_spec(request: HttpRequest, job_id: str) -> HttpResponse:
    return job_page(
        request,
        job_id,
        "jobs/spec.html",
        tab=lambda _job: "spec",
        ran=what_ran,
        files=lambda job: text_files(job.code) if job.code else [],
    )
