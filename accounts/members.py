"""Roles by hand: an admin gives one, with an end or without, changes it and takes it away; one that has ended goes by itself.

What the directory gives is not touched here: who wants it away takes the person out of the group, or removes the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.http import Http404, HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext as _
from rest_framework.request import Request

from accounts import audit, changes, hints
from accounts.grants import SOURCE
from accounts.models import AuditEvent, Membership, Namespace, User
from accounts.reasons import MANUAL, until
from accounts.roles import Role

ROLES = tuple(role.value for role in Role)
FIELDS = frozenset({"username", "role", "ends_at"})


class MemberRefused(ValueError):
    """A role that cannot be given or taken; `fields` has sentences by the name of the field."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        super().__init__(" ".join(text for texts in fields.values() for text in texts))
        self.fields = fields


def give(place: Namespace, values: Mapping[str, Any], *, by: User, request: HttpRequest | Request | None) -> Membership:
    """Make the person `username` a `role` of the project, to `ends_at`. Raise MemberRefused naming each wrong field."""
    wrong = _unknown(values, FIELDS)
    person = _person(values.get("username"), wrong)
    role, ends_at = _role(values.get("role"), wrong), _end(values.get("ends_at"), wrong)
    if place.kind != "project":
        wrong["namespace"] = [_("%(slug)s is somebody's own namespace: only projects are shared.") % {"slug": place}]
    if person is None or role is None or wrong:
        raise MemberRefused(wrong)
    with transaction.atomic():
        before = changes.highest([person.pk])
        _clear_ended(person, place)
        try:
            with transaction.atomic():
                row = Membership.objects.create(user=person, namespace=place, role=role, source=MANUAL, ends_at=ends_at)
        except IntegrityError:
            raise MemberRefused({"role": [_has_one(person, place)]}) from None
        _tell(by, "create", row, before=None, after=document(row), request=request)
        changes.note(before, changes.highest([person.pk]))
    return row


def change(
    row: Membership, values: Mapping[str, Any], *, by: User, request: HttpRequest | Request | None
) -> Membership:
    """Another role, another end, or both; what `values` does not name stays as it is."""
    wrong = _unknown(values, FIELDS - {"username"})
    role = _role(values["role"], wrong) if "role" in values else Role(row.role)
    ends_at = _end(values["ends_at"], wrong) if "ends_at" in values else row.ends_at
    if role is None or wrong:
        raise MemberRefused(wrong)
    with transaction.atomic():
        fresh = _locked(row)
        before, was = document(fresh), changes.highest([row.user_id])
        fresh.role, fresh.ends_at = role, ends_at
        if document(fresh) == before:
            return fresh
        fresh.save(update_fields=["role", "ends_at"])
        _tell(by, "change", fresh, before=before, after=document(fresh), request=request)
        changes.note(was, changes.highest([row.user_id]))
    return fresh


@transaction.atomic
def take(row: Membership, *, by: User, request: HttpRequest | Request | None) -> None:
    """Away from this second on: pages, REST, tokens and open sockets; waiting jobs are held for a lead."""
    fresh = _locked(row)
    was = changes.highest([row.user_id])
    _tell(by, "delete", fresh, before=document(fresh), after=None, request=request)
    fresh.delete()
    changes.note(was, changes.highest([row.user_id]))


def by_hand(place: Namespace, username: str) -> Membership:
    """The role this person has here by hand. Raise Http404 for who has none at all, MemberRefused for one from elsewhere."""
    rows = Membership.objects.filter(namespace=place, user__username=username.replace("\0", "\ufffd"))
    found = list(rows.select_related("user", "namespace").order_by("pk"))
    if not found:
        raise Http404
    for row in found:
        if row.source == MANUAL:
            return row
    raise MemberRefused({"username": [not_by_hand(found[0])]})


def not_by_hand(row: Membership) -> str:
    """Why this role cannot be changed here, and where it can."""
    words = {"name": row.user.username, "role": row.role, "place": row.namespace.slug}
    if row.source.startswith(SOURCE):
        words["group"] = row.source.removeprefix(SOURCE)
        return (
            _(
                "%(name)s is %(role)s of %(place)s through the group %(group)s: take them out of the group, or change its rule."
            )
            % words
        )
    return _("%(place)s is the own namespace of %(name)s: that role stays.") % words


@transaction.atomic
def take_away_ended() -> int:
    """Every role whose end has come. It counted nowhere since; now it is in the trail, and who waits for it is told."""
    # who extends one at this moment has its row locked, and is looked at again once they are done
    ended = Membership.also_ended.filter(ends_at__lte=Now()).select_for_update(of=("self",), skip_locked=True)
    rows = list(ended.select_related("user", "namespace").order_by("pk")[: changes.BATCH])
    _write_ends(rows)
    return len(rows)


def _clear_ended(person: User, place: Namespace) -> None:
    """The row of an earlier role would stand in the way of a new one until the beat comes by."""
    ended = Membership.also_ended.filter(user=person, namespace=place, source=MANUAL, ends_at__lte=Now())
    _write_ends(list(ended.select_for_update(of=("self",)).select_related("user", "namespace")))


def _write_ends(rows: list[Membership]) -> None:
    if not rows:
        return
    after = changes.highest({row.user_id for row in rows})
    ended = [(row.user_id, row.namespace_id, Role(row.role)) for row in rows]
    here = {(pk, place) for pk, place, _role in ended}
    left = {key: role for key, role in after.items() if key in here}
    AuditEvent.objects.bulk_create(_event(None, "delete", row, before=document(row), after=None) for row in rows)
    # without a signal for each: one hint follows
    doomed = Membership.also_ended.filter(pk__in=[row.pk for row in rows])
    doomed._raw_delete(doomed.db)
    changes.note(changes.best([*ended, *((*key, role) for key, role in left.items())]), left)
    hints.rights_changed()


def document(row: Membership) -> dict[str, Any]:
    """What the trail says of a role by hand."""
    return {"role": str(row.role), "source": row.source, "ends_at": row.ends_at.isoformat() if row.ends_at else None}


def _locked(row: Membership) -> Membership:
    """The row as it is now. Raise Http404 where it is gone, MemberRefused where it is not by hand."""
    found = Membership.objects.select_for_update(of=("self",)).select_related("user", "namespace").filter(pk=row.pk)
    fresh = found.first()
    if fresh is None:
        raise Http404
    if fresh.source != MANUAL:
        raise MemberRefused({"username": [not_by_hand(fresh)]})
    return fresh


def _unknown(values: Mapping[str, Any], known: frozenset[str]) -> dict[str, list[str]]:
    return {str(name): [_("There is no such field.")] for name in sorted(set(values) - known, key=str)}


def _person(typed: Any, wrong: dict[str, list[str]]) -> User | None:
    name = str(typed or "").strip().replace("\0", "\ufffd")
    if not name:
        wrong["username"] = [_("Say who: the user name.")]
        return None
    person = User.objects.filter(username=name).first()
    if person is None:
        words = _(
            "Nobody called %(name)s has an account here: look for the spelling on the page of users, or let them sign in once."
        )
        wrong["username"] = [words % {"name": name[:150]}]
    elif not person.is_active:
        wrong["username"] = [_("The account of %(name)s is disabled: enable it first.") % {"name": name}]
    return person


def _role(typed: Any, wrong: dict[str, list[str]]) -> Role | None:
    if typed in ROLES:
        return Role(typed)
    wrong["role"] = [_("One of %(roles)s.") % {"roles": ", ".join(ROLES)}]
    return None


def _end(typed: Any, wrong: dict[str, list[str]]) -> datetime | None:
    """A day counts to its end. Nothing typed is no end."""
    if typed in (None, ""):
        return None
    found = _moment(str(typed).strip())
    if found is None:
        wrong["ends_at"] = [_("Write a day such as 2026-12-31, or a time such as 2026-12-31T18:00Z.")]
    elif found <= timezone.now():
        wrong["ends_at"] = [_("This is in the past: choose a later end, or leave it empty for a role that stays.")]
    return found


def _moment(text: str) -> datetime | None:
    try:
        if day := parse_date(text):
            return timezone.make_aware(datetime(day.year, day.month, day.day) + timedelta(days=1))
        found = parse_datetime(text)
        if found is None:
            return None
        # a row that ends in the year 10000 could not be read any more, on whichever page it is
        return (found if timezone.is_aware(found) else timezone.make_aware(found)).astimezone(UTC)
    except (ValueError, OverflowError):  # the 31st of June; the year 9999
        return None


def _has_one(person: User, place: Namespace) -> str:
    row = Membership.objects.filter(user=person, namespace=place, source=MANUAL).first()
    words = {"name": person.username, "place": place.slug, "role": row.role if row else "?"}
    if row is not None and row.ends_at is not None:
        words["day"] = until(row.ends_at)
        return (
            _(
                "%(name)s is %(role)s of %(place)s by hand already, until %(day)s: change that role, or take it away first."
            )
            % words
        )
    return _("%(name)s is %(role)s of %(place)s by hand already: change that role, or take it away first.") % words


def _event(by: User | None, verb: str, row: Membership, **told: Any) -> AuditEvent:
    return audit.event(by, f"membership.{verb}", target=row.user.username, namespace=row.namespace.slug, **told)


def _tell(by: User, verb: str, row: Membership, **told: Any) -> None:
    _event(by, verb, row, **told).save()
