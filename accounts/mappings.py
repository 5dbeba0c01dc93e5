"""The rules of an admin, group -> namespace -> role: checked, written, and what each would do shown before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework.request import Request

from accounts import audit, grants, sync
from accounts.directory import Everybody
from accounts.grants import Rule
from accounts.models import GroupMapping, Namespace, User
from accounts.roles import Role

ROLES = tuple(role.value for role in Role)


class MappingRefused(ValueError):
    """A rule that cannot be; `fields` has sentences by the name of the field."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        super().__init__("; ".join(text for texts in fields.values() for text in texts))
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Change:
    """What a pass would do to one person; `role` is empty for what goes."""

    username: str
    namespace: str
    role: str
    through: str
    kind: str  # added, changed, removed or gone


def checked(values: dict[str, Any]) -> Rule:
    """The rule these fields stand for. Raise MappingRefused naming each field that is wrong."""
    group, slug, role = (str(values.get(name) or "").strip() for name in ("group", "namespace", "role"))
    wrong: dict[str, list[str]] = {}
    if not group or "\0" in group or len(group) > 300:
        wrong["group"] = [_("Write the group's name, its DN, or a pattern such as ml-*: 1 to 300 characters.")]
    elif set(group) <= {"*", " "}:
        wrong["group"] = [_("This pattern is every group of the directory; write more of the name.")]
    if role not in ROLES:
        wrong["role"] = [_("One of %(roles)s.") % {"roles": ", ".join(ROLES)}]
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


def add(rule: Rule, *, by: User, request: HttpRequest | Request | None) -> GroupMapping:
    place = Namespace.objects.get(slug=rule.namespace) if rule.namespace else None
    try:
        with transaction.atomic():
            row = GroupMapping.objects.create(group=rule.group, namespace=place, role=rule.role)
            _tell("create", row, by=by, after=document(row), request=request)
    except IntegrityError:
        raise MappingRefused(
            {"group": [_("There is a rule for this group and namespace already; change it.")]}
        ) from None
    return row


@transaction.atomic
def change(row: GroupMapping, *, role: str, by: User, request: HttpRequest | Request | None) -> GroupMapping:
    if role not in ROLES:
        raise MappingRefused({"role": [_("One of %(roles)s.") % {"roles": ", ".join(ROLES)}]})
    before = document(row)
    row.role = role
    row.save(update_fields=["role"])
    _tell("change", row, by=by, before=before, after=document(row), request=request)
    return row


@transaction.atomic
def remove(row: GroupMapping, *, by: User, request: HttpRequest | Request | None) -> None:
    """The rule only: the roles it gave go with the next pass, which can be shown before."""
    _tell("delete", row, by=by, before=document(row), request=request)
    row.delete()


def document(row: GroupMapping) -> dict[str, Any]:
    return {"id": row.pk, "group": row.group, "namespace": _slug(row) or None, "role": row.role}


def _tell(verb: str, row: GroupMapping, *, by: User, request: HttpRequest | Request | None, **told: Any) -> None:
    audit.record(by, f"group_mapping.{verb}", target=row.group, namespace=_slug(row), request=request, **told)


def _slug(row: GroupMapping) -> str:
    return row.namespace.slug if row.namespace else ""


def preview(everybody: Everybody, rules: list[Rule] | None = None) -> tuple[list[Change], list[str]]:
    """What a pass would do now, or with other rules, by person; and the sentences of its problems. Nothing is written."""
    outcome = sync.run(everybody, is_dry=True, extra_rules=rules)
    names = dict(User.objects.filter(source="ldap").values_list("pk", "username"))
    todo = outcome.plan
    found = [Change(names[one.pk], "", "", "", "gone") for one in todo.gone]
    for one, grant, slug in todo.added:
        found.append(Change(names[one.pk], slug or grant.namespace, grant.role, _bare(grant.source), "added"))
    for kind, rows in (("changed", todo.changed), ("removed", todo.removed)):
        for one, slug, source, role in rows:
            found.append(Change(names[one.pk], slug, role if kind == "changed" else "", _bare(source), kind))
    found.sort(key=lambda one: (one.username, one.namespace, one.through))
    return found, [sync.sentence(problem.kind, problem.values) for problem in outcome.problems]


def _bare(source: str) -> str:
    return source.removeprefix(grants.SOURCE)
