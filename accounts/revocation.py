"""Who loses a right loses it on open pages at once, whichever way it went: a page, a command, a sync or a cascade.

Signals, because a membership goes in many ways and one that is forgotten would be a hole for ten seconds. Rows that are
changed in bulk send none; the sockets' own look every ten seconds is the guarantee.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.db.models.signals import post_delete, post_save

from accounts import hints
from accounts.models import Membership, User

HARMLESS = frozenset({"last_login"})


def connect() -> None:
    post_save.connect(_changed, sender=Membership, dispatch_uid="membership saved")
    post_delete.connect(_changed, sender=Membership, dispatch_uid="membership deleted")
    post_save.connect(_person_saved, sender=User, dispatch_uid="person saved")
    user_logged_out.connect(_changed, dispatch_uid="signed out")


def _changed(**_signal: Any) -> None:
    hints.rights_changed()


def _person_saved(*, created: bool, update_fields: frozenset[str] | None, **_signal: Any) -> None:
    """Disabled, of another site role, or with another password: a new person has nothing open."""
    if not created and not (update_fields and update_fields <= HARMLESS):
        hints.rights_changed()
