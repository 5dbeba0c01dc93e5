"""Who has a role in one namespace, and why: what its page and REST show to its leads, to auditors and to admins."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import Exists, OuterRef, Prefetch
from django.utils.translation import gettext as _

from accounts import access, found, stakes
from accounts.found import Row
from accounts.models import Membership, Namespace, User
from accounts.reasons import held
from accounts.roles import Verb

PAGE = 50


@dataclass(frozen=True, slots=True)
class Member:
    person: User
    row: Row


def readable_place(person: User, slug: str) -> Namespace:
    """Raise Http404 where the person may not even look, PermissionDenied where the members are not theirs to read."""
    place = access.get_namespace(person, slug)
    if not person.sees_everything and not access.may(person, Verb.MANAGE, place):
        raise PermissionDenied(_("The members of %(place)s are listed for its leads.") % {"place": place.slug})
    return place


def page_of(place: Namespace, words: str, number: str | None) -> tuple[Page[User], list[Member]]:
    """By user name, a page at a time: a constant number of queries however many there are."""
    here = Membership.objects.filter(namespace=place)
    rows = Prefetch("memberships", here.select_related("namespace").order_by("pk"))
    everybody = found.named_like(words).filter(Exists(here.filter(user=OuterRef("pk"))))
    page = Paginator(everybody.prefetch_related(rows), PAGE).get_page(number)
    persons = list(page.object_list)
    at_stake = stakes.of_people(person.pk for person in persons)
    return page, [_member(person, at_stake.get((person.pk, place.slug), stakes.NOTHING)) for person in persons]


def _member(person: User, stake: stakes.Stake) -> Member:
    (role,) = held(person.memberships.all())
    return Member(person, Row(role, stake, found.question(person, role, stake) if role.by_hand else ""))
