"""What an admin must know of a pass over the directory, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _


def sentence(kind: str, values: Mapping[str, Any]) -> str:
    """The kinds are those of `accounts.grants` and of `sync`."""
    words = {
        "ambiguous": _("More than one group is called %(group)s: %(where)s. Write the DN into the rule."),
        "no_group": _("No group %(group)s is found in the directory."),
        "unusable": _("An entry cannot be used: %(words)s."),
        "people_lost": _(
            "%(lost)s of %(before)s people would be gone, so nothing was changed. "
            "Look at the directory, then apply it by hand."
        ),
        "accounts_lost": _(
            "%(lost)s of %(before)s accounts would end, so nothing was changed. "
            "Look at the directory, then apply it by hand."
        ),
        "roles_lost": _(
            "%(lost)s of %(before)s roles would be gone, so nothing was changed. "
            "Look at the directory, then apply it by hand."
        ),
        "site_role_by_hand": _(
            "%(name)s has the site role %(by_hand)s by hand, so %(role)s through %(source)s is not given. "
            "Take the role by hand away first."
        ),
        "last_admin": _(
            "The site would be left without an active admin, so %(names)s stays one. "
            "Make somebody else an admin, or put the rule or the group right."
        ),
        "away": _("The directory cannot be asked: %(words)s."),
    }
    return words[kind] % values
