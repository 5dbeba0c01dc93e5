"""The phases of a job's life: where its time went and why, from its events and attempts. Their sum is its whole time, exactly.

Every moment is the start of a phase or changes nothing; what comes late or early is moved to its neighbour, so no second is
counted twice or lost, whatever a crash or another clock left in the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from jobs.models import Attempt, Job, JobEvent
from jobs.states import FINAL, JobStatus, Reason


class Kind(StrEnum):
    FETCHING = "fetching"  # its code, by a worker of ours
    QUEUED = "queued"
    HELD = "held"
    BACKING_OFF = "backing-off"  # after a failure that is tried again
    LAUNCHING = "launching"  # admitted, until its objects are released
    SETTING_UP = "setting-up"  # released, until every pod runs
    RUNNING = "running"
    STOPPING = "stopping"  # asked to end, until its pods are gone

    @property
    def status(self) -> JobStatus:
        """Whose colour it has."""
        return _COLOURS.get(self, JobStatus.QUEUED)

    @property
    def label(self) -> str | Promise:
        return LABELS[self]


LABELS: dict[Kind, str | Promise] = {
    Kind.FETCHING: _("fetching code"),
    Kind.QUEUED: _("queued"),
    Kind.HELD: _("held"),
    Kind.BACKING_OFF: _("waiting to try again"),
    Kind.LAUNCHING: _("launching"),
    Kind.SETTING_UP: _("setting up"),
    Kind.RUNNING: _("running"),
    Kind.STOPPING: _("stopping"),
}
_COLOURS = {
    Kind.LAUNCHING: JobStatus.STARTING,
    Kind.SETTING_UP: JobStatus.STARTING,
    Kind.RUNNING: JobStatus.RUNNING,
    Kind.STOPPING: JobStatus.CANCELLED,
}
_IN_ORDER = (Kind.LAUNCHING, Kind.SETTING_UP, Kind.RUNNING, Kind.STOPPING)  # an attempt never goes back
_WAITS: dict[str, Kind] = {
    Reason.FETCHING_CODE: Kind.FETCHING,
    Reason.HELD: Kind.HELD,
    Reason.FORBIDDEN: Kind.HELD,
    Reason.OWNER_LEFT: Kind.HELD,
    Reason.SECRET_GONE: Kind.HELD,
    Reason.VOLUME_GONE: Kind.HELD,
    Reason.RETRIED: Kind.BACKING_OFF,
}


@dataclass(frozen=True, slots=True)
class Phase:
    kind: Kind
    attempt: int  # the one it belongs to; of a wait, the one before
    started_at: datetime
    length: timedelta
    reason: str  # what it waited for, the longest of several
    is_open: bool

    @property
    def status(self) -> JobStatus:
        return self.kind.status

    @property
    def seconds(self) -> float:
        return self.length.total_seconds()


@dataclass(frozen=True, slots=True)
class Total:
    """All phases of one kind together. While one of them is open, they look as if they had begun at `since`."""

    kind: Kind
    length: timedelta
    since: datetime | None

    @property
    def seconds(self) -> float:
        return self.length.total_seconds()


@dataclass(frozen=True, slots=True)
class _Mark:
    """From here on: another kind, or with None the same kind for another reason."""

    at: datetime
    kind: Kind | None
    attempt: int
    reason: str


def phases(job: Job) -> list[Phase]:
    """Oldest first; the last one is open while the job is not over."""
    return split(job, job.events.all(), job.attempts.prefetch_related("workers"), now=timezone.now())


def totals(found: Sequence[Phase]) -> list[Total]:
    """One for each kind, in the order in which they first came."""
    lengths: dict[Kind, timedelta] = {}
    open_since: dict[Kind, datetime] = {}
    for phase in found:
        if phase.is_open:
            open_since[phase.kind] = phase.started_at - lengths.get(phase.kind, timedelta())
        lengths[phase.kind] = lengths.get(phase.kind, timedelta()) + phase.length
    return [Total(kind, length, open_since.get(kind)) for kind, length in lengths.items()]


def split(job: Job, events: Iterable[JobEvent], attempts: Iterable[Attempt], *, now: datetime) -> list[Phase]:
    told = list(events)
    end = job.finished_at or (told[-1].at if told else job.created_at) if job.is_final else now
    end = max(end, job.created_at)
    marks = sorted([*_of_events(told), *_of_attempts(attempts, told)], key=lambda mark: mark.at)
    first = Kind.FETCHING if told and told[0].reason_code == Reason.FETCHING_CODE else Kind.QUEUED
    builder = _Builder(_Mark(job.created_at, first, 0, told[0].reason if told else ""), end)
    for mark in marks:
        builder.take(mark)
    return builder.finish(is_open=not job.is_final, reason=job.reason)


def _of_events(events: Sequence[JobEvent]) -> list[_Mark]:
    status, found = JobStatus.QUEUED, []
    for event in events:
        if event.kind == "move" and event.new:
            status = JobStatus(event.new)
        if status in FINAL:
            break
        if status == JobStatus.QUEUED:
            # an event without a code is a release, or code that has arrived: the plain wait begins
            kind = _WAITS.get(event.reason_code, Kind.QUEUED)
            found.append(_Mark(event.at, kind, event.attempt, event.reason if event.reason_code else ""))
        elif event.kind == "move":
            kind = Kind.RUNNING if status == JobStatus.RUNNING else Kind.LAUNCHING
            found.append(_Mark(event.at, kind, event.attempt, event.reason))
        elif event.kind == "intent" and event.reason_code in (Reason.STOPPED, Reason.HELD):
            found.append(_Mark(event.at, Kind.STOPPING, event.attempt, event.reason))
        elif status == JobStatus.STARTING:
            found.append(_Mark(event.at, None, event.attempt, event.reason))
    return found


def _of_attempts(attempts: Iterable[Attempt], events: Sequence[JobEvent]) -> list[_Mark]:
    """What no event tells: the release, a stop that nobody asked for, and a run that was too short to be seen."""
    seen_running = {event.attempt for event in events if event.new == JobStatus.RUNNING}
    found = []
    for attempt in attempts:
        if attempt.released_at:
            found.append(_Mark(attempt.released_at, Kind.SETTING_UP, attempt.number, ""))
        if attempt.stop_code and attempt.stop_requested_at:
            found.append(_Mark(attempt.stop_requested_at, Kind.STOPPING, attempt.number, ""))
        began = [worker.started_at for worker in attempt.workers.all()]
        if attempt.number not in seen_running and attempt.ended_at and began and all(began):
            found.append(_Mark(max(at for at in began if at), Kind.RUNNING, attempt.number, ""))
    return found


class _Builder:
    def __init__(self, first: _Mark, end: datetime) -> None:
        self.end = end
        self.kind: Kind = first.kind or Kind.QUEUED
        self.attempt = first.attempt
        self.started_at = self.since = first.at
        self.reason = first.reason
        self.reasons: dict[str, timedelta] = {}
        self.done: list[Phase] = []

    def take(self, mark: _Mark) -> None:
        at = min(max(mark.at, self.since), self.end)
        kind = mark.kind or self.kind
        if self._is_late(mark, kind):
            return
        self._count(at)
        if kind != self.kind or (mark.attempt != self.attempt and kind in _IN_ORDER):
            self._close(at, is_open=False)
            self.kind, self.attempt, self.started_at = kind, mark.attempt, at
            self.reason, self.reasons = mark.reason, {}
        elif mark.reason:
            self.reason = mark.reason

    def _is_late(self, mark: _Mark, kind: Kind) -> bool:
        """What belongs to an attempt that is over, or behind the point it has reached."""
        if kind not in _IN_ORDER:
            return False
        if self.kind not in _IN_ORDER:
            # only an admission begins an attempt
            return kind is not Kind.LAUNCHING
        if mark.attempt != self.attempt:
            return mark.attempt < self.attempt
        return _IN_ORDER.index(kind) < _IN_ORDER.index(self.kind)

    def _count(self, until: datetime) -> None:
        self.reasons[self.reason] = self.reasons.get(self.reason, timedelta()) + (until - self.since)
        self.since = until

    def _close(self, until: datetime, *, is_open: bool) -> None:
        length = until - self.started_at
        if length or is_open:
            said = [reason for reason in self.reasons if reason]
            reason = max(said, key=self.reasons.__getitem__, default="")
            self.done.append(Phase(self.kind, self.attempt, self.started_at, length, reason, is_open))

    def finish(self, *, is_open: bool, reason: str) -> list[Phase]:
        self._count(self.end)
        if is_open:
            self.reasons = {reason: self.end - self.started_at}  # what keeps it now
        self._close(self.end, is_open=is_open)
        return self.done
