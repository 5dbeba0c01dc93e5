"""What a list of jobs is asked for, read from a query string: the same words for page, REST and socket topic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from jobs.exceptions import SpecError
from jobs.fields import parse_duration
from jobs.states import JobStatus

PARAMETERS = ("namespace", "status", "user", "tag", "q", "since")


@dataclass(frozen=True, slots=True)
class JobFilter:
    namespace: str = ""
    statuses: tuple[str, ...] = ()
    user: str = ""
    tag: str = ""
    q: str = ""
    since: datetime | None = None

    def as_arguments(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "statuses": self.statuses,
            "user": self.user,
            "tag": self.tag,
            "q": self.q,
            "since": self.since,
        }


def read_filter(query: QueryDict) -> JobFilter:
    """`status` may be repeated or comma-separated; `since` is a moment, or a length of time such as 7d. Raise SpecError."""
    for name in PARAMETERS:
        if any("\x00" in value for value in query.getlist(name)):
            raise SpecError(_("%(name)s holds a NUL character.") % {"name": name}, fields={name: ["holds a NUL"]})
    statuses = tuple(word for value in query.getlist("status") for word in value.split(",") if word)
    for status in statuses:
        if status not in list(JobStatus):
            text = _("must be of %(known)s, not %(word)r") % {"known": ", ".join(JobStatus), "word": status}
            raise SpecError(f"status: {text}", fields={"status": [text]})
    return JobFilter(
        namespace=query.get("namespace", ""),
        statuses=statuses,
        user=query.get("user", ""),
        tag=query.get("tag", ""),
        q=query.get("q", "")[:200],
        since=_since(query.get("since", "")),
    )


def _since(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = parse_datetime(text) or timezone.now() - timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError) as error:
        words = _("must be a moment such as 2026-11-30T12:00:00Z or a length of time such as 7d")
        raise SpecError(f"since: {words}", fields={"since": [words]}) from error
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
