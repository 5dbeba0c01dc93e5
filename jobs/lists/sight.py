"""What one person may see and do in which namespaces, asked once for a whole page in two queries."""

from __future__ import annotations

from functools import cached_property

from accounts.access import namespaces_for, roles_of
from accounts.models import Namespace, User
from accounts.roles import Role, Verb, allows


class Sight:
    def __init__(self, user: User) -> None:
        self.user = user

    @cached_property
    def namespaces(self) -> list[Namespace]:
        return list(namespaces_for(self.user))

    @cached_property
    def roles(self) -> dict[int, Role]:
        return roles_of(self.user)

    @property
    def visible(self) -> frozenset[int] | None:
        """As access.visible_namespace_ids: None means all, also those made later."""
        if self.user.is_active and self.user.sees_everything:
            return None
        return frozenset(self.roles)

    def where(self, verb: Verb) -> list[Namespace]:
        """As access.namespaces_for(user, verb)."""
        return [
            namespace
            for namespace in self.namespaces
            if allows(verb=verb, role=self.roles.get(namespace.pk), site_role=self.user.acting_site_role)
        ]
