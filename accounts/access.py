"""Who may do what where: the questions every page, API and socket asks before it looks at anything.

A request with a token that is bound to one namespace (`User.bound_to`) is answered as if there were no other, and without
its person's role for the site.

Membership rows are the only source, also for a person's own namespace; one whose end has come is none. What a role may
do is the table in `roles`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from accounts.models import GroupMapping, Membership, Namespace, User
from accounts.reasons import Held, Reason, held
from accounts.roles import NEEDS, RANK, Role, Verb, allows

Person: TypeAlias = User | AnonymousUser


def highest(roles: Iterable[str]) -> Role | None:
    """A person may have several roles in one namespace, each from another source."""
    return max((Role(role) for role in roles), key=RANK.__getitem__, default=None)


def _known(user: Person) -> TypeGuard[User]:
    return isinstance(user, User) and user.is_active


def visible_namespace_ids(user: Person) -> frozenset[int] | None:
    """Primary keys of the namespaces this person may look into; None means all of them, also those made later."""
    if not _known(user):
        return frozenset()
    if user.sees_everything:
        return None
    return frozenset(_memberships(user).values_list("namespace_id", flat=True))


def _memberships(user: User) -> QuerySet[Membership]:
    mine = Membership.objects.filter(user=user)
    return mine if user.bound_to is None else mine.filter(namespace=user.bound_to)


def _reaches(user: User, namespace: Namespace) -> bool:
    return user.bound_to in (None, namespace.pk)


def role_in(user: Person, namespace: Namespace) -> Role | None:
    """The highest role of all sources, without the site role; None for a stranger."""
    if not _known(user):
        return None
    return highest(_memberships(user).filter(namespace=namespace).values_list("role", flat=True))


def roles_of(user: Person) -> dict[int, Role]:
    """Each namespace's primary key with the highest role there: one query for a whole list."""
    if not _known(user):
        return {}
    rows = _memberships(user).values_list("namespace_id", "role")
    # by rank, so that the highest of a namespace is written last
    return {namespace_id: Role(role) for namespace_id, role in sorted(rows, key=lambda row: RANK[Role(row[1])])}


def may(user: Person, verb: Verb, namespace: Namespace, *, owns: bool = False) -> bool:
    """May this person do it there? For the two verbs of change, `owns` says whose job it is, whichever was asked for."""
    if not _known(user) or not _reaches(user, namespace):
        return False
    if verb in (Verb.CHANGE_OWN, Verb.CHANGE_ANY):
        verb = Verb.CHANGE_OWN if owns else Verb.CHANGE_ANY
    if allows(verb=verb, role=None, site_role=user.acting_site_role):
        return True
    return allows(verb=verb, role=role_in(user, namespace))


def namespaces_for(user: Person, verb: Verb = Verb.VIEW) -> QuerySet[Namespace]:
    """The namespaces where this person may do it."""
    if not _known(user):
        return Namespace.objects.none()
    if allows(verb=verb, role=None, site_role=user.acting_site_role):
        return Namespace.objects.all()
    enough = [role for role, rank in RANK.items() if rank >= RANK[NEEDS[verb]]]
    return Namespace.objects.filter(pk__in=_memberships(user).filter(role__in=enough).values("namespace_id"))


def get_namespace(user: Person, slug: str, verb: Verb = Verb.VIEW) -> Namespace:
    """Raise Http404 where the person may not even look, PermissionDenied where the role is too low for `verb`."""
    # NUL cannot reach PostgreSQL, and no slug holds it
    namespace = namespaces_for(user, Verb.VIEW).filter(slug=slug.replace("\0", "\ufffd")).first()
    if namespace is None:
        raise Http404
    if verb is not Verb.VIEW and not namespaces_for(user, verb).filter(pk=namespace.pk).exists():
        raise PermissionDenied(
            _("This needs the role %(role)s in %(namespace)s.") % {"role": NEEDS[verb], "namespace": namespace.slug}
        )
    return namespace


@dataclass(frozen=True, slots=True)
class Offer:
    """A project that somebody has no role in and may ask for one: what gives it, and whom to ask."""

    namespace: Namespace
    groups: tuple[str, ...]
    leads: tuple[User, ...]


def offers_for(user: User) -> list[Offer]:
    """Only those an admin has listed: every other namespace is not there for a stranger. Three queries."""
    listed = Namespace.objects.filter(kind="project", is_listed=True).exclude(
        pk__in=_memberships(user).values("namespace")
    )
    groups: dict[int, list[str]] = {}
    for pk, group in GroupMapping.objects.filter(namespace__in=listed).values_list("namespace_id", "group"):
        groups.setdefault(pk or 0, []).append(group)
    leads = _leads_of(listed)
    return [Offer(one, tuple(groups.get(one.pk, ())), leads.get(one.pk, ())) for one in listed.order_by("slug")]


def _leads_of(places: Iterable[Namespace]) -> dict[int, tuple[User, ...]]:
    """Whom to ask, by the namespace's primary key: nobody whose account is over."""
    rows = Membership.objects.filter(namespace__in=places, role=Role.LEAD, user__is_active=True)
    found: dict[int, dict[int, User]] = {}
    for row in rows.select_related("user").order_by("pk"):
        found.setdefault(row.namespace_id, {})[row.user_id] = row.user
    return {pk: tuple(people.values()) for pk, people in found.items()}


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace as one person sees it: `verbs` is what the highest role allows there."""

    held: Held
    verbs: frozenset[Verb]
    leads: tuple[User, ...]  # whom to ask

    @property
    def namespace(self) -> Namespace:
        return self.held.namespace

    @property
    def role(self) -> Role:
        return self.held.role

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return self.held.reasons


def places_of(user: User) -> list[Place]:
    """Where this person may do what, and through which source, by name of the namespace: two queries."""
    mine = held(_memberships(user).select_related("namespace").order_by("namespace__slug", "pk"))
    leads = _leads_of([one.namespace for one in mine])
    return [
        Place(
            held=one,
            verbs=frozenset(verb for verb in Verb if allows(verb=verb, role=one.role, site_role=user.acting_site_role)),
            leads=leads.get(one.namespace.pk, ()),
        )
        for one in mine
    ]
