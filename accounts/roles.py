"""Who may do what: roles in a namespace, roles for the site, and the one table of rights (pure)."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A person's role in one namespace; each includes the ones before it."""

    VIEWER = "viewer"
    MEMBER = "member"
    LEAD = "lead"


class SiteRole(StrEnum):
    """A role for the whole site. An auditor sees everything and changes nothing; an admin may do everything."""

    NONE = ""
    AUDITOR = "auditor"
    ADMIN = "admin"


RANK = {Role.VIEWER: 1, Role.MEMBER: 2, Role.LEAD: 3}


SITE_RANK = {SiteRole.NONE: 0, SiteRole.AUDITOR: 1, SiteRole.ADMIN: 2}


class Verb(StrEnum):
    VIEW = "view"
    SUBMIT = "submit"
    CHANGE_OWN = "change_own"  # stop, hold, edit one's own job
    CHANGE_ANY = "change_any"  # the same for jobs of others
    MANAGE = "manage"  # members, quota, secrets of the namespace


NEEDS = {
    Verb.VIEW: Role.VIEWER,
    Verb.SUBMIT: Role.MEMBER,
    Verb.CHANGE_OWN: Role.MEMBER,
    Verb.CHANGE_ANY: Role.LEAD,
    Verb.MANAGE: Role.LEAD,
}


def allows(*, verb: Verb, role: str | None, site_role: str = "") -> bool:
    """May someone with this role in the namespace, and this role for the site, do it there?"""
    if site_role == SiteRole.ADMIN:
        return True
    if site_role == SiteRole.AUDITOR and verb is Verb.VIEW:
        return True
    return role is not None and RANK[Role(role)] >= RANK[NEEDS[verb]]
