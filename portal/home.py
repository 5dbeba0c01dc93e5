"""The page of the morning: what needs me, how it goes, and whether GPUs are free."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.access import namespaces_for
from accounts.models import User
from accounts.roles import Verb
from jobs.documents import job_row
from jobs.models import Cluster, Job
from jobs.outlook import cluster_document
from jobs.states import JobStatus, Reason

SHOWN = 20  # of each list; the list of jobs has the rest
LAST = 5  # jobs that ended lately
YESTERDAY = timedelta(days=1)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    mine = Job.objects.filter(owner=user, archived_at=None).visible_to(user)
    failed = mine.filter(status=JobStatus.FAILED, finished_at__gte=timezone.now() - YESTERDAY).order_by("-finished_at")
    queued = mine.filter(status=JobStatus.QUEUED).order_by("queued_at")
    going = mine.filter(status__in=(JobStatus.RUNNING, JobStatus.STARTING)).order_by("-started_at", "-created_at")
    # jobs of people who left, which wait for a lead's decision
    left = Job.objects.filter(status=JobStatus.QUEUED, reason_code=Reason.OWNER_LEFT, held_by__isnull=False)
    orphaned = left.filter(namespace__in=namespaces_for(user, Verb.MANAGE)).exclude(owner=user).order_by("queued_at")
    # the first of each kind in one question, then all that their rows show in a second
    parts = [part.values_list("pk", flat=True)[:SHOWN] for part in (failed, queued, going, orphaned)]
    ended = mine.filter(status__in=(JobStatus.SUCCEEDED, JobStatus.CANCELLED)).order_by("-finished_at")
    kept = Job.objects.visible_to(user).filter(pins__user=user).order_by("-pins__created_at")
    recent, pinned = (list(part.values_list("pk", flat=True)[:most]) for part, most in ((ended, LAST), (kept, SHOWN)))
    current = list(parts[0].union(*parts[1:], all=True))
    by_id = {job.pk: job_row(job) for job in Job.objects.rows(list({*current, *recent, *pinned}))}
    rows = [by_id[pk] for pk in current if pk in by_id]
    has_failed = [row for row in rows if row["status"] == JobStatus.FAILED]
    waits = [row for row in rows if row["status"] == JobStatus.QUEUED]
    attention = [
        *sorted(has_failed, key=lambda row: row["finished_at"], reverse=True),
        *sorted(waits, key=lambda row: row["queued_at"]),
    ]
    running = [row for row in rows if row["status"] in (JobStatus.RUNNING, JobStatus.STARTING)]
    running.sort(key=lambda row: (row["started_at"] or "", row["created_at"]), reverse=True)
    return render(
        request,
        "portal/home.html",
        {
            "attention": attention,
            "running": running,
            "recent": [by_id[pk] for pk in recent if pk in by_id],
            "pinned": [by_id[pk] for pk in pinned if pk in by_id],
            "has_any": bool(rows or recent or pinned) or Job.objects.filter(owner=user).exists(),
            "clusters": [cluster_document(cluster, reader=user) for cluster in Cluster.objects.order_by("name")],
        },
    )
