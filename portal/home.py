"""The page of the morning: what needs me, how it goes, and whether GPUs are free."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

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
YESTERDAY = timedelta(days=1)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    mine = Job.objects.filter(owner=user).visible_to(user).for_rows()
    failed = mine.filter(status=JobStatus.FAILED, finished_at__gte=timezone.now() - YESTERDAY).order_by("-finished_at")
    queued = mine.filter(status=JobStatus.QUEUED).order_by("queued_at")
    going = mine.filter(status__in=(JobStatus.RUNNING, JobStatus.STARTING)).order_by("-started_at", "-created_at")
    attention, running = [*_rows(failed), *_rows(queued)], _rows(going)
    return render(
        request,
        "portal/home.html",
        {
            "attention": attention,
            "running": running,
            "recent": [] if attention or running else _rows(mine.order_by("-created_at"))[:5],
            "has_any": bool(attention or running) or Job.objects.filter(owner=user).exists(),
            "clusters": [cluster_document(cluster) for cluster in Cluster.objects.order_by("name")],
        },
    )


def _rows(jobs: Any) -> list[dict[str, Any]]:
    return [job_row(job) for job in jobs[:SHOWN]]
