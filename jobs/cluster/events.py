"""What a cluster said of one attempt's Jobs and Pods, the same said of many pods or many times told once. Pure.

The cluster forgets its events within an hour; these are what is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from jobs.cluster.fields import condition, moment, number, part, seen_at, text
from jobs.cluster.messages.creation import of_creation
from jobs.cluster.messages.scheduling import of_scheduling
from jobs.cluster.messages.starting import of_mount
from jobs.cluster.messages.words import without_names
from jobs.cluster.pods import place_of

LONGEST = 2000  # characters of a message
_NUMBERS = re.compile(r"\d+")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
# whose texts have sentences of ours: what none of them tells is counted
_TELLERS = {
    "FailedCreate": lambda message: of_creation(message).is_known,
    "FailedScheduling": lambda message: of_scheduling(message).is_known,
    "FailedMount": lambda message: (told := of_mount(message)) is None or told.is_known,
}


@dataclass(frozen=True, slots=True)
class Heard:
    """`about` is the worker, "" for the attempt as a whole."""

    about: str
    reason: str
    message: str
    is_warning: bool
    is_known: bool
    count: int
    first_at: datetime
    last_at: datetime

    @property
    def key(self) -> tuple[str, str, str]:
        """What is the same although its numbers have changed: used quota, seconds, ports."""
        return self.about, self.reason, _NUMBERS.sub("#", self.message)


def heard(events: Iterable[dict[str, Any]], pods: Sequence[dict[str, Any]]) -> list[Heard]:
    """Oldest first. `events` are about the attempt's Jobs and these pods; of a pod also when it got its machine."""
    names = {text(pod, "metadata", "uid"): "{}-{}".format(*place_of(pod)) for pod in pods}
    found: dict[tuple[str, str, str], Heard] = {}
    for one in (*map(_scheduled, pods), *(_read(event, names) for event in events)):
        if one is None:
            continue
        before = found.get(one.key)
        found[one.key] = _together(before, one) if before else one
    return sorted(found.values(), key=lambda one: (one.first_at, one.about, one.reason))


def _together(one: Heard, other: Heard) -> Heard:
    newest = max(one, other, key=lambda heard: heard.last_at)
    return replace(newest, count=one.count + other.count, first_at=min(one.first_at, other.first_at))


def _read(event: dict[str, Any], names: dict[str, str]) -> Heard | None:
    reason, last = text(event, "reason"), seen_at(event)
    if not reason or last.year < 2000:
        return None
    message = _UNSEEN.sub("", without_names(text(event, "message")))[:LONGEST]
    known = _TELLERS.get(reason)
    return Heard(
        about=names.get(text(event, "involvedObject", "uid"), ""),
        reason=_UNSEEN.sub("", reason)[:100],
        message=message,
        is_warning=text(event, "type") != "Normal",
        is_known=known is None or known(message),
        count=max(1, number(event, "count") or number(event, "series", "count") or 1),
        first_at=min(last, moment(event, "firstTimestamp") or moment(event, "eventTime") or last),
        last_at=last,
    )


def _scheduled(pod: dict[str, Any]) -> Heard | None:
    found = condition(pod, "PodScheduled")
    at, node = moment(found, "lastTransitionTime"), text(pod, "spec", "nodeName")
    if found.get("status") != "True" or at is None or not node:
        return None
    name = "{}-{}".format(*place_of(pod))
    return Heard(name, "Scheduled", f"Assigned to {node}.", False, True, 1, at, at)


def by_object(events: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """By the UID of what they are about."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if uid := text(part(event, "involvedObject"), "uid"):
            found.setdefault(uid, []).append(event)
    return found
