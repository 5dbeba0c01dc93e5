"""The list of jobs: which, in what order, with which columns. All of it is in the URL."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.views.decorators.http import require_GET

from accounts.models import Membership, User
from accounts.roles import Verb
from jobs.documents import job_row
from jobs.lists import columns, controls, saved
from jobs.lists.columns import Look
from jobs.lists.controls import with_values
from jobs.lists.filters import ME, JobFilter, only_filter, read_leniently
from jobs.lists.places import Place, places, with_places
from jobs.lists.row_template import rows_template
from jobs.lists.sight import Sight
from jobs.models import Cluster, Job, PriorityClass
from jobs.querysets import JobQuerySet
from jobs.scope import person
from jobs.states import JobStatus

ROWS = 50
PEOPLE = 200
PERIODS = (("", _lazy("any time")), ("24h", _lazy("24 hours")), ("7d", _lazy("7 days")), ("30d", _lazy("30 days")))
MORE = ("user", "gpu", "priority", "tag", "until", "archived", "sort")  # filters that stand behind a button


@require_GET
def job_list(request: HttpRequest) -> HttpResponse:
    user = person(request)
    query = request.GET.copy()
    query.pop("page", None)
    part = query.pop("part", [""])[-1]
    waits = query.pop("waits", [""])[-1]
    typed = query.copy()
    wanted, query, errors = read_leniently(query, me=user.username)
    sight = Sight(user)
    priorities = list(PriorityClass.objects.values_list("name", flat=True))
    slugs = {namespace.slug for namespace in sight.namespaces}
    errors += controls.unknown(typed, wanted, slugs, priorities)
    look = columns.read_look(query)
    seen = Job.objects.in_namespaces(sight.visible)
    found = seen.matching(**wanted.as_arguments())
    counts = seen.matching(**{**wanted.as_arguments(), "statuses": ()}).counts()
    asked = only_filter(query, me=user.username)
    told: dict[str, Any] = {
        "chips": controls.chips(query, wanted, counts),
        "active": controls.active(query, wanted),
        "asked": asked.urlencode(),
        "errors": errors,
        "total": sum(counts[status] for status in wanted.statuses or JobStatus),
    }
    if part == "counts":
        return render(request, "jobs/_counts.html", {**told, "places": _places_of(seen, waits)})
    line = places() if look.sort == "position" else None
    pages = Paginator(found.in_order(look.sort, line=line or ()).values_list("pk", flat=True), ROWS)
    pages.count = told["total"]  # a search reads every row only once
    page = pages.get_page(request.GET.get("page"))
    rows = [job_row(job) for job in Job.objects.rows(list(page.object_list))]
    with_places(rows, line)
    return render(
        request,
        "jobs/list.html",
        {
            **told,
            "jobs": rows,
            "rows": rows_template(look.columns),
            "page": page,
            "filter": wanted,
            "look": look,
            "query": query.urlencode(),
            "topic": f"jobs?{asked.urlencode()}",
            "sparklines": _sparklines(look),
            "heads": controls.heads(query, look),
            "sort_label": columns.SORTS[look.sort],
            "changes": {
                name: [namespace.slug for namespace in sight.where(verb)]
                for name, verb in (("own", Verb.CHANGE_OWN), ("any", Verb.CHANGE_ANY))
            },
            "has_any": bool(rows or told["asked"] or errors) or any(counts.values()) or seen.exists(),
            "close": []
            if rows or not wanted.q
            else controls.close_names(seen.matching(archived=wanted.archived), query, wanted.q),
            "namespaces": sight.namespaces,
            "is_known_namespace": wanted.namespace in slugs,
            "priorities": priorities,
            **_filters(sight, query, typed, wanted, look, counts),
            **_views(sight, query),
        },
    )


def _places_of(seen: JobQuerySet, text: str) -> list[tuple[str, Place]]:
    """Where the jobs of these ids, as a page shows them, stand in the line by now."""
    ids = [word for word in text.split(",")[:ROWS] if word and "\0" not in word]
    if not ids:
        return []
    line = places()
    return [(job_id, line[job_id]) for job_id in seen.filter(pk__in=ids).values_list("pk", flat=True) if job_id in line]


def _sparklines(look: Look) -> str:
    """Where the pictures of the metrics come from: metrics stands above and is known by the name of its URL only."""
    if "metric" not in look.columns:
        return ""
    try:
        return reverse("api-metrics:sparklines")
    except NoReverseMatch:
        return ""


def _filters(
    sight: Sight, query: QueryDict, typed: QueryDict, wanted: JobFilter, look: Look, counts: dict[str, int]
) -> dict[str, Any]:
    since = next((value for value in reversed(typed.getlist("since")) if value), "")
    periods: list[tuple[str, Any]] = list(PERIODS)
    if since not in dict(periods):
        periods.append((since, since[:16] if wanted.since is None else since[:10]))
    return {
        "counts": counts,
        "mine": wanted.user == sight.user.username,
        "user_asked": query.get("user", ""),
        "may_share": sight.where(Verb.SUBMIT),
        "people": _people(sight),
        "gpu_types": _gpu_types(wanted.gpu),
        "periods": periods,
        "since": since,
        "since_day": since if since not in dict(PERIODS) and since[4:5] == "-" else "",
        "until_day": query.get("until", "")[:10],
        "sorts": columns.SORTS.items(),
        "columns": columns.choices(look),
        "more": sum(1 for name in MORE if query.get(name) and (name, query[name]) != ("user", ME)),
    }


def _views(sight: Sight, query: QueryDict) -> dict[str, Any]:
    mine = query.copy()
    if mine.get("user") == sight.user.username:
        mine["user"] = ME
    as_view = "" if len(mine.urlencode()) > saved.QUERY_LENGTH else saved.clean_query(mine.urlencode())
    views = saved.offered(sight.user, visible=sight.visible)
    of_look = [(name, value) for name, values in query.lists() if name not in ("cols", "density") for value in values]
    return {
        "views": views,
        "as_view": as_view,
        "current": next((view for view in views if view.query == as_view), None) if as_view else None,
        "kept": of_look,
        "as_default": with_values(query, cols="", density=""),
        "roomy": with_values(query, density=""),
        "dense": with_values(query, density="compact"),
    }


def _people(sight: Sight) -> list[str]:
    """Whom one may come across: everybody in one's namespaces."""
    members = Membership.objects.filter(namespace__in=[namespace.pk for namespace in sight.namespaces])
    people = User.objects.filter(pk__in=members.values("user")).order_by("username")
    return list(people.values_list("username", flat=True)[:PEOPLE])


def _gpu_types(asked: str) -> list[tuple[str, Any]]:
    nodes = [node for nodes in Cluster.objects.values_list("nodes", flat=True) for node in nodes]
    types = sorted({node["gpu_type"] for node in nodes if node.get("gpu_type")} | ({asked} - {"", "any", "none"}))
    return [("", _("any")), ("any", _("with GPUs")), ("none", _("without GPUs")), *((one, one) for one in types)]
