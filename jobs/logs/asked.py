"""Which lines of a log a query string asks for: the same words for the page, its plain text, REST and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext as _

from jobs.exceptions import SpecError
from jobs.fields import parse_duration
from jobs.logs.levels import NAMES, Level
from jobs.logs.lines import worker_of
from jobs.logs.stretches import NO_END, Wanted

PARAMETERS = ("worker", "attempt", "level", "from", "to")


def read_wanted(query: Any) -> Wanted:
    """`level` may be repeated or comma-separated; `from` and `to` are moments, or lengths of time before now. Raise SpecError."""
    before = whole(query, "before", default=None)
    return Wanted(
        attempt=whole(query, "attempt", default=None),
        worker=_worker(query.get("worker", "")),
        after=whole(query, "after", default=0) or 0,
        before=NO_END if before is None else before,
        since=_moment(query, "from"),
        until=_moment(query, "to"),
        levels=_levels(query),
    )


def same_lines(wanted: Wanted) -> dict[str, str]:
    """The words that ask for these lines again, wherever and in whatever time zone they are read."""
    said = {
        "worker": wanted.worker,
        "attempt": wanted.attempt,
        "level": ",".join(name for name, level in NAMES.items() if level in wanted.levels),
        "from": _iso(wanted.since),
        "to": _iso(wanted.until),
    }
    return {name: str(value) for name, value in said.items() if value not in (None, "")}


def whole(query: Mapping[str, Any], name: str, *, default: int | None) -> int | None:
    """A whole number of the query string. Raise SpecError naming it."""
    text = query.get(name)
    if text in (None, ""):
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise _wrong(name, _("must be a whole number, not %(word)r") % {"word": text[:40]})
    return int(text)


def _worker(text: str) -> str | None:
    try:
        return "{}-{}".format(*worker_of(text)) if text else None
    except ValueError as error:
        raise SpecError(str(error), fields={"worker": [str(error)]}) from error


def _levels(query: Any) -> frozenset[Level]:
    words = [word for value in query.getlist("level") for word in value.lower().split(",") if word.strip()]
    found = set()
    for word in words:
        if word.strip() not in NAMES:
            raise _wrong(
                "level", _("must be of %(known)s, not %(word)r") % {"known": ", ".join(NAMES), "word": word[:40]}
            )
        found.add(NAMES[word.strip()])
    return frozenset() if len(found) == len(NAMES) else frozenset(found)


def _moment(query: Mapping[str, Any], name: str) -> float | None:
    text = (query.get(name) or "").strip().replace(" ", "T", 1)
    if not text:
        return None
    try:
        if day := parse_date(text):
            moment = datetime(day.year, day.month, day.day)
        else:
            moment = parse_datetime(text) or timezone.now() - timedelta(seconds=parse_duration(text))
        aware = moment if timezone.is_aware(moment) else timezone.make_aware(moment)
        return aware.timestamp()
    except (ValueError, OverflowError) as error:
        words = _(
            "must be a moment such as 2026-11-30T12:00:00Z or a length of time before now such as 10m, not %(word)r"
        )
        raise _wrong(name, words % {"word": text[:40]}) from error


def _iso(moment: float | None) -> str | None:
    if moment is None:
        return None
    words = datetime.fromtimestamp(moment, UTC).isoformat(timespec="auto")
    return words.replace("+00:00", "Z")


def _wrong(name: str, words: str) -> SpecError:
    return SpecError(f"{name}: {words}", fields={name: [words]})
