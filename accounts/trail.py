"""Reading the audit trail: whose rows somebody may read, which of them are asked for, and all of them as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, fields
from datetime import datetime, time, timedelta
from typing import cast

import orjson
from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext as _

from accounts import access
from accounts.models import AuditEvent, User
from accounts.roles import Verb
from accounts.spreadsheet import MARK, lines

ROWS_AT_ONCE = 1000
# What is told of each noun: to choose from on the page, where to ask the rows themselves would read all of them.
VERBS = {
    "audit": ("export",),
    "cluster": ("look",),
    "code": ("upload",),
    "draft": ("create", "delete"),
    "group_mapping": ("create", "change", "delete"),
    "job": ("submit", "edit", "hold", "release", "stop", "adopt", "archive", "unarchive"),
    "jobs": ("export",),
    "layout": ("keep", "reset", "share", "unshare"),
    "membership": ("create", "change", "delete"),
    "namespace": ("create", "change", "apply", "drift"),
    "runtime": ("create", "edit"),
    "secret": ("set", "delete"),
    "session": ("login", "logout", "failed", "throttled"),
    "shell": ("open", "close", "refuse"),
    "site_role": ("create", "change", "delete"),
    "token": ("create", "revoke", "restore"),
    "user": ("create", "disable", "enable"),
    "view": ("save", "change", "delete"),
    "volume": ("set", "delete"),
}
ACTIONS = tuple(f"{noun}.{verb}" for noun, verbs in VERBS.items() for verb in verbs)
COLUMNS = ("id", "at", "actor", "action", "target", "namespace", "before", "after", "address", "via")


def readable(person: User) -> QuerySet[AuditEvent]:
    """All of it for auditors and admins; of the projects they lead for leads. Raise PermissionDenied for others."""
    if person.sees_everything:
        return AuditEvent.objects.all()
    led = list(access.namespaces_for(person, Verb.MANAGE).filter(kind="project").values_list("slug", flat=True))
    if not led:
        raise PermissionDenied(_("The audit trail is for auditors, admins and leads."))
    return AuditEvent.objects.filter(namespace__in=led)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. `action` may be a whole word such as job.submit, or its beginning such as job."""

    actor: str = ""
    action: str = ""
    namespace: str = ""
    target: str = ""
    since: str = ""
    until: str = ""

    @property
    def is_everything(self) -> bool:
        return not any(getattr(self, one.name) for one in fields(self))


def read_wanted(query: QueryDict) -> tuple[Wanted, dict[str, str]]:
    """What a query string asks for, and a sentence for each of its fields that cannot be understood."""
    told = {one.name: query.get(one.name, "").strip()[:200].replace("\0", "\ufffd") for one in fields(Wanted)}
    words = _("Write a day such as 2026-11-30, or a time such as 2026-11-30 14:00.")
    wrong = {name: words for name in ("since", "until") if told[name] and _moment(told[name]) is None}
    return Wanted(**{name: "" if name in wrong else text for name, text in told.items()}), wrong


def matching(rows: QuerySet[AuditEvent], wanted: Wanted) -> QuerySet[AuditEvent]:
    """Newest first."""
    for name in ("actor", "namespace"):
        if value := getattr(wanted, name):
            rows = rows.filter(**{name: value})
    if action := wanted.action.strip("."):
        rows = rows.filter(action=action) if "." in action else rows.filter(action__startswith=f"{action}.")
    if wanted.target:
        rows = rows.filter(target__icontains=wanted.target)
    if since := _moment(wanted.since):
        rows = rows.filter(at__gte=since)
    if until := _moment(wanted.until, is_end=True):
        rows = rows.filter(at__lte=until)
    return rows.order_by("-pk")


def _moment(text: str, *, is_end: bool = False) -> datetime | None:
    """A whole day counts to its end where it is one."""
    try:
        if day := parse_date(text):
            moment = datetime.combine(day, time()) + (timedelta(days=1, microseconds=-1) if is_end else timedelta())
        else:
            moment = parse_datetime(text)  # type: ignore[assignment] # None for what is neither
    except (ValueError, OverflowError):
        return None
    if moment is None:
        return None
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)


async def as_csv(rows: QuerySet[AuditEvent]) -> AsyncIterator[bytes]:
    """Every row, a thousand at a time: the trail may be long, and grows while it is read."""
    yield MARK + lines([COLUMNS])
    last: int | None = None
    while piece := await sync_to_async(_piece)(rows, last):
        yield lines([_shown(value) for value in row] for row in piece)
        last = cast(int, piece[-1][0])


def _piece(rows: QuerySet[AuditEvent], last: int | None) -> list[tuple[object, ...]]:
    after = rows if last is None else rows.filter(pk__lt=last)
    return list(after.values_list(*COLUMNS)[:ROWS_AT_ONCE])


def _shown(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value
