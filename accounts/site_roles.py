"""Roles for the site that come from groups: what a pass or a sign-in changes, and that an admin is left.

Who has one by hand (`User.site_role_source`) keeps it whatever the directory says.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Q
from django.http import HttpRequest
from rest_framework.request import Request

from accounts import audit, grants, hints
from accounts.changes import BATCH
from accounts.grants import SOURCE, Known, Plan, SiteGrant
from accounts.models import AuditEvent, User
from accounts.reasons import MANUAL
from accounts.roles import Role, SiteRole


def known(person: User, roles: Mapping[tuple[str, str], Role]) -> Known:
    site = SiteGrant(SiteRole(person.site_role), person.site_role_source) if person.site_role else SiteGrant()
    return Known(
        pk=person.pk,
        subject=person.subject,
        roles=roles,
        is_active=person.is_active,
        name=person.username,
        site=site,
    )


def keep_an_admin(todo: Plan, persons: Mapping[int, User]) -> None:
    if not (todo.site or todo.gone):
        return
    # an admin who disables another on the page of users at this moment is waited for, and does not count on one who goes here
    admins = User.objects.filter(site_role=SiteRole.ADMIN, is_active=True).order_by("pk").select_for_update()
    coming = (persons[pk] for pk in todo.groups if persons[pk].disabled_by == "directory")
    grants.keep_an_admin(todo, admins=[known(one, {}) for one in admins], revived=[known(one, {}) for one in coming])


def write(
    todo: Plan,
    persons: Mapping[int, User],
    *,
    by: User | None = None,
    request: HttpRequest | Request | None = None,
) -> None:
    """Roles for the site: one statement for each rule that gives or takes one, and the trail."""
    trail: list[AuditEvent] = []
    parts: dict[SiteGrant, list[int]] = {}
    for one, grant in todo.site:
        parts.setdefault(grant, []).append(one.pk)
        person, before, after = persons[one.pk], _told(one.site), _told(grant)
        verb = "create" if before is None else "delete" if after is None else "change"
        event = audit.event(
            by, f"site_role.{verb}", target=person.username, before=before, after=after, request=request
        )
        trail.append(event)
        person.site_role, person.site_role_source = grant.role, grant.source or MANUAL
    for grant, pks in parts.items():
        # what somebody gave by hand meanwhile stays
        people_of = User.objects.filter(pk__in=pks).filter(Q(site_role="") | Q(site_role_source__startswith=SOURCE))
        people_of.update(site_role=grant.role, site_role_source=grant.source or MANUAL)
    AuditEvent.objects.bulk_create(trail, batch_size=BATCH)
    if trail:
        hints.rights_changed()


def _told(grant: SiteGrant) -> dict[str, str] | None:
    return {"site_role": str(grant.role), "source": grant.source} if grant.role else None
