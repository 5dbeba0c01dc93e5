"""Why the scheduler finds no machine for a pod, counted by machine. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jobs.cluster.messages.words import Rule, Told, as_it_is, first, rule
from jobs.states import Reason

NO_ROOM = Reason.WAITING_FOR_CAPACITY
_COUNTED = re.compile(r"^0/(\d+) nodes are available: (.*)$", re.DOTALL)
_TAIL = re.compile(r"(?:[.,]|^)\s*(?:no new claims to deallocate,\s*)?preemption: (.*)$", re.DOTALL)
_BETWEEN = re.compile(r",\s+(?=\d+ \S)")
_NUMBERED = re.compile(r"^(\d+) (.*)$", re.DOTALL)
_WHAT = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "scratch space", "pods": "room for another pod"}


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is wrong with some of the machines, of one and of many."""

    pattern: re.Pattern[str]
    one: str
    many: str

    def said(self, count: int, match: re.Match[str]) -> str:
        words = self.one if count == 1 else self.many
        return words.format(count, *(_WHAT.get(group or "", group or "") for group in match.groups()))


def _kind(pattern: str, one: str, many: str) -> _Kind:
    return _Kind(re.compile(pattern), one, many)


KINDS = (
    _kind(
        r"^Insufficient \S+/gpu",
        "1 machine does not have enough free GPUs",
        "{0} machines do not have enough free GPUs",
    ),
    _kind(r"^Insufficient (\S+)", "1 machine lacks free {1}", "{0} machines lack free {1}"),
    _kind(
        r"didn't match Pod's node affinity/selector",
        "1 machine is not of the kind you asked for",
        "{0} machines are not of the kind you asked for",
    ),
    _kind(
        r"untolerated taint.*node\.kubernetes\.io/(?:not-ready|unreachable)",
        "1 machine does not answer",
        "{0} machines do not answer",
    ),
    _kind(r"untolerated taint", "1 machine is reserved", "{0} machines are reserved"),
    _kind(r"were unschedulable", "1 machine is under maintenance", "{0} machines are under maintenance"),
    _kind(
        r"pod (?:anti-)?affinity|topology spread constraints",
        "1 machine would break the placement rules of the job",
        "{0} machines would break the placement rules of the job",
    ),
    _kind(
        r"available persistent volumes to bind|volume node affinity|available volume zone",
        "the storage volume is not available on 1 machine",
        "the storage volume is not available on {0} machines",
    ),
    _kind(
        r"Too many pods",
        "1 machine already runs its maximum number of pods",
        "{0} machines already run their maximum number of pods",
    ),
)
# what is said of the pod, whatever the machine
OF_THE_POD: tuple[Rule, ...] = (
    rule(
        r'persistentvolumeclaim "([^"]+)" not found',
        Reason.VOLUME_MISSING,
        "The volume {1} does not exist in this namespace.",
    ),
    rule(
        r"unbound immediate PersistentVolumeClaims|find available persistent volumes to bind|no available volume zone",
        Reason.VOLUME_UNAVAILABLE,
        "The storage volume is not available yet.",
    ),
    rule(
        r"cannot allocate all claims|resourceclaim .* not (?:found|created)",
        NO_ROOM,
        "The requested device claim cannot be satisfied.",
    ),
    rule(r"throttle\[(\w[^\]]*)\]=(\S+)", NO_ROOM, "Your limit {2} is reached ({1})."),
    rule(
        r"waiting for minCount pods from a gang to (?:appear in scheduling queue|be scheduled)",
        NO_ROOM,
        "Waiting until all workers can start together.",
    ),
    rule(
        r"Scheduling is blocked due to non-empty scheduling gates",
        NO_ROOM,
        "Another program of the cluster has not released it yet (a scheduling gate).",
    ),
    rule(r"no nodes available to schedule pods", NO_ROOM, "The cluster has no ready machine at the moment."),
)
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"


def of_scheduling(message: str) -> Told:
    """The message of the condition PodScheduled, or of an event FailedScheduling."""
    counted = _COUNTED.match(message.strip())
    if counted is None:
        return first(OF_THE_POD, message) or as_it_is(NO_ROOM, "There is no machine for it yet.", message)
    total, rest = int(counted[1]), counted[2]
    tail = _TAIL.search(rest)
    reasons = (rest[: tail.start()] if tail else rest).strip().rstrip(".")
    if found := first(OF_THE_POD[:4], reasons if not _NUMBERED.match(reasons) else ""):
        return found
    said = []
    for reason in _BETWEEN.split(reasons):
        numbered = _NUMBERED.match(reason)
        words = _said(int(numbered[1]), numbered[2]) if numbered else ""
        if not words:
            return as_it_is(NO_ROOM, "There is no machine for it yet.", message)
        said.append(words)
    of = "The only machine" if total == 1 else f"Of {total} machines"
    can = "cannot take it" if total == 1 else "none can take it"
    return Told(NO_ROOM, f"{of} {can}: {'; '.join(said)}.{_tail(tail[1] if tail else '', total)}")


def _said(count: int, reason: str) -> str:
    for kind in KINDS:
        if match := kind.pattern.search(reason):
            return kind.said(count, match)
    return ""


def _tail(words: str, total: int) -> str:
    """What the scheduler thinks of stopping others; without displacing is how our jobs wait, so that is not told."""
    if _NO_VICTIMS in words:
        return " All jobs on suitable machines have the same or a higher priority."
    if re.search(rf"\b{total} {_NOT_HELPFUL}", words):
        return " Even stopping other jobs would not help."
    return ""
