"""How a list of jobs is shown: its columns and their order, the order of its rows, how dense. All of it stands in the URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from jobs.cluster.registry import kinds
from jobs.querysets import ORDERS, POSITION

COLUMNS: Mapping[str, Any] = {
    "status": _("Status"),
    "name": _("Name"),
    "how": _("Why, or how it goes"),
    "metric": _("Key metric"),
    "who": _("Who, where"),
    "cluster": _("Cluster"),
    "gpus": _("GPUs"),
    "spent": _("Time"),
    "age": _("Age"),
    "priority": _("Priority"),
    "tags": _("Tags"),
    "id": _("Id"),
}
DEFAULT = tuple("status name how metric who gpus spent age".split())
ALWAYS = ("status", "name")  # a row without them is no row
SORTS: Mapping[str, Any] = {
    "newest": _("Newest first"),
    "oldest": _("Oldest first"),
    "position": _("Place in the queue"),
    "waiting": _("Waiting longest"),
    "running": _("Running longest"),
    "ended": _("Ended last"),
    "name": _("Name"),
}
assert set(SORTS) == {*ORDERS, POSITION}
PARAMETERS = ("cols", "sort", "density")


@dataclass(frozen=True, slots=True)
class Look:
    columns: tuple[str, ...] = DEFAULT
    sort: str = "newest"
    compact: bool = False

    @property
    def wide(self) -> bool:
        """More than fits beside each other on a small screen: the table scrolls in its own frame."""
        return len(self.columns) > len(usual())


def usual() -> tuple[str, ...]:
    """What a list shows where nobody says otherwise; of several clusters also which one."""
    place = DEFAULT.index("who") + 1
    return (*DEFAULT[:place], "cluster", *DEFAULT[place:]) if len(kinds()) > 1 else DEFAULT


def read_look(query: QueryDict) -> Look:
    """Unknown words are passed over: a link made by a newer or older portal still shows its jobs."""
    asked = [word for value in query.getlist("cols") for word in value.split(",")]
    columns = tuple(dict.fromkeys(word for word in asked if word in COLUMNS))
    if columns:
        columns = (*(word for word in ALWAYS if word not in columns), *columns)
    sort = query.get("sort", "")
    return Look(
        columns=columns or usual(),
        sort=sort if sort in SORTS else "newest",
        compact=query.get("density") == "compact",
    )


def choices(look: Look) -> list[tuple[str, Any, bool]]:
    """Every column as (name, label, shown), the shown ones first and in their order."""
    rest = [name for name in COLUMNS if name not in look.columns]
    return [(name, COLUMNS[name], name in look.columns) for name in (*look.columns, *rest)]
