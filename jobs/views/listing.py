"""The list of jobs: which, in what order, with which columns. All of it is in the URL."""

from __future__ import annotations

import difflib
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.views.decorators.http import require_GET

from accounts.access import namespaces_for, roles_of
from accounts.models import Namespace, User
from accounts.roles import Verb, allows
from jobs.documents import job_row
from jobs.lists import columns, saved
from jobs.lists.columns import Look
from jobs.lists.filters import ME, JobFilter, only_filter, read_leniently
from jobs.lists.row_template import row_template
from jobs.models import STATUS_LABELS, Cluster, Job, PriorityClass
from jobs.scope import person
from jobs.states import JobStatus

ROWS = 50
NAMES = 2000  # the newest, among which a close one is looked for
PEOPLE = 200
PERIODS = (("", _lazy("any time")), ("24h", _lazy("24 hours")), ("7d", _lazy("7 days")), ("30d", _lazy("30 days")))
MORE = ("user", "gpu", "priority", "tag", "until", "sort")  # filters that stand behind a button
CLASSES = {"gpus": "num", "spent": "num", "age": "num hide-s", "who": "hide-s"}
SORTED_BY = {"name": ("name",), "spent": ("waiting", "running"), "age": ("newest", "oldest")}


@require_GET
def job_list(request: HttpRequest) -> HttpResponse:
    user = person(request)
    query = request.GET.copy()
    query.pop("page", None)
    part = query.pop("part", [""])[-1]
    typed = query.copy()
    wanted, query, errors = read_leniently(query, me=user.username)
    namespaces, priorities = list(namespaces_for(user)), list(PriorityClass.objects.values_list("name", flat=True))
    errors += _unknown(typed, wanted, {namespace.slug for namespace in namespaces}, priorities)
    look = columns.read_look(query)
    seen = Job.objects.visible_to(user)
    found = seen.matching(**wanted.as_arguments()).in_order(look.sort)
    counts = seen.matching(**{**wanted.as_arguments(), "statuses": ()}).counts()
    asked = only_filter(query, me=user.username)
    told: dict[str, Any] = {
        "chips": _chips(query, wanted, counts),
        "active": _active(query, wanted),
        "asked": asked.urlencode(),
        "errors": errors,
        "total": sum(counts[status] for status in wanted.statuses or JobStatus),
    }
    if part == "counts":
        return render(request, "jobs/_counts.html", told)
    pages = Paginator(found.values_list("pk", flat=True), ROWS)
    pages.count = told["total"]  # a search reads every row only once
    page = pages.get_page(request.GET.get("page"))
    rows = [job_row(job) for job in Job.objects.rows(list(page.object_list))]
    return render(
        request,
        "jobs/list.html",
        {
            **told,
            "jobs": rows,
            "row": row_template(look.columns),
            "page": page,
            "filter": wanted,
            "look": look,
            "query": query.urlencode(),
            "topic": f"jobs?{asked.urlencode()}",
            "sparklines": _sparklines(look),
            "heads": _heads(query, look),
            "sort_label": columns.SORTS[look.sort],
            "changes": _changes(user, namespaces),
            "has_any": bool(rows or told["asked"] or errors) or any(counts.values()) or seen.exists(),
            "close": [] if rows or not wanted.q else _close_names(seen, query, wanted.q),
            "namespaces": namespaces,
            "is_known_namespace": wanted.namespace in {namespace.slug for namespace in namespaces},
            "priorities": priorities,
            **_filters(user, query, typed, wanted, look, counts),
            **_views(user, query),
        },
    )


def _sparklines(look: Look) -> str:
    """Where the pictures of the metrics come from: metrics stands above and is known by the name of its URL only."""
    if "metric" not in look.columns:
        return ""
    try:
        return reverse("api-metrics:sparklines")
    except NoReverseMatch:
        return ""


def _changes(user: User, namespaces: list[Namespace]) -> dict[str, list[str]]:
    """Where one may stop or hold one's own jobs, and where those of all: one query for the whole list."""
    roles = roles_of(user)
    return {
        name: [
            namespace.slug
            for namespace in namespaces
            if allows(verb=verb, role=roles.get(namespace.pk), site_role=user.site_role)
        ]
        for name, verb in (("own", Verb.CHANGE_OWN), ("any", Verb.CHANGE_ANY))
    }


def _unknown(typed: QueryDict, wanted: JobFilter, namespaces: set[str], priorities: list[str]) -> list[str]:
    """What is asked for in words that can be read but are the name of nothing here, said like the filters that cannot."""
    found = []
    if wanted.namespace and wanted.namespace not in namespaces:
        found.append(_("No namespace %(name)s that you may see.") % {"name": wanted.namespace})
    asked = {
        "sort": [typed.get("sort", "")],
        "cols": [word for one in typed.getlist("cols") for word in one.split(",")],
    }
    for name, words, known in (
        ("priority", [wanted.priority], priorities),
        ("sort", asked["sort"], list(columns.SORTS)),
        ("cols", asked["cols"], list(columns.COLUMNS)),
    ):
        found += [
            _("%(name)s: must be of %(known)s, not %(word)r")
            % {"name": name, "known": ", ".join(known), "word": word[:40]}
            for word in dict.fromkeys(words)
            if word and word not in known
        ]
    return found


def _filters(
    user: User, query: QueryDict, typed: QueryDict, wanted: JobFilter, look: Look, counts: dict[str, int]
) -> dict[str, Any]:
    since = next((value for value in reversed(typed.getlist("since")) if value), "")
    periods: list[tuple[str, Any]] = list(PERIODS)
    if since not in dict(periods):
        periods.append((since, since[:16] if wanted.since is None else since[:10]))
    return {
        "counts": counts,
        "mine": wanted.user == user.username,
        "user_asked": query.get("user", ""),
        "may_share": list(namespaces_for(user, Verb.SUBMIT)),
        "people": _people(user),
        "gpu_types": _gpu_types(wanted.gpu),
        "periods": periods,
        "since": since,
        "since_day": since if since not in dict(PERIODS) and since[4:5] == "-" else "",
        "until_day": query.get("until", "")[:10],
        "sorts": columns.SORTS.items(),
        "columns": columns.choices(look),
        "more": sum(1 for name in MORE if query.get(name) and (name, query[name]) != ("user", ME)),
    }


def _chips(query: QueryDict, wanted: JobFilter, counts: dict[str, int]) -> list[dict[str, Any]]:
    """One chip a status that occurs or is asked for; each press takes it in or out."""
    chips = []
    for status in JobStatus:
        on = status in wanted.statuses
        if not on and not counts[status]:
            continue
        others = [word for word in wanted.statuses if word != status]
        words = others if on else [*others, status.value]
        chips.append(
            {
                "status": status.value,
                "label": STATUS_LABELS[status],
                "count": counts[status],
                "on": on,
                "href": _with(query, status=",".join(words)),
            }
        )
    return chips


def _active(query: QueryDict, wanted: JobFilter) -> list[tuple[str, str]]:
    """Filters that no other control of the page shows at a glance, each with the address without it."""
    words = {
        "q": wanted.q and f"“{wanted.q}”",
        "user": "" if query.get("user") in (None, "", ME) else wanted.user,
        "gpu": {"any": _("with GPUs"), "none": _("without GPUs")}.get(wanted.gpu, wanted.gpu),
        "priority": wanted.priority and _("priority %(name)s") % {"name": wanted.priority},
        "tag": wanted.tag and _("tag %(name)s") % {"name": wanted.tag},
        "until": wanted.until and _("until %(day)s") % {"day": query.get("until", "")[:10]},
    }
    return [(str(label), _with(query, **{name: ""})) for name, label in words.items() if label]


def _heads(query: QueryDict, look: Look) -> list[dict[str, Any]]:
    """The head of each column; some, when pressed, order the rows: a second press orders them the other way."""
    heads = []
    for name in look.columns:
        sorts = SORTED_BY.get(name, ())
        following = sorts[(sorts.index(look.sort) + 1) % len(sorts)] if look.sort in sorts else next(iter(sorts), "")
        heads.append(
            {
                "label": columns.COLUMNS[name],
                "classes": f"of-{name} {CLASSES.get(name, '')}".strip(),
                "href": _with(query, sort="" if following == "newest" else following) if sorts else "",
                "sorted": ("ascending" if look.sort in ("name", "newest") else "descending")
                if look.sort in sorts
                else "",
            }
        )
    return heads


def _views(user: User, query: QueryDict) -> dict[str, Any]:
    mine = query.copy()
    if mine.get("user") == user.username:
        mine["user"] = ME
    as_view = "" if len(mine.urlencode()) > saved.QUERY_LENGTH else saved.clean_query(mine.urlencode())
    views = saved.offered(user)
    of_look = [(name, value) for name, values in query.lists() if name not in ("cols", "density") for value in values]
    return {
        "views": views,
        "as_view": as_view,
        "current": next((view for view in views if view.query == as_view), None) if as_view else None,
        "kept": of_look,
        "as_default": _with(query, cols="", density=""),
    }


def _with(query: QueryDict, **changes: str) -> str:
    changed = query.copy()
    for name, value in changes.items():
        if value:
            changed[name] = value
        else:
            changed.pop(name, None)
    return changed.urlencode()


def _people(user: User) -> list[str]:
    """Whom one may come across: everybody in one's namespaces."""
    people = User.objects.filter(memberships__namespace__in=namespaces_for(user)).order_by("username").distinct()
    return list(people.values_list("username", flat=True)[:PEOPLE])


def _gpu_types(asked: str) -> list[tuple[str, Any]]:
    nodes = [node for nodes in Cluster.objects.values_list("nodes", flat=True) for node in nodes]
    types = sorted({node["gpu_type"] for node in nodes if node.get("gpu_type")} | ({asked} - {"", "any", "none"}))
    return [("", _("any")), ("any", _("with GPUs")), ("none", _("without GPUs")), *((one, one) for one in types)]


def _close_names(seen: Any, query: QueryDict, words: str) -> list[tuple[str, str]]:
    """Names that are spelled nearly so, each with the address that looks for it."""
    names = list(dict.fromkeys(seen.order_by("-created_at").values_list("name", flat=True)[:NAMES]))
    lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(words.lower(), lower, n=3, cutoff=0.55)
    return [(lower[name], _with(query, q=lower[name])) for name in found]
