"""The page of the morning: what needs me, how it goes, and whether GPUs are free."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.models import User
from jobs.documents import job_row
from jobs.models import Cluster, Job
from jobs.outlook import cluster_document
from jobs.states import JobStatus

SHOWN = 20  # of each list; the list of jobs has the rest
LAST = 5  # shown where nothing waits, runs or has failed
YESTERDAY = timedelta(days=1)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    mine = Job.objects.filter(owner=user).visible_to(user)
    failed = mine.filter(status=JobStatus.FAILED, finished_at__gte=timezone.now() - YESTERDAY).order_by("-finished_at")
    queued = mine.filter(status=JobStatus.QUEUED).order_by("queued_at")
    going = mine.filter(status__in=(JobStatus.RUNNING, JobStatus.STARTING)).order_by("-started_at", "-created_at")
    # the first of each kind in one question, then all that their rows show in a second
    parts = [part.values_list("pk", flat=True)[:SHOWN] for part in (failed, queued, going)]
    rows = [job_row(job) for job in Job.objects.rows(list(parts[0].union(*parts[1:], all=True)))]
    has_failed = [row for row in rows if row["status"] == JobStatus.FAILED]
    waits = [row for row in rows if row["status"] == JobStatus.QUEUED]
    attention = [
        *sorted(has_failed, key=lambda row: row["finished_at"], reverse=True),
        *sorted(waits, key=lambda row: row["queued_at"]),
    ]
    running = [row for row in rows if row["status"] in (JobStatus.RUNNING, JobStatus.STARTING)]
    running.sort(key=lambda row: (row["started_at"] or "", row["created_at"]), reverse=True)
    recent = [] if rows else Job.objects.rows(list(mine.order_by("-created_at").values_list("pk", flat=True)[:LAST]))
    return render(
        request,
        "portal/home.html",
        {
            "attention": attention,
            "running": running,
            "recent": [job_row(job) for job in recent],
            "has_any": bool(rows or recent) or Job.objects.filter(owner=user).exists(),
            "clusters": [cluster_document(cluster) for cluster in Cluster.objects.order_by("name")],
        },
    )
