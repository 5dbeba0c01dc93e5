"""What became of somebody's rights in a namespace, left as MembershipChange rows for the apps above."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from accounts.models import Membership, MembershipChange
from accounts.roles import RANK, Role

BATCH = 1000  # rows of one statement
Roles: TypeAlias = Mapping[tuple[int, int], Role]  # the highest one, by person and namespace


def highest(pks: Iterable[int]) -> dict[tuple[int, int], Role]:
    """The highest role of all sources, by person and namespace."""
    rows = Membership.objects.filter(user__in=list(pks)).values_list("user_id", "namespace_id", "role")
    return best((pk, place, Role(role)) for pk, place, role in rows)


def best(rows: Iterable[tuple[int, int, Role]]) -> dict[tuple[int, int], Role]:
    found: dict[tuple[int, int], Role] = {}
    for pk, place, role in rows:
        if (pk, place) not in found or RANK[role] > RANK[found[pk, place]]:
            found[pk, place] = role
    return found


def note(before: Roles, after: Roles) -> None:
    rows = [
        MembershipChange(
            user_id=pk, namespace_id=place, before=before.get((pk, place), ""), after=after.get((pk, place), "")
        )
        for pk, place in sorted(before.keys() | after.keys())
        if before.get((pk, place)) != after.get((pk, place))
    ]
    MembershipChange.objects.bulk_create(rows, batch_size=BATCH)
