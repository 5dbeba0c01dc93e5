"""Bringing accounts and roles in line with the directory: one person at sign-in, everybody in a pass.

A role by hand (`manual`), also one for the site, and one's own namespace (`personal`) are never touched. What a pass changed
for somebody is a MembershipChange, which `jobs` reads; who looks at an open page is asked again at once (`hints`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.request import Request

from accounts import audit, changes, grants, hints, people, site_roles
from accounts.changes import BATCH
from accounts.directory import Entry, Everybody, Group
from accounts.grants import Plan, Problem, Rule
from accounts.models import (
    AuditEvent,
    DirectorySync,
    GroupMapping,
    Membership,
    Namespace,
    User,
)
from accounts.problems import sentence
from accounts.roles import Role, SiteRole

KEPT = 500  # passes that the page can show
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A pass: `plan` is what it changed, or would change where it was a dry run or looked broken."""

    plan: Plan
    is_applied: bool
    problems: list[Problem]


def rules() -> list[Rule]:
    return [
        Rule(
            group=row.group,
            namespace=row.namespace.slug if row.namespace else None,
            role=Role(row.role) if row.role else None,
            site_role=SiteRole(row.site_role),
        )
        for row in GroupMapping.objects.select_related("namespace")
    ]


@transaction.atomic
def give_roles(person: User, entry: Entry, found: list[Group]) -> None:
    """At sign-in: the roles that these groups give, no more and no fewer."""
    if _as_found(person, entry, found) is None:
        return  # as nearly always, and without the lock that all sign-ins would queue for
    one_pass_at_a_time()
    person.refresh_from_db(fields=["site_role", "site_role_source"])
    fresh = _as_found(person, entry, found)
    if fresh is None:
        return
    todo, person.directory_groups, person.supplementary_gids = fresh
    site_roles.keep_an_admin(todo, {person.pk: person})
    for problem in todo.problems:
        if problem.kind == "last_admin":
            logger.warning("Signing in: %s", sentence(problem.kind, problem.values))
    site_roles.write(todo, {person.pk: person})
    _write(todo, {person.pk: person})
    person.save(update_fields=["directory_groups", "supplementary_gids"])


def _as_found(person: User, entry: Entry, found: list[Group]) -> tuple[Plan, list[str], list[int]] | None:
    """What must be written for one person, and their groups and ids; None if all of it is so already."""
    directory = grants.Directory(found, [])
    groups = [directory.groups[dn] for dn in directory.groups_of(entry)]
    names, gids = sorted(group.name for group in groups), grants.gids_of(groups, entry)
    everybody = Everybody(people={person.subject: entry}, groups=directory.groups, unusable=[])
    known = site_roles.known(person, _roles_now([person.pk]).get(person.pk, {}))
    todo = grants.plan(everybody, rules(), [known], projects())
    is_same = not (todo.added or todo.removed or todo.changed or todo.site)
    if is_same and (person.directory_groups, person.supplementary_gids) == (names, gids):
        return None
    return todo, names, gids


@transaction.atomic
def run(
    everybody: Everybody,
    *,
    is_dry: bool = False,
    by: User | None = None,
    extra_rules: Iterable[Rule] | None = None,
    request: HttpRequest | Request | None = None,
) -> Outcome:
    """A whole pass. `by` is the admin who asked for it, who may also do what looks like a broken directory.

    `extra_rules` stand in for the stored ones, to show what they would do.
    """
    began = time.monotonic()
    one_pass_at_a_time()
    persons = {person.pk: person for person in _people_it_knows(everybody)}
    roles = _roles_now(persons)
    known = [site_roles.known(person, roles.get(pk, {})) for pk, person in persons.items()]
    in_force = rules() if extra_rules is None else list(extra_rules)
    todo = grants.plan(everybody, in_force, known, projects())
    site_roles.keep_an_admin(todo, persons)
    last = DirectorySync.objects.filter(is_applied=True).first()
    broken = grants.looks_broken(
        people=len(everybody.people),
        people_before=last.people if last else 0,
        removed=len(todo.removed) + todo.site_lost,
        had=sum(len(one) for one in roles.values()) + sum(bool(person.site_role_group) for person in persons.values()),
        gone=len(todo.gone),
        active=sum(person.is_active for person in known),
    )
    is_applied = not is_dry and (broken is None or by is not None)
    problems = [*todo.problems, *([broken] if broken else [])]
    if is_dry:
        return Outcome(todo, is_applied, problems)
    if is_applied:
        # before accounts end: the last admin may go where the pass brings another
        site_roles.write(todo, persons, by=by, request=request)
        _bring_people_in_line(everybody, todo, persons)
        _write(todo, persons, by=by, request=request)
    _keep_record(everybody, todo, problems, is_applied=is_applied, seconds=time.monotonic() - began)
    return Outcome(todo, is_applied, problems)


def _people_it_knows(everybody: Everybody) -> QuerySet[User]:
    """Who signed in since it was asked was brought in line with a newer answer, and may be too new for this one."""
    found = User.objects.filter(source="ldap")
    if (then := everybody.asked_at) is None:
        return found
    return found.exclude(created_at__gt=then).exclude(last_login__gt=then)


def record_failure(words: str) -> DirectorySync:
    """A pass that could not be made: nobody loses a right because the directory is silent."""
    return DirectorySync.objects.create(problems=[["away", {"words": words.removesuffix(".")}]])


def _keep_record(
    everybody: Everybody, todo: Plan, problems: list[Problem], *, is_applied: bool, seconds: float
) -> None:
    DirectorySync.objects.create(
        seconds=seconds,
        is_applied=is_applied,
        people=len(everybody.people),
        grants=todo.grants,
        changes=grants.counted(todo),
        shared_names=sorted(grants.shared_names(everybody.groups.values())),
        problems=[[problem.kind, dict(problem.values)] for problem in problems[:100]],
    )
    old = DirectorySync.objects.order_by("-pk").values_list("pk", flat=True)[KEPT : KEPT + 1]
    DirectorySync.objects.filter(pk__lte=next(iter(old), 0)).delete()


def _roles_now(pks: Iterable[int]) -> dict[int, dict[tuple[str, str], Role]]:
    found: dict[int, dict[tuple[str, str], Role]] = {}
    rows = Membership.objects.filter(user__in=list(pks), source__startswith=grants.SOURCE)
    for pk, slug, source, role in rows.values_list("user_id", "namespace__slug", "source", "role"):
        found.setdefault(pk, {})[slug, source] = Role(role)
    return found


def projects() -> dict[str, str]:
    """The slug of the project that was made for a group, by the group's DN."""
    rows = Namespace.objects.exclude(made_for=None).values_list("made_for", "slug")
    return {dn: slug for dn, slug in rows if dn is not None}


def _bring_people_in_line(everybody: Everybody, todo: Plan, persons: dict[int, User]) -> None:
    directory = grants.Directory(everybody.groups.values(), [])
    changed: list[User] = []
    for pk, names in todo.groups.items():
        person = persons[pk]
        entry = everybody.people[person.subject]
        fields = people.bring_in_line(person, entry)
        gids = grants.gids_of((directory.groups[dn] for dn in directory.groups_of(entry)), entry)
        if (person.directory_groups, person.supplementary_gids) != (names, gids):
            person.directory_groups, person.supplementary_gids = names, gids
            fields.append("directory_groups")
        if fields:
            changed.append(person)
    columns = [*people.FROM_ENTRY, "directory_dn", "directory_name", "directory_groups", "supplementary_gids"]
    User.objects.bulk_update(changed, columns, batch_size=BATCH)
    people.revive(persons[pk].subject for pk in todo.groups if persons[pk].disabled_by == "directory")
    people.end(person.subject for person in todo.gone)


def _write(
    todo: Plan,
    persons: Mapping[int, User],
    *,
    by: User | None = None,
    request: HttpRequest | Request | None = None,
) -> None:
    """The memberships, who lost or won what, and the audit trail: a constant number of statements for a thousand rows."""
    touched = {row[0].pk for row in todo.added}
    touched |= {row[0].pk for row in (*todo.removed, *todo.changed)}
    if not touched:
        return
    before = changes.highest(touched)
    places = _places(todo)
    trail: list[AuditEvent] = []

    def tell(
        action: str, pk: int, namespace: Namespace, was: dict[str, str] | None, now: dict[str, str] | None
    ) -> None:
        event = audit.event(
            by, action, target=persons[pk].username, namespace=namespace.slug, before=was, after=now, request=request
        )
        trail.append(event)

    made = []
    for known, grant, slug in todo.added:
        namespace = places[slug or grant.made_for]
        made.append(Membership(user_id=known.pk, namespace=namespace, role=grant.role, source=grant.source))
        tell("membership.create", known.pk, namespace, None, {"role": grant.role, "source": grant.source})
    Membership.objects.bulk_create(made, batch_size=BATCH, ignore_conflicts=True)
    stored = _stored(todo)
    risen = []
    for known, slug, source, role in todo.changed:
        row = stored[known.pk, places[slug].pk, source]
        tell("membership.change", known.pk, places[slug], {"role": row.role, "source": source}, {"role": role})
        row.role = role
        risen.append(row)
    Membership.objects.bulk_update(risen, ["role"], batch_size=BATCH)
    doomed = []
    for known, slug, source, role in todo.removed:
        doomed.append(stored[known.pk, places[slug].pk, source].pk)
        tell("membership.delete", known.pk, places[slug], {"role": role, "source": source}, None)
    for start in range(0, len(doomed), BATCH):
        # without a signal for each: one hint for the whole pass follows
        rows = Membership.objects.filter(pk__in=doomed[start : start + BATCH])
        rows._raw_delete(rows.db)
    AuditEvent.objects.bulk_create(trail, batch_size=BATCH)
    changes.note(before, changes.highest(touched))
    hints.rights_changed()


def _stored(todo: Plan) -> dict[tuple[int, int, str], Membership]:
    """The rows that a plan changes or removes, by person, namespace and source."""
    pks = {row[0].pk for row in (*todo.changed, *todo.removed)}
    rows = Membership.objects.filter(user__in=pks, source__startswith=grants.SOURCE) if pks else []
    return {(row.user_id, row.namespace_id, row.source): row for row in rows}


def _places(todo: Plan) -> dict[str, Namespace]:
    """The namespaces a plan speaks of, by slug, and by the DN of the group whose project is made now."""
    slugs = {slug for _known, _grant, slug in todo.added if slug}
    slugs |= {slug for _known, slug, *_rest in (*todo.removed, *todo.changed)}
    found = {namespace.slug: namespace for namespace in Namespace.objects.filter(slug__in=slugs)}
    for _known, grant, slug in todo.added:
        if not slug and grant.made_for not in found:
            found[grant.made_for] = people.project_for_group(grant.made_for, name=grant.namespace)
    return found


def one_pass_at_a_time() -> None:
    """A sign-in during a pass must not be undone by what the pass read before it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('accounts.sync'))")


def last_pass() -> DirectorySync | None:
    return DirectorySync.objects.first()


def age_of(row: DirectorySync) -> float:
    return (timezone.now() - row.started_at).total_seconds()
