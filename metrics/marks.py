"""What happened to a job, as marks in its charts: attempts, checkpoints, hold and release, the warning of its time limit.

A mark has a time. It has a step of its own where there is one: a checkpoint whose name says it, and the start of an attempt,
which is where that attempt's first point is. Any other is placed at the step whose time is nearest before it, or at the first
step where nothing was reported before. These steps are those of the job's longest metric, so that a mark stands at the same
step in every chart.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from jobs.checkpoints import is_unfinished
from jobs.models import Attempt, Job, JobEvent
from jobs.run_files import Left, list_files
from jobs.states import Reason
from metrics import store
from metrics.packed import Floats, Ints

MOST = 200  # of one kind, the newest
BUCKETS = 2000
_EPOCH = re.compile("epoch", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mark:
    kind: str  # attempt, checkpoint, hold, release, limit
    time: float
    step: int | None
    text: str

    def document(self) -> dict[str, Any]:
        return asdict(self)


def marks_of(job: Job) -> list[Mark]:
    """In order of time; those that no metric can place have no step."""
    series = store.list_series(job.pk)
    found = [
        *_of_attempts(list(job.attempts.order_by("number")), series),
        *_of_events(list(job.events.exclude(kind="move"))),
        *_of_checkpoints(list_files(job).files, series),
    ]
    return sorted(_placed(job, found, series), key=lambda mark: mark.time)


def _of_attempts(attempts: list[Attempt], series: list[dict[str, Any]]) -> list[Mark]:
    found = []
    before = ""
    for attempt in attempts:
        at = attempt.started_at or attempt.released_at
        if at is not None:
            first = min((one["first_step"] for one in series if one["attempt"] == attempt.number), default=None)
            text = _("Attempt %(number)s started.") % {"number": attempt.number}
            if before:
                text = _("Attempt %(number)s started. The one before: %(why)s") % {
                    "number": attempt.number,
                    "why": before,
                }
            found.append(Mark("attempt", at.timestamp(), first, text))
        before = attempt.reason
    return found[-MOST:]


def _of_events(events: list[JobEvent]) -> list[Mark]:
    found = []
    for event in events:
        kind = ""
        if event.kind == "intent" and event.actor:
            # a person's intent without a code is a release
            kind = {Reason.HELD.value: "hold", "": "release"}.get(event.reason_code, "")
        elif event.kind == "cluster" and event.reason_code == Reason.TIME_LIMIT:
            kind = "limit"
        if kind:
            found.append(Mark(kind, event.at.timestamp(), None, event.reason))
    return found[-MOST:]


def _of_checkpoints(files: tuple[Left, ...], series: list[dict[str, Any]]) -> list[Mark]:
    """One for each file or folder in the checkpoint folder, as old as the newest file in it."""
    entries: dict[str, list[Left]] = defaultdict(list)
    for file in files:
        if file.kind == "checkpoint":
            entries[file.name.partition("/")[0]].append(file)
    first = min((one["first_step"] for one in series), default=0)
    last = max((one["last_step"] for one in series), default=-1)
    found = []
    for name, inside in entries.items():
        if any(is_unfinished(file.name) for file in inside):
            continue
        newest = max(inside, key=lambda file: file.modified)
        # a number that counts epochs, or something else, is no step of these charts
        step = None if _EPOCH.search(newest.name) or not first <= (newest.step or -1) <= last else newest.step
        found.append(Mark("checkpoint", newest.modified.timestamp(), step, _("Checkpoint %(name)s") % {"name": name}))
    return sorted(found, key=lambda mark: mark.time)[-MOST:]


def _placed(job: Job, marks: list[Mark], series: list[dict[str, Any]]) -> list[Mark]:
    if not series or all(mark.step is not None for mark in marks):
        return marks
    counts: Counter[tuple[str, int]] = Counter()
    for one in series:
        counts[one["key"], one["rank"]] += one["count"]
    longest = max(counts, key=lambda one: (counts[one], one))
    time, step = _steps(job, longest, buckets=BUCKETS)

    def step_at(at: float) -> int:
        place = int(np.searchsorted(time, at, side="right"))
        if len(time) < counts[longest] and place < len(time):
            # of a bucket only its last point is known: the one looked for may lie before the next one's
            near = _steps(job, longest, start=float(time[place - 1]) if place else None, end=at)[1]
            if len(near):
                return int(near[-1])
        return int(step[max(0, place - 1)])

    return [mark if mark.step is not None else replace(mark, step=step_at(mark.time)) for mark in marks]


def _steps(job: Job, longest: tuple[str, int], **narrow: Any) -> tuple[Floats, Ints]:
    """Times and steps of all attempts, by time."""
    key, rank = longest
    found = store.read_series(job.pk, keys=[key], ranks=[rank], x="time", all_attempts=True, **narrow)
    parts = [part for one in found if (part := one.buckets if one.buckets is not None else one.run) is not None]
    if not parts:
        return np.empty(0), np.empty(0, dtype=np.int64)
    time = np.concatenate([part.time for part in parts])
    order = time.argsort(kind="stable")
    return time[order], np.concatenate([part.step for part in parts])[order]
