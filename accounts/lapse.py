"""Roles by groups of an OpenID Connect provider end with nobody to confirm them: the portal hears of those at sign-in only.

Without it who left a group would keep its roles in tokens and waiting jobs for ever.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from accounts import sync
from accounts.directory import Entry
from accounts.models import User
from accounts.openid import SOURCE


def take_back_unconfirmed(*, days: int) -> list[str]:
    """The answer names whose roles went; the next sign-in gives them again. Roles by hand stay."""
    then = timezone.now() - timedelta(days=days)
    # a person who signs in this very second may have to do it once more
    absent = User.objects.filter(source=SOURCE).exclude(last_login__gt=then).exclude(directory_groups=[])
    taken = []
    for person in absent.order_by("pk"):
        sync.give_roles(person, _entry_of(person), [])
        taken.append(person.username)
    return taken


def _entry_of(person: User) -> Entry:
    return Entry(
        subject=person.subject,
        dn=person.directory_dn,
        username=person.username,
        display_name=person.display_name,
        email=person.email,
        uid_number=None,
        gid_number=None,
        has_ended=not person.is_active,
    )
