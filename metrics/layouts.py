"""Which charts of a namespace's jobs are pinned and which are hidden: everybody's layout, and one's own over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import transaction
from django.http import HttpRequest

from accounts.audit import record
from accounts.models import Namespace, User
from metrics.models import ChartLayout
from metrics.points import why_not_a_name

MOST_PINS = 6
MOST_HIDDEN = 1000


@dataclass(frozen=True)
class Layout:
    pins: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    own: bool = False  # of this person, and not the namespace's

    def document(self) -> dict[str, Any]:
        return asdict(self)


class BadLayout(ValueError):
    """Too many, or something that is no name of a metric."""


def layout_of(user: User, namespace: Namespace) -> Layout:
    """One's own, else that of the namespace, else an empty one."""
    rows = ChartLayout.objects.filter(namespace=namespace, owner__in=[user]) | ChartLayout.objects.filter(
        namespace=namespace, owner=None
    )
    found = {row.owner_id: row.layout for row in rows}
    layout = found.get(user.pk, found.get(None, {}))
    return Layout(layout.get("pins", []), layout.get("hidden", []), own=user.pk in found)


def _checked(pins: Sequence[str], hidden: Sequence[str]) -> dict[str, list[str]]:
    layout = {"pins": list(dict.fromkeys(pins)), "hidden": list(dict.fromkeys(hidden))}
    if len(layout["pins"]) > MOST_PINS or len(layout["hidden"]) > MOST_HIDDEN:
        raise BadLayout
    if any(not key or why_not_a_name(key) for key in (*layout["pins"], *layout["hidden"])):
        raise BadLayout
    return layout


@transaction.atomic
def keep(
    user: User, namespace: Namespace, *, pins: Sequence[str], hidden: Sequence[str], request: HttpRequest
) -> Layout:
    """A person's own layout."""
    layout = _checked(pins, hidden)
    ChartLayout.objects.update_or_create(namespace=namespace, owner=user, defaults={"layout": layout})
    record(user, "layout.keep", namespace=namespace.slug, after=layout, request=request)
    return layout_of(user, namespace)


@transaction.atomic
def reset(user: User, namespace: Namespace, *, request: HttpRequest) -> Layout:
    """Forget a person's own layout: the namespace's is theirs again."""
    ChartLayout.objects.filter(namespace=namespace, owner=user).delete()
    record(user, "layout.reset", namespace=namespace.slug, request=request)
    return layout_of(user, namespace)


@transaction.atomic
def share(
    user: User, namespace: Namespace, *, pins: Sequence[str], hidden: Sequence[str], request: HttpRequest
) -> Layout:
    """Make a layout that of the namespace. The person's own goes, as it is the same from now on."""
    layout = _checked(pins, hidden)
    before = ChartLayout.objects.filter(namespace=namespace, owner=None).values_list("layout", flat=True).first()
    ChartLayout.objects.update_or_create(namespace=namespace, owner=None, defaults={"layout": layout})
    ChartLayout.objects.filter(namespace=namespace, owner=user).delete()
    record(user, "layout.share", namespace=namespace.slug, before=before, after=layout, request=request)
    return layout_of(user, namespace)
