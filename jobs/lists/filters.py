"""What a list of jobs is asked for, read from a query string: the same words for page, REST and socket topic."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from jobs.exceptions import SpecError
from jobs.fields import parse_duration
from jobs.querysets import ONLY_ARCHIVED, WITH_ARCHIVED
from jobs.states import JobStatus

PARAMETERS = ("namespace", "status", "user", "tag", "q", "since", "until", "gpu", "priority", "archived")
ARCHIVED = ("", WITH_ARCHIVED, ONLY_ARCHIVED)
ME = "me"  # of `user`: whoever asks, so that a shared view says the same to each
LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True)
class JobFilter:
    namespace: str = ""
    statuses: tuple[str, ...] = ()
    user: str = ""
    tag: str = ""
    q: str = ""
    since: datetime | None = None
    until: datetime | None = None
    gpu: str = ""  # a type, or `any`, or `none`
    priority: str = ""
    archived: str = ""  # left out; `1` shows them among the others, `only` them alone

    def as_arguments(self) -> dict[str, Any]:
        return asdict(self)


def read_filter(query: QueryDict, *, me: str = "") -> JobFilter:
    """`status` may be repeated or comma-separated; `since` is a moment, or a length of time such as 7d. Raise SpecError.

    `me` is the user name that `user=me` stands for.
    """
    for name in PARAMETERS:
        if any("\x00" in value for value in query.getlist(name)):
            raise SpecError(_("%(name)s holds a NUL character.") % {"name": name}, fields={name: ["holds a NUL"]})
    statuses = tuple(dict.fromkeys(word for value in query.getlist("status") for word in value.split(",") if word))
    for status in statuses:
        if status not in list(JobStatus):
            text = _("must be of %(known)s, not %(word)r") % {"known": ", ".join(JobStatus), "word": status}
            raise SpecError(f"status: {text}", fields={"status": [text]})
    archived = _last(query, "archived")
    if archived not in ARCHIVED:
        text = _("must be 1 or only, not %(word)r") % {"word": archived[:40]}
        raise SpecError(f"archived: {text}", fields={"archived": [text]})
    user = query.get("user", "")
    return JobFilter(
        namespace=query.get("namespace", ""),
        statuses=statuses,
        user=me if me and user == ME else user,
        tag=query.get("tag", ""),
        # full-width letters and digits are what an input method leaves of ASCII
        q=unicodedata.normalize("NFKC", query.get("q", ""))[:LONGEST_SEARCH],
        since=_moment("since", _last(query, "since")),
        until=_moment("until", _last(query, "until"), whole_day=True),
        gpu=query.get("gpu", ""),
        priority=query.get("priority", ""),
        archived=archived,
    )


def read_leniently(query: QueryDict, *, me: str = "") -> tuple[JobFilter, QueryDict, list[str]]:
    """What of it can be read, the query that says just that, and in words what cannot: a page still shows its rows."""
    readable, problems = query.copy(), []
    for name in PARAMETERS:
        values = [word for value in query.getlist(name) for word in (value.split(",") if name == "status" else [value])]
        good = []
        for value in dict.fromkeys(value for value in values if value):
            alone = QueryDict(mutable=True)
            alone[name] = value
            try:
                read_filter(alone, me=me)
            except SpecError as problem:
                problems.append(problem.message)
            else:
                good.append(value)
        if len(good) < len([value for value in values if value]):
            readable.setlist(name, good) if good else readable.pop(name, None)
    return read_filter(readable, me=me), readable, problems


def only_filter(query: QueryDict, *, me: str = "") -> QueryDict:
    """Of a page's query string what says which jobs, without how they are shown: the topic of its live changes."""
    kept = QueryDict(mutable=True)
    for name in PARAMETERS:
        if name == "status":
            kept.setlist(name, [value for value in query.getlist(name) if value])
        elif value := _last(query, name):
            kept[name] = me if me and name == "user" and value == ME else value
    return kept


def _last(query: QueryDict, name: str) -> str:
    """A form may send a choice and, empty or not, the field that says it more exactly."""
    return next((value for value in reversed(query.getlist(name)) if value), "")


def _moment(name: str, text: str, *, whole_day: bool = False) -> datetime | None:
    """`whole_day`: a bare day means all of it."""
    if not text:
        return None
    try:
        moment = parse_datetime(text) or timezone.now() - timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError) as error:
        words = _("must be a moment such as 2026-11-30T12:00:00Z or a length of time such as 7d, not %(word)r") % {
            "word": text[:40]
        }
        raise SpecError(f"{name}: {words}", fields={name: [words]}) from error
    if whole_day and len(text) == len("2026-11-30") and "-" in text:
        moment += timedelta(days=1)
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
