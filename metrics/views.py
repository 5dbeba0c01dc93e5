"""The charts of a job: its Metrics page, the fragments that other pages of jobs include by URL, and the layout."""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access import may
from accounts.models import User
from accounts.roles import Verb
from jobs.models import Job
from jobs.scope import person, visible_job
from jobs.views.job import job_page
from metrics import layouts, marks, store
from metrics.documents import summary
from metrics.ingest import MAX_KEYS

# what people look at first stands first; a place for each of hundreds of tensors comes last
GROUPS = {"train": 0, "val": 1, "eval": 1, "test": 2, "": 3, "system": 5, "weights": 6, "gradients": 6}
OTHER = 4
LATE = 5  # groups from this place on are folded at first
OPEN = 60  # charts that stand open at first
EPOCH = re.compile(r"(^|/)epoch$")


@require_safe
def job_metrics(request: HttpRequest, job_id: str) -> HttpResponse:
    """The Metrics tab: every chart of the job, by group."""
    return job_page(
        request,
        job_id,
        "metrics/job.html",
        tab=lambda _job: "metrics",
        charts=lambda job: charts_of(job, person(request)),
    )


@require_safe
def charts(request: HttpRequest, job_id: str) -> HttpResponse:
    """One card per key, empty: the points come by the socket and by REST when the card is on the screen."""
    job = visible_job(request, job_id)
    return render(request, "metrics/_charts.html", {"charts": charts_of(job, person(request)), "job": job})


@require_safe
def overview(request: HttpRequest, job_id: str) -> HttpResponse:
    """The cards of the overview: those that are pinned, or that a link says, else the first of all."""
    job = visible_job(request, job_id)
    found = charts_of(job, person(request))
    layout = found["layout"]
    keys = [one for group in found["groups"] for one in group["keys"]]
    chosen = _pinned(keys, request.GET.getlist("pin")) or _pinned(keys, layout["pins"])
    if not chosen:
        chosen = [one for one in keys if one["key"] not in layout["hidden"]][: layouts.MOST_PINS]
    return render(request, "metrics/_overview.html", {"charts": found, "chosen": chosen, "job": job})


def _pinned(keys: list[dict[str, Any]], pins: list[str]) -> list[dict[str, Any]]:
    named = {one["key"]: one for one in keys}
    return [named[key] for key in dict.fromkeys(pins) if key in named][: layouts.MOST_PINS]


@require_safe
def job_marks(request: HttpRequest, job_id: str) -> HttpResponse:
    """What happened to the job, to be drawn into its charts: asked for once these are drawn."""
    return JsonResponse({"marks": [one.document() for one in marks.marks_of(visible_job(request, job_id))]})


@require_POST
def layout(request: HttpRequest, job_id: str) -> HttpResponse:
    """Keep a person's own layout for the jobs of this namespace, or forget it."""
    job = visible_job(request, job_id)
    return _changed(request, job, layouts.keep, layouts.reset)


@require_POST
def share_layout(request: HttpRequest, job_id: str) -> HttpResponse:
    """Make a layout that of everybody in the namespace, or take theirs away."""
    job = visible_job(request, job_id)
    if not may(person(request), Verb.MANAGE, job.namespace):
        raise PermissionDenied(_("Only a lead of the namespace may change everybody's layout."))
    return _changed(request, job, layouts.share, layouts.unshare)


def _changed(request: HttpRequest, job: Job, keep: Any, forget: Any) -> HttpResponse:
    """Do one of both; the answer is the layout that the person sees from now on."""
    user = person(request)
    if request.POST.get("reset"):
        forget(user, job.namespace, request=request)
    else:
        try:
            keep(user, job.namespace, _sent(request), request=request)
        except layouts.BadLayout as refused:
            error = {"code": "bad_layout", "message": str(refused), "fields": {}}
            return JsonResponse({"error": error}, status=422)
    keys = [one["key"] for one in keys_of([summary(one) for one in store.list_series(job.pk)])]
    return JsonResponse(layouts.layout_of(user, job, keys=keys).document())


def _sent(request: HttpRequest) -> Any:
    try:
        return json.loads(request.POST.get("layout", ""))
    except (json.JSONDecodeError, RecursionError) as error:
        raise layouts.BadLayout from error


def charts_of(job: Job, user: User) -> dict[str, Any]:
    """What the cards need to know; the number of the newest points is read before them, so that none is missed."""
    feed = job.feed
    series = [summary(one) for one in store.list_series(job.pk)]
    keys = keys_of(series)
    layout = layouts.layout_of(user, job, keys=[one["key"] for one in keys])
    groups = groups_of(layouts.ordered(keys, layout.order, usual=_place))
    for one in keys:
        one["size"] = layout.sizes.get(one["key"], "")
    return {
        "points_seq": feed.points_seq,
        "first_time": min((one["first_time"] for one in series), default=0),
        "epoch_key": next((one["key"] for one in series if EPOCH.search(one["key"])), ""),
        "groups": groups,
        "layout": layout.document(),
        "layout_text": json.dumps(layout.document()),
        "most_pins": layouts.MOST_PINS,
        "may_share": may(user, Verb.MANAGE, job.namespace),
        "count": len(keys),
        "max_keys": MAX_KEYS,
        "keys_are_full": feed.key_count >= MAX_KEYS,
        "refused_points": feed.refused_points,
    }


def _place(one: dict[str, Any]) -> tuple[Any, ...]:
    """Of a key the place of its group, and its own in it."""
    return GROUPS.get(one["group"], OTHER), one["key"]


def keys_of(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`[{key, group, source, ranks, attempts, count, last}]`, as they usually stand on the page.

    The last value is that of the newest attempt's lowest rank.
    """
    keys = []
    for key, same in groupby(sorted(series, key=lambda one: one["key"]), key=lambda one: one["key"]):
        members = sorted(same, key=lambda one: (-one["attempt"], one["rank"]))
        keys.append(
            {
                "key": key,
                "group": members[0]["group"],
                "source": members[0].get("source", ""),
                "ranks": sorted({one["rank"] for one in members}),
                "attempts": sorted({one["attempt"] for one in members}),
                "count": sum(one["count"] for one in members),
                "last": members[0]["last"],
            }
        )
    return list(layouts.ordered(keys, (), usual=_place))


def groups_of(keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`[{name, opens, keys}]`, from keys as they stand on the page."""
    found: list[dict[str, Any]] = []
    before = 0
    for name, same in groupby(keys, key=lambda one: one["group"]):
        members = list(same)
        opens = not found or (before + len(members) <= OPEN and (GROUPS.get(name, OTHER) < LATE or before == 0))
        found.append({"name": name, "keys": members, "opens": opens})
        before += len(members)
    return found
