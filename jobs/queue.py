"""Who starts now, who waits, and why: a pure function of one snapshot.

Order: priority with ageing, then the namespace that uses least, then waiting time. A gang starts whole or not at all. A job may
pass one that is blocked ahead of it only if that cannot delay the blocked one's start (EASY backfill over time limits).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from jobs.capacity import Free, Node, Request
from jobs.states import Reason

AGEING_PER_MINUTE = 10
AGEING_CAP = 2000  # below the gap between priority classes: ageing never crosses one
CLUSTER_SILENT_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued job. `held_by` is a name; `wait` is the sum of all its waits so far, in seconds."""

    id: str
    name: str
    namespace: str
    owner: str
    priority: str
    priority_value: int
    request: Request
    queued_at: datetime
    waited_before: float
    time_limit: int
    code_ready: bool = True
    held_by: str = ""
    held_for: tuple[Reason, str] | None = None  # why, where it is not by a wish
    not_before: datetime | None = None
    failed_before: str = ""  # how its last attempt failed and when it is tried again, while it waits for that


@dataclass(frozen=True, slots=True)
class Holding:
    """An attempt that holds capacity: from admission until its pods are gone. `nodes` has one name per pod."""

    job_id: str
    namespace: str
    owner: str
    priority: str
    request: Request
    nodes: tuple[str, ...]
    ends_by: datetime | None  # start + time limit; None where that is not known


@dataclass(frozen=True, slots=True)
class NamespaceLimit:
    gpus: int | None = None
    cpu_millis: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    waiting: Sequence[Waiting]
    holding: Sequence[Holding]
    nodes: Sequence[Node]
    seen_at: datetime | None  # when the nodes were last read
    jobs_per_user: Mapping[str, int | None] = field(default_factory=dict)  # by priority
    namespaces: Mapping[str, NamespaceLimit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admission:
    job_id: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a job does not start, in a sentence with numbers, and its place among all that wait (from 1)."""

    job_id: str
    code: Reason
    text: str
    position: int


@dataclass(slots=True)
class Plan:
    admissions: list[Admission] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Decide for every waiting job."""
    return _Planner(snapshot, now).run()


class Ranked(Protocol):
    """What decides a place in the line, and no more: a list asks for the places of thousands."""

    @property
    def id(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def priority_value(self) -> int: ...
    @property
    def queued_at(self) -> datetime: ...
    @property
    def waited_before(self) -> float: ...


RankedJob = TypeVar("RankedJob", bound=Ranked)


def effective_priority(job: Ranked, now: datetime) -> int:
    minutes = int((job.waited_before + (now - job.queued_at).total_seconds()) / 60)
    return job.priority_value + min(AGEING_CAP, AGEING_PER_MINUTE * max(0, minutes))


def in_order(waiting: Iterable[Waiting], holding: Sequence[Holding], now: datetime) -> list[Waiting]:
    used: Counter[str] = Counter()
    for held in holding:
        used[held.namespace] += held.request.weight
    return ranked(waiting, used, now)


def ranked(waiting: Iterable[RankedJob], used: Mapping[str, int], now: datetime) -> list[RankedJob]:
    """The line: `used` says what each namespace holds, a pod counting as its GPUs, or one."""
    return sorted(
        waiting, key=lambda job: (-effective_priority(job, now), used.get(job.namespace, 0), job.queued_at, job.id)
    )


class _Planner:
    def __init__(self, snapshot: Snapshot, now: datetime) -> None:
        self.snapshot = snapshot
        self.now = now
        self.free = Free(snapshot.nodes)
        self.running: Counter[tuple[str, str]] = Counter()  # (owner, priority) -> jobs
        self.used: dict[str, Counter[str]] = defaultdict(Counter)
        self.head: _Reservation | None = None
        self.ahead = 0
        self.out = Plan()
        for held in snapshot.holding:
            self.free.take(held.request, held.nodes)
            self.count(held.owner, held.priority, held.namespace, held.request)

    def count(self, owner: str, priority: str, namespace: str, request: Request) -> None:
        self.running[owner, priority] += 1
        used = self.used[namespace]
        used["gpus"] += request.total_gpus
        used["cpu_millis"] += request.total_cpu_millis
        used["memory_bytes"] += request.total_memory_bytes

    def run(self) -> Plan:
        for job in in_order(self.snapshot.waiting, self.snapshot.holding, self.now):
            # the most final question first
            blocked = (
                self.not_ready(job)
                or self.cluster_is_silent()
                or self.never_fits(job)
                or self.over_user_limit(job)
                or self.over_namespace_limit(job)
            )
            if not blocked:
                nodes = self.free.place(job.request)
                if nodes is None:
                    blocked = self.no_room(job)
                elif self.head and not self.head.allows(job, self.now):
                    blocked = (Reason.WAITING_BEHIND, self.head.sentence())
                else:
                    self.admit(job, nodes)
                    continue
            self.ahead += 1
            self.out.waits.append(Wait(job.id, *blocked, position=self.ahead))
        return self.out

    def admit(self, job: Waiting, nodes: tuple[str, ...]) -> None:
        self.free.take(job.request, nodes)
        self.count(job.owner, job.priority, job.namespace, job.request)
        self.out.admissions.append(Admission(job.id, nodes))

    def not_ready(self, job: Waiting) -> tuple[Reason, str] | None:
        if job.held_by:
            if job.held_for:
                return job.held_for
            return Reason.HELD, f"Held by {job.held_by}: release it to let it start."
        if not job.code_ready:
            return Reason.FETCHING_CODE, "Its code is being fetched; that is tried for up to 10 minutes."
        if job.not_before and job.not_before > self.now:
            # the same words at every look: a sentence that counts down would be a write every few seconds
            at = f"Waits after a failed attempt: tries again at {job.not_before:%H:%M:%S} UTC."
            return Reason.RETRIED, job.failed_before or at
        return None

    def cluster_is_silent(self) -> tuple[Reason, str] | None:
        if self.snapshot.seen_at is None:
            return Reason.WAITING_FOR_CLUSTER, "The cluster has not been seen yet: nothing is started until it answers."
        silent = self.now - self.snapshot.seen_at
        if silent < CLUSTER_SILENT_AFTER:
            return None
        text = (
            f"The cluster has not been seen for {int(silent.total_seconds())} s: nothing is started until it answers."
        )
        return Reason.WAITING_FOR_CLUSTER, text

    def never_fits(self, job: Waiting) -> tuple[Reason, str] | None:
        if why := why_never(job.request, self.snapshot.nodes, self.snapshot.namespaces.get(job.namespace)):
            return Reason.NEVER_FITS, why
        return None

    def over_user_limit(self, job: Waiting) -> tuple[Reason, str] | None:
        limit = self.snapshot.jobs_per_user.get(job.priority)
        now_running = self.running[job.owner, job.priority]
        if limit is None or now_running < limit:
            return None
        text = f"{job.owner}'s {job.priority}-priority limit is reached, {now_running}/{limit}: starts when one ends."
        return Reason.WAITING_FOR_USER_LIMIT, text

    def over_namespace_limit(self, job: Waiting) -> tuple[Reason, str] | None:
        limit = self.snapshot.namespaces.get(job.namespace, NamespaceLimit())
        used = self.used[job.namespace]
        asks = job.request
        for what, bound, asked in (
            ("gpus", limit.gpus, asks.total_gpus),
            ("cpu_millis", limit.cpu_millis, asks.total_cpu_millis),
            ("memory_bytes", limit.memory_bytes, asks.total_memory_bytes),
        ):
            if bound is None or used[what] + asked <= bound:
                continue
            more = amount(what, used[what] + asked - bound)
            text = f"Waiting for {more} more: {job.namespace} uses {amount(what, used[what])} of {amount(what, bound)}."
            return Reason.WAITING_FOR_QUOTA, text
        return None

    def no_room(self, job: Waiting) -> tuple[Reason, str]:
        text = self.free.why_no_room(job.request)
        if self.ahead:
            text += f" {self.ahead} {'job waits' if self.ahead == 1 else 'jobs wait'} ahead."
        if self.head is None:
            self.head = _Reservation.of(job, self.snapshot, self.out.admissions, self.now)
        return Reason.WAITING_FOR_CAPACITY, text


@dataclass(slots=True)
class _Reservation:
    """The earliest time the first blocked job can start if all running ones use their whole time limit."""

    name: str
    at: datetime | None  # None: some end is unknown, so nothing that overlaps may pass
    spare: Free | None  # what is left on the nodes then, with the blocked job placed

    @classmethod
    def of(cls, job: Waiting, snapshot: Snapshot, admissions: Sequence[Admission], now: datetime) -> _Reservation:
        waiting = {other.id: other for other in snapshot.waiting}
        busy = [(held.ends_by, held.request, held.nodes) for held in snapshot.holding]
        for admission in admissions:
            other = waiting[admission.job_id]
            busy.append((now + timedelta(seconds=other.time_limit), other.request, admission.nodes))
        free = Free(snapshot.nodes)
        for _ends, request, nodes in busy:
            free.take(request, nodes)
        for ends, request, nodes in sorted((entry for entry in busy if entry[0]), key=lambda entry: entry[0] or now):
            free.give_back(request, nodes)
            if placed := free.place(job.request):
                free.take(job.request, placed)
                return cls(job.name, max(ends or now, now), free)
        return cls(job.name, None, None)

    def allows(self, job: Waiting, now: datetime) -> bool:
        """May this job, which has room now, start without delaying the blocked one?"""
        if self.at is not None and now + timedelta(seconds=job.time_limit) <= self.at:
            return True
        nodes = self.spare.place(job.request) if self.spare else None
        if nodes is None or self.spare is None:
            return False
        self.spare.take(job.request, nodes)
        return True

    def sentence(self) -> str:
        until = f", which starts by {self.at:%H:%M} UTC at the latest" if self.at else ""
        return f"There is room now, but starting would delay a job ahead of it{until}. A shorter time limit may help."


def why_never(request: Request, nodes: Sequence[Node], limit: NamespaceLimit | None) -> str | None:
    """Why no state of the cluster could ever run this, or None. With no node known, nothing is said."""
    if limit and limit.gpus is not None and request.total_gpus > limit.gpus:
        return f"Never starts as asked: {request.total_gpus} GPUs exceed the namespace's limit of {limit.gpus}."
    if not nodes:
        return None
    return Free(nodes).why_never(request)


def amount(what: str, value: int) -> str:
    if what == "cpu_millis":
        return f"{value / 1000:g} CPUs"
    if what == "memory_bytes":
        return f"{value / 2**30:.3g} GiB"
    return f"{value} GPU{'' if value == 1 else 's'}"
