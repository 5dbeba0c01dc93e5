"""Fragments about points that pages of jobs include by URL."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from jobs.models import Job, JobFeed
from metrics import store
from metrics.documents import summary
from metrics.ingest import MAX_KEYS

# what people look at first stands first; a place for each of hundreds of tensors comes last
GROUPS = {"train": 0, "val": 1, "eval": 1, "test": 2, "": 3, "system": 5, "weights": 6, "gradients": 6}
OTHER = 4


@require_safe
def charts(request: HttpRequest, job_id: str) -> HttpResponse:
    """One card per key, empty: the points come by the socket and by REST when the card is on the screen."""
    job = get_object_or_404(Job.objects.visible_to(request.user).for_rows(), pk=job_id)
    feed: JobFeed = job.feed
    series = [summary(one) for one in store.list_series(job.pk)]
    return render(
        request,
        "metrics/_charts.html",
        {
            "job": job,
            "feed": feed,
            "series": series,
            "groups": groups_of(series),
            "key_count": feed.key_count,
            "max_keys": MAX_KEYS,
            "keys_are_full": feed.key_count >= MAX_KEYS,
            "refused_points": feed.refused_points,
        },
    )


def groups_of(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`[{name, keys: [{key, ranks, attempts, count, last}]}]`; the last value is that of the newest attempt's lowest rank."""
    keys = []
    for key, same in groupby(sorted(series, key=lambda one: one["key"]), key=lambda one: one["key"]):
        members = sorted(same, key=lambda one: (-one["attempt"], one["rank"]))
        keys.append(
            {
                "key": key,
                "group": members[0]["group"],
                "ranks": sorted({one["rank"] for one in members}),
                "attempts": sorted({one["attempt"] for one in members}),
                "count": sum(one["count"] for one in members),
                "last": members[0]["last"],
            }
        )
    keys.sort(key=lambda one: (GROUPS.get(one["group"], OTHER), one["group"], one["key"]))
    return [{"name": name, "keys": list(same)} for name, same in groupby(keys, key=lambda one: one["group"])]
