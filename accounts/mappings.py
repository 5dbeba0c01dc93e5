"""The rules of an admin, group -> role in a namespace or for the site: checked, written, and what each would do shown before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework.request import Request

from accounts import audit, grants, stakes, sync
from accounts.directory import Everybody
from accounts.grants import Rule
from accounts.models import GroupMapping, Namespace, User
from accounts.problems import sentence
from accounts.roles import Role, SiteRole
from accounts.stakes import Stake

ROLES = tuple(role.value for role in Role)
SITE_ROLES = tuple(role.value for role in SiteRole if role)


class MappingRefused(ValueError):
    """A rule that cannot be; `fields` has sentences by the name of the field."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        super().__init__("; ".join(text for texts in fields.values() for text in texts))
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Change:
    """What a pass would do to one person; `role` is empty for what goes.

    `site_role` is what somebody wins or loses for the whole site. The jobs are those of who loses something there.
    """

    username: str
    namespace: str
    role: str
    through: str
    kind: str  # added, changed, removed or gone
    site_role: str = ""
    stake: Stake = stakes.NOTHING

    def document(self) -> dict[str, Any]:
        told = asdict(self)
        stake = told.pop("stake")
        return {**told, **stake}


def checked(values: dict[str, Any]) -> Rule:
    """The rule these fields stand for. Raise MappingRefused naming each field that is wrong."""
    names = ("group", "namespace", "role", "site_role")
    group, slug, role, site_role = (str(values.get(name) or "").strip() for name in names)
    wrong: dict[str, list[str]] = {}
    if not group or "\0" in group or len(group) > 300:
        wrong["group"] = [_("Write the group's name, its DN, or a pattern such as ml-*: 1 to 300 characters.")]
    elif set(group) <= {"*", " "}:
        wrong["group"] = [_("This pattern is every group of the directory; write more of the name.")]
    if site_role:
        _check_site_role(group, slug, role, site_role, wrong)
        if wrong:
            raise MappingRefused(wrong)
        return Rule(group=group, namespace=None, role=None, site_role=SiteRole(site_role))
    if role not in ROLES:
        wrong["role"] = [_one_of(ROLES)]
    place = Namespace.objects.filter(slug=slug.replace("\0", "\ufffd")).first() if slug else None
    if slug and place is None:
        wrong["namespace"] = [_("There is no namespace %(slug)s.") % {"slug": slug}]
    elif place is not None and place.kind != "project":
        wrong["namespace"] = [_("%(slug)s is somebody's own namespace: only projects are shared.") % {"slug": slug}]
    elif not slug and "*" not in group:
        wrong["namespace"] = [_("Choose the namespace; only a pattern with * makes one for each group.")]
    if wrong:
        raise MappingRefused(wrong)
    return Rule(group=group, namespace=slug or None, role=Role(role))


def _check_site_role(group: str, slug: str, role: str, site_role: str, wrong: dict[str, list[str]]) -> None:
    if site_role not in SITE_ROLES:
        wrong["site_role"] = [_one_of(SITE_ROLES)]
    if role:
        wrong["role"] = [_("A rule gives a role in a namespace or one for the site: leave one of them out.")]
    if slug:
        wrong["namespace"] = [_("A role for the site is about no namespace: leave it out.")]
    if "*" in group and "=" not in group and "group" not in wrong:
        wrong["group"] = [_("A role for the site is given by one group: write its name or its DN, without *.")]


def _one_of(roles: tuple[str, ...]) -> str:
    return _("One of %(roles)s.") % {"roles": ", ".join(roles)}


def add(rule: Rule, *, by: User, request: HttpRequest | Request | None) -> GroupMapping:
    place = Namespace.objects.get(slug=rule.namespace) if rule.namespace else None
    try:
        with transaction.atomic():
            row = GroupMapping.objects.create(
                group=rule.group, namespace=place, role=rule.role or "", site_role=rule.site_role
            )
            _tell("create", row, by=by, after=document(row), request=request)
    except IntegrityError:
        raise MappingRefused(
            {"group": [_("There is a rule for this group and namespace already; change it.")]}
        ) from None
    return row


@transaction.atomic
def change(
    row: GroupMapping, values: Mapping[str, Any], *, by: User, request: HttpRequest | Request | None
) -> GroupMapping:
    """Another role of the same kind: `role` of a namespace, or `site_role`."""
    field, roles = ("site_role", SITE_ROLES) if row.site_role else ("role", ROLES)
    other = "role" if row.site_role else "site_role"
    if values.get(other):
        raise MappingRefused(
            {other: [_("This rule gives the other kind of role: add a new rule, and remove this one.")]}
        )
    if values.get(field) not in roles:
        raise MappingRefused({field: [_one_of(roles)]})
    before = document(row)
    setattr(row, field, values[field])
    row.save(update_fields=[field])
    _tell("change", row, by=by, before=before, after=document(row), request=request)
    return row


@transaction.atomic
def remove(row: GroupMapping, *, by: User, request: HttpRequest | Request | None) -> None:
    """The rule only: the roles it gave go with the next pass, which can be shown before."""
    _tell("delete", row, by=by, before=document(row), request=request)
    row.delete()


def document(row: GroupMapping) -> dict[str, Any]:
    role, site_role = row.role or None, row.site_role or None
    return {"id": row.pk, "group": row.group, "namespace": _slug(row) or None, "role": role, "site_role": site_role}


def _tell(verb: str, row: GroupMapping, *, by: User, request: HttpRequest | Request | None, **told: Any) -> None:
    audit.record(by, f"group_mapping.{verb}", target=row.group, namespace=_slug(row), request=request, **told)


def _slug(row: GroupMapping) -> str:
    return row.namespace.slug if row.namespace else ""


def preview(everybody: Everybody, rules: list[Rule] | None = None) -> tuple[list[Change], list[str]]:
    """What a pass would do now, or with other rules, by person; and the sentences of its problems. Nothing is written."""
    outcome = sync.run(everybody, is_dry=True, extra_rules=rules)
    names = dict(User.objects.filter(source="ldap").values_list("pk", "username"))
    todo = outcome.plan
    at_stake = stakes.of_people(one.pk for one in (*todo.gone, *(row[0] for row in (*todo.removed, *todo.changed))))
    whole = stakes.by_person(at_stake)
    found = [Change(names[one.pk], "", "", "", "gone", stake=whole.get(one.pk, stakes.NOTHING)) for one in todo.gone]
    for one, grant, slug in todo.added:
        found.append(Change(names[one.pk], slug or grant.namespace, grant.role, _bare(grant.source), "added"))
    for one, slug, source, role in todo.changed:
        stake = at_stake.get((one.pk, slug), stakes.NOTHING) if role == Role.VIEWER else stakes.NOTHING
        found.append(Change(names[one.pk], slug, role, _bare(source), "changed", stake=stake))
    for one, slug, source, _role in todo.removed:
        stake = at_stake.get((one.pk, slug), stakes.NOTHING)
        found.append(Change(names[one.pk], slug, "", _bare(source), "removed", stake=stake))
    for one, site in todo.site:
        kind = "added" if not one.site.role else "changed" if site.role else "removed"
        through = _bare(site.source or one.site.source)
        found.append(Change(names[one.pk], "", "", through, kind, site_role=str(site.role or one.site.role)))
    found.sort(key=lambda one: (one.username, one.namespace, one.through))
    return found, [sentence(problem.kind, problem.values) for problem in outcome.problems]


def _bare(source: str) -> str:
    return source.removeprefix(grants.SOURCE)
