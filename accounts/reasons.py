"""Why somebody has a role: which group gives it, or that it was given by hand, until when; and the highest of several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from accounts.grants import SOURCE
from accounts.models import Membership, Namespace, User
from accounts.roles import RANK, Role

MANUAL = "manual"
PERSONAL = "personal"  # source of the membership that makes a namespace somebody's own


@dataclass(frozen=True, slots=True)
class Reason:
    """One source of a role. `pk` is the membership's."""

    role: Role
    source: str
    ends_at: datetime | None = None
    pk: int = 0

    @property
    def is_by_hand(self) -> bool:
        return self.source == MANUAL

    @property
    def words(self) -> str:
        return source_in_words(self.source, self.ends_at)

    @property
    def last_day(self) -> str:
        """The day that a form shows as the end."""
        return f"{_last_moment(self.ends_at):%Y-%m-%d}" if self.ends_at else ""


@dataclass(frozen=True, slots=True)
class Held:
    """A person's role in one namespace: the highest, and everything that gives one."""

    namespace: Namespace
    role: Role
    reasons: tuple[Reason, ...]

    @property
    def words(self) -> str:
        return "; ".join(f"{reason.role}: {reason.words}" for reason in self.reasons)

    @property
    def by_hand(self) -> Reason | None:
        return next((reason for reason in self.reasons if reason.is_by_hand), None)


def held(memberships: Iterable[Membership]) -> list[Held]:
    """The rows of one person, with their namespaces, as roles: one for each namespace, in the order of the rows."""
    found: dict[Namespace, list[Reason]] = {}
    for row in memberships:
        found.setdefault(row.namespace, []).append(Reason(Role(row.role), row.source, row.ends_at, row.pk))
    return [
        Held(place, max((reason.role for reason in reasons), key=RANK.__getitem__), tuple(reasons))
        for place, reasons in found.items()
    ]


def source_in_words(source: str, ends_at: datetime | None = None) -> str:
    if source.startswith(SOURCE):
        return _("through %(group)s") % {"group": source.removeprefix(SOURCE)}
    if source == PERSONAL:
        return _("the own namespace")
    if source == MANUAL and ends_at is not None:
        return _("by hand, until %(day)s") % {"day": until(ends_at)}
    return _("by hand") if source == MANUAL else source


def site_role_in_words(person: User) -> str:
    """Why this person has the role for the site; nothing for who has none."""
    return source_in_words(person.site_role_source or MANUAL) if person.site_role else ""


def until(ends_at: datetime) -> str:
    """An end as people say it: the last day, and the time only where it is not the end of that day."""
    local = timezone.localtime(ends_at)
    if local.time() == time():
        return date_format(_last_moment(ends_at), "j M Y")
    return date_format(local, "j M Y H:i")


def _last_moment(ends_at: datetime) -> datetime:
    return timezone.localtime(ends_at) - timedelta(microseconds=1)
