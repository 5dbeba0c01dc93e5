"""People as the Access page finds them: each role with why, what may be changed by hand, and what taking it would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db.models import Prefetch, Q, QuerySet
from django.utils.translation import gettext as _

from accounts import stakes
from accounts.models import Membership, User
from accounts.reasons import Held, Reason, held, site_role_in_words
from accounts.roles import NEEDS, RANK, Role, Verb
from accounts.stakes import Stake

MOST = 20  # people in a list of those who are meant
LONGEST = 150
WITH_ROLES = Prefetch("memberships", Membership.objects.select_related("namespace").order_by("namespace__slug", "pk"))


@dataclass(frozen=True, slots=True)
class Row:
    """A namespace where somebody has a role, and what taking away the one by hand would do."""

    held: Held
    stake: Stake
    question: str = ""

    @property
    def by_hand(self) -> Reason | None:
        return self.held.by_hand


@dataclass(frozen=True, slots=True)
class Given:
    """What was typed to give a role, and what is wrong with it."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class People:
    """The answer to a name: one person with everything, or several to choose from."""

    typed: str = ""
    several: tuple[User, ...] = ()
    are_more: bool = False
    person: User | None = None
    site_words: str = ""
    rows: tuple[Row, ...] = ()


def named_like(words: str) -> QuerySet[User]:
    """By a part of the user name, the name or the mail; everybody where nothing is typed."""
    everybody = User.objects.order_by("username")
    if not words:
        return everybody
    return everybody.filter(Q(username__icontains=words) | Q(display_name__icontains=words) | Q(email__icontains=words))


def people(typed: str) -> People:
    """A constant number of queries, also where thousands are called like that."""
    typed = typed.strip()[:LONGEST].replace("\0", "\ufffd")
    if not typed:
        return People()
    person = User.objects.filter(username=typed).prefetch_related(WITH_ROLES).first()
    if person is None:
        several = list(named_like(typed).prefetch_related(WITH_ROLES)[: MOST + 1])
        if len(several) != 1:
            return People(typed, tuple(several[:MOST]), are_more=len(several) > MOST)
        person = several[0]
    at_stake = stakes.of_people([person.pk])
    rows = []
    for one in held(person.memberships.all()):
        stake = at_stake.get((person.pk, one.namespace.slug), stakes.NOTHING)
        rows.append(Row(one, stake, question(person, one, stake) if one.by_hand else ""))
    return People(typed, person=person, site_words=site_role_in_words(person), rows=tuple(rows))


def question(person: User, role: Held, stake: Stake) -> str:
    """What an admin is asked before a role by hand is taken away."""
    others = [reason for reason in role.reasons if not reason.is_by_hand]
    kept = max(others, key=lambda reason: RANK[reason.role], default=None)
    words = {"name": person.username, "place": role.namespace.slug, "role": role.role}
    if kept is not None:
        words |= {"kept": kept.role, "why": kept.words}
    if kept is not None and _may_run(kept.role):
        return _("Take the role by hand away? %(name)s is still %(kept)s of %(place)s, %(why)s.") % words
    if kept is not None:
        text = _("Take the role by hand away? %(name)s is then only %(kept)s of %(place)s, %(why)s.") % words
    else:
        text = _(
            "Take %(place)s away from %(name)s? Its pages, tokens and open windows end for them at once; "
            "their jobs and files stay there."
        )
        text %= words
    if not stake.consequences or not _may_run(role.role):
        return text
    return _("%(question)s Of their jobs there: %(jobs)s.") % {"question": text, "jobs": stake.consequences}


def _may_run(role: Role) -> bool:
    return RANK[role] >= RANK[NEEDS[Verb.SUBMIT]]
