"""What stands around the rows of a list: its chips, the heads of its columns, what is wrong in its address, close names."""

from __future__ import annotations

import difflib
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from jobs.lists import columns
from jobs.lists.columns import Look
from jobs.lists.filters import ME, JobFilter
from jobs.models import STATUS_LABELS
from jobs.querysets import ONLY_ARCHIVED, WITH_ARCHIVED
from jobs.states import JobStatus

NAMES = 2000  # the newest, among which a close one is looked for
CLASSES = {"gpus": "num", "spent": "num", "age": "num hide-s", "who": "hide-s"}
SORTED_BY = {"name": ("name",), "spent": ("waiting", "running"), "age": ("newest", "oldest")}


def chips(query: QueryDict, wanted: JobFilter, counts: dict[str, int]) -> list[dict[str, Any]]:
    """One chip a status that occurs or is asked for; each press takes it in or out."""
    found = []
    for status in JobStatus:
        on = status in wanted.statuses
        if not on and not counts[status]:
            continue
        others = [word for word in wanted.statuses if word != status]
        words = others if on else [*others, status.value]
        found.append(
            {
                "status": status.value,
                "label": STATUS_LABELS[status],
                "count": counts[status],
                "on": on,
                "href": with_values(query, status=",".join(words)),
            }
        )
    return found


def active(query: QueryDict, wanted: JobFilter) -> list[tuple[str, str]]:
    """Filters that no other control of the page shows at a glance, each with the address without it."""
    words = {
        "q": wanted.q and f"“{wanted.q}”",
        "user": "" if query.get("user") in (None, "", ME) else wanted.user,
        "gpu": {"any": _("with GPUs"), "none": _("without GPUs")}.get(wanted.gpu, wanted.gpu),
        "priority": wanted.priority and _("priority %(name)s") % {"name": wanted.priority},
        "tag": wanted.tag and _("tag %(name)s") % {"name": wanted.tag},
        "archived": {WITH_ARCHIVED: _("archived too"), ONLY_ARCHIVED: _("only archived")}.get(wanted.archived, ""),
        "until": wanted.until and _("until %(day)s") % {"day": query.get("until", "")[:10]},
    }
    return [(str(label), with_values(query, **{name: ""})) for name, label in words.items() if label]


def heads(query: QueryDict, look: Look) -> list[dict[str, Any]]:
    """The head of each column; some, when pressed, order the rows: a second press orders them the other way."""
    found = []
    for name in look.columns:
        sorts = SORTED_BY.get(name, ())
        following = sorts[(sorts.index(look.sort) + 1) % len(sorts)] if look.sort in sorts else next(iter(sorts), "")
        found.append(
            {
                "name": name,
                "label": columns.COLUMNS[name],
                "classes": f"of-{name} {CLASSES.get(name, '')}".strip(),
                "href": with_values(query, sort="" if following == "newest" else following) if sorts else "",
                "sorted": ("ascending" if look.sort in ("name", "newest") else "descending")
                if look.sort in sorts
                else "",
            }
        )
    return found


def unknown(typed: QueryDict, wanted: JobFilter, namespaces: set[str], priorities: list[str]) -> list[str]:
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


def with_values(query: QueryDict, **changes: str) -> str:
    changed = query.copy()
    for name, value in changes.items():
        if value:
            changed[name] = value
        else:
            changed.pop(name, None)
    return changed.urlencode()


def close_names(seen: Any, query: QueryDict, words: str) -> list[tuple[str, str]]:
    """Names that are spelled nearly so, each with the address that looks for it."""
    names = list(dict.fromkeys(seen.order_by("-created_at").values_list("name", flat=True)[:NAMES]))
    lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(words.lower(), lower, n=3, cutoff=0.55)
    return [(lower[name], with_values(query, q=lower[name])) for name in found]
