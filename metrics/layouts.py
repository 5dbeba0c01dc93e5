"""How the charts of a job stand: pinned, in which order, hidden, how large, with which goal.

A person's own layout goes before that of the namespace, that before what the job's document says (`charts:`), that before
the usual one. Each is whole: what a person keeps begins as a copy of what they saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, Self, TypeVar

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.disguise import hidden_in
from accounts.models import Namespace, User
from jobs.chart_fields import BESTS, FARTHEST, LONGEST_LABEL, SIZES
from jobs.models import Job
from jobs.spec import Charts
from metrics.batches import why_not_a_name
from metrics.models import ChartLayout

MOST_PINS = 6
MOST = 1000  # names in each of the others
OWN, NAMESPACE, JOB, USUAL = "own", "namespace", "job", "usual"
T = TypeVar("T")


@dataclass(frozen=True)
class Layout:
    """By the keys of metrics; `source` says whose it is."""

    pins: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    log_y: list[str] = field(default_factory=list)
    sizes: dict[str, str] = field(default_factory=dict)  # small is the usual one
    better: dict[str, str] = field(
        default_factory=dict
    )  # min or max, where its name does not say it, or says it wrongly
    goals: dict[str, dict[str, Any]] = field(default_factory=dict)  # {value, label}
    source: str = USUAL

    @classmethod
    def kept(cls, data: Mapping[str, Any], *, source: str) -> Self:
        """From a row, which may be older than some of the fields."""
        return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data}, source=source)

    def document(self) -> dict[str, Any]:
        return asdict(self)


class BadLayout(ValueError):
    """Too many, or something that cannot be; says what."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or _("This is no layout of charts. Load the page again and change it once more."))


def layout_of(user: User, job: Job, *, keys: Sequence[str]) -> Layout:
    """What this person sees of this job's metrics."""
    rows = ChartLayout.objects.filter(namespace=job.namespace, owner__in=[user]) | ChartLayout.objects.filter(
        namespace=job.namespace, owner=None
    )
    found = {row.owner_id: row.layout for row in rows}
    if user.pk in found:
        return Layout.kept(found[user.pk], source=OWN)
    if None in found:
        return Layout.kept(found[None], source=NAMESPACE)
    charts = job.parsed.charts
    return Layout() if charts == Charts() else of_job(charts, keys)


def of_job(charts: Charts, keys: Sequence[str]) -> Layout:
    """The globs of a document as the keys they mean. A key's own name goes before a glob, a longer glob before a shorter."""
    goals = _by_key(charts.goals, keys)
    return Layout(
        pins=_matching(charts.pin, keys)[:MOST_PINS],
        order=_matching(charts.order, keys),
        hidden=_matching(charts.hide, keys),
        log_y=_matching(charts.log_y, keys),
        sizes=_by_key(charts.size, keys),
        better=_by_key(charts.best, keys),
        goals={key: asdict(goal) for key, goal in goals.items()},
        source=JOB,
    )


def _matching(globs: Iterable[str], keys: Sequence[str]) -> list[str]:
    """In the order of the globs; what one glob finds, in the order of the keys."""
    return list(dict.fromkeys(key for glob in globs for key in keys if _means(glob, key)))


def _by_key(by_glob: Mapping[str, T], keys: Sequence[str]) -> dict[str, T]:
    found = {}
    for key in keys:
        globs = [glob for glob in by_glob if _means(glob, key)]
        if globs:
            found[key] = by_glob[max(globs, key=lambda glob: (glob == key, len(glob), glob))]
    return found


def _means(glob: str, key: str) -> bool:
    return glob == key or fnmatchcase(key, glob)


def ordered(keys: Sequence[dict[str, Any]], order: Sequence[str], *, usual: Callable[[dict[str, Any]], Any]) -> Any:
    """Keys as they stand on the page: a group with ordered metrics first, and in it those first."""
    places = {key: place for place, key in enumerate(order)}
    last = len(order)
    groups: dict[str, int] = {}
    for one in keys:
        groups[one["group"]] = min(groups.get(one["group"], last), places.get(one["key"], last))

    def place(one: dict[str, Any]) -> Any:
        group, *rest = usual(one)
        return groups[one["group"]], group, one["group"], places.get(one["key"], last), *rest

    return sorted(keys, key=place)


def _checked(data: Any) -> dict[str, Any]:
    """A layout as a page sends it, without what is usual."""
    if not isinstance(data, dict) or set(data) - {one.name for one in fields(Layout)}:
        raise BadLayout
    layout: dict[str, Any] = {}
    for name in ("pins", "order", "hidden", "log_y"):
        keys = data.get(name) or []
        if not isinstance(keys, list) or not all(map(_is_key, keys)):
            raise BadLayout
        layout[name] = list(dict.fromkeys(keys))
    readers = {"sizes": lambda value: value in SIZES, "better": lambda value: value in BESTS, "goals": _is_goal}
    for name, is_good in readers.items():
        entries = data.get(name) or {}
        if not isinstance(entries, dict) or not all(_is_key(key) and is_good(entries[key]) for key in entries):
            goal = _("A goal is a number, with a name of at most %(most)s characters.") % {"most": LONGEST_LABEL}
            raise BadLayout(goal if name == "goals" else "")
        layout[name] = entries
    if len(layout["pins"]) > MOST_PINS:
        raise BadLayout(_("At most %(most)s charts can be pinned.") % {"most": MOST_PINS})
    if any(len(entries) > MOST for entries in layout.values()):
        raise BadLayout(_("A layout has at most %(most)s charts of a kind.") % {"most": MOST})
    layout["sizes"] = {key: size for key, size in layout["sizes"].items() if size != SIZES[0]}
    return {name: entries for name, entries in layout.items() if entries or name in ("pins", "hidden")}


def _is_key(key: Any) -> bool:
    return isinstance(key, str) and key != "" and not why_not_a_name(key)


def _is_goal(goal: Any) -> bool:
    if not isinstance(goal, dict) or set(goal) != {"value", "label"}:
        return False
    value, label = goal["value"], goal["label"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < FARTHEST:
        return False
    return isinstance(label, str) and len(label) <= LONGEST_LABEL and not why_not_a_name(label) and not hidden_in(label)


@transaction.atomic
def keep(user: User, namespace: Namespace, data: Any, *, request: HttpRequest) -> None:
    """A person's own layout."""
    layout = _checked(data)
    ChartLayout.objects.update_or_create(namespace=namespace, owner=user, defaults={"layout": layout})
    record(user, "layout.keep", namespace=namespace.slug, after=layout, request=request)


@transaction.atomic
def reset(user: User, namespace: Namespace, *, request: HttpRequest) -> None:
    """Forget a person's own layout: the namespace's, or the job's, is theirs again."""
    ChartLayout.objects.filter(namespace=namespace, owner=user).delete()
    record(user, "layout.reset", namespace=namespace.slug, request=request)


@transaction.atomic
def share(user: User, namespace: Namespace, data: Any, *, request: HttpRequest) -> None:
    """Make a layout that of the namespace. The person's own goes, as it is the same from now on."""
    layout = _checked(data)
    before = _shared(namespace)
    ChartLayout.objects.update_or_create(namespace=namespace, owner=None, defaults={"layout": layout})
    ChartLayout.objects.filter(namespace=namespace, owner=user).delete()
    record(user, "layout.share", namespace=namespace.slug, before=before, after=layout, request=request)


@transaction.atomic
def unshare(user: User, namespace: Namespace, *, request: HttpRequest) -> None:
    """Forget the namespace's layout: each job's own is everybody's again."""
    before = _shared(namespace)
    ChartLayout.objects.filter(namespace=namespace, owner=None).delete()
    record(user, "layout.unshare", namespace=namespace.slug, before=before, request=request)


def _shared(namespace: Namespace) -> Any:
    return ChartLayout.objects.filter(namespace=namespace, owner=None).values_list("layout", flat=True).first()
