"""Between two sign-ins: roles by groups of an OpenID Connect provider follow the rules, and end where no sign-in confirms them.

The portal hears of those groups at sign-in only: without an end, who left one would keep its roles for ever, in tokens and in
jobs that wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from accounts import grants, site_roles, sync
from accounts.directory import Entry, Everybody, Group
from accounts.grants import Rule
from accounts.models import Membership, User
from accounts.openid import SOURCE, groups_named
from accounts.roles import Role


def bring_in_line(*, days: int) -> list[str]:
    """The answer names whose roles are others now. A constant number of queries, and a few for each of them."""
    then = timezone.now() - timedelta(days=days)
    roles: dict[int, dict[tuple[str, str], Role]] = defaultdict(dict)
    rows = Membership.objects.filter(user__source=SOURCE, source__startswith=grants.SOURCE)
    for pk, slug, source, role in rows.values_list("user_id", "namespace__slug", "source", "role"):
        roles[pk][slug, source] = Role(role)
    rules, projects = sync.rules(), sync.projects()
    return [
        person.username
        for person in User.objects.filter(source=SOURCE, is_active=True).order_by("pk")
        if _is_due(person, roles[person.pk], rules, projects, then) and _give(person.pk, then)
    ]


def _is_due(
    person: User,
    roles: Mapping[tuple[str, str], Role],
    rules: list[Rule],
    projects: Mapping[str, str],
    then: datetime,
) -> bool:
    entry, found = _entry_of(person), _groups_of(person, then)
    if person.directory_groups and not found:
        return True
    everybody = Everybody(people={person.subject: entry}, groups={group.dn: group for group in found}, unusable=[])
    todo = grants.plan(everybody, rules, [site_roles.known(person, roles)], projects)
    return bool(todo.added or todo.removed or todo.changed or todo.site)


@transaction.atomic
def _give(pk: int, then: datetime) -> bool:
    """Read again behind the lock that a sign-in takes: what it has just brought must not be undone."""
    sync.one_pass_at_a_time()
    person = User.objects.get(pk=pk)
    before = person.directory_groups, _held(person)
    sync.give_roles(person, _entry_of(person), _groups_of(person, then))
    return before != (person.directory_groups, _held(person))


def _held(person: User) -> set[tuple[int, str, str]]:
    held = Membership.objects.filter(user=person).values_list("namespace", "source", "role")
    return {*held, (0, "", person.site_role)}


def _groups_of(person: User, then: datetime) -> list[Group]:
    """Those of the last sign-in, while it is young enough."""
    if person.last_login is None or person.last_login <= then:
        return []
    issuer = person.directory_dn.partition("#")[0]
    return groups_named(person.directory_groups, issuer=issuer, member=person.directory_dn)


def _entry_of(person: User) -> Entry:
    return Entry(
        subject=person.subject,
        dn=person.directory_dn,
        username=person.username,
        display_name=person.display_name,
        email=person.email,
        uid_number=None,
        gid_number=None,
        has_ended=False,
    )
