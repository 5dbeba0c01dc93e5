"""What one pod's status says: the worker it is, and the verdict on how it ended or why it does not start. Pure."""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from jobs.cluster.fields import condition, is_true, moment, number, part, parts, seen_at, text
from jobs.cluster.manifests import INDEX_LABEL, MAIN, ROLE, ROLE_LABEL
from jobs.cluster.messages.ending import DISRUPTIONS, of_eviction
from jobs.cluster.messages.scheduling import of_scheduling
from jobs.cluster.messages.starting import of_config, of_image, of_pod_event, of_start_error
from jobs.cluster.messages.words import Told
from jobs.cluster.podspec import WAIT
from jobs.exits import NOT_EXECUTABLE, NOT_FOUND, START_ERROR
from jobs.states import Reason

GONE = "trainhall.io/gone"  # an annotation that the mirror of a cluster puts on the last form of a pod that was deleted
UNKNOWN_STATUS = "ContainerStatusUnknown"  # the kubelet, or a runner, lost sight of the container
LAST_WORDS = 300  # characters of the program's own message that fit into a sentence

# What the kubelet says when it takes a pod and then refuses it.
NOT_ADMITTED = (
    "OutOf",
    "UnexpectedAdmissionError",
    "NodeAffinity",
    "NodePorts",
    "NodeShutdown",
    "Shutdown",
    "Terminated",
)
NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ErrInvalidImageName")
NO_COMMAND = ("StartError", "ContainerCannotRun", "RunContainerError")


@dataclass(frozen=True, slots=True)
class WorkerState:
    """One pod as the page shows it; also the row of `Worker`."""

    role: str
    index: int
    phase: str = "Pending"
    node: str = ""
    pod_name: str = ""
    pod_uid: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def name(self) -> str:
        return f"{self.role}-{self.index}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reason, the sentence that goes with it, and the exit code, if one was seen."""

    reason: Reason
    text: str
    exit_code: int | None = None
    is_known: bool = True  # False: nothing of ours tells what the cluster said, which is shown as it is


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod, read once."""

    pod: dict[str, Any]
    worker: WorkerState
    is_ready: bool
    is_lost: bool  # its machine is gone; the phase is an old one

    @property
    def succeeded(self) -> bool:
        return self.worker.phase == "Succeeded" and not self.is_disrupted

    @property
    def failed(self) -> bool:
        if self.worker.phase == "Failed" or self.is_lost or (self.is_terminal and self.is_disrupted):
            return True
        return self.is_gone and self.worker.phase != "Succeeded"

    @property
    def is_terminal(self) -> bool:
        """Holds nothing any more, or is on a machine that nobody can ask."""
        return self.worker.phase in ("Succeeded", "Failed") or self.is_lost or self.is_gone

    @property
    def is_gone(self) -> bool:
        """Deleted, and this is what it said last."""
        return bool(text(self.pod, "metadata", "annotations", GONE))

    @property
    def is_disrupted(self) -> bool:
        return is_true(self.pod, "DisruptionTarget")

    @property
    def was_asked_to_end(self) -> bool:
        """It ended because the others did, or because somebody stopped it."""
        return bool(text(self.pod, "metadata", "deletionTimestamp")) and not self.is_lost

    @property
    def ended_by_itself(self) -> bool:
        """Before anybody asked it to; of one that has ended already, being deleted tells nothing. Both times are in seconds."""
        if self.worker.phase not in ("Succeeded", "Failed"):
            return False
        killed_at, ended = moment(self.pod, "metadata", "deletionTimestamp"), self.worker.finished_at
        if killed_at is None or ended is None:
            return True
        asked = killed_at - timedelta(seconds=number(self.pod, "metadata", "deletionGracePeriodSeconds") or 0)
        return ended < asked or (ended == asked and self.worker.signal is None)

    @property
    def out_of_memory(self) -> bool:
        return any(
            text(status, "state", "terminated", "reason") == "OOMKilled"
            for status in _statuses(self.pod, "containerStatuses")
        )


def read_pod(pod: dict[str, Any]) -> PodView:
    worker = _worker(pod)
    return PodView(
        pod=pod,
        worker=worker,
        is_ready=worker.phase == "Running" and _is_ready(pod),
        is_lost=worker.phase not in ("Succeeded", "Failed") and _is_lost(pod),
    )


def place_of(pod: dict[str, Any]) -> tuple[str, int]:
    """Its role and index in the attempt."""
    labels = part(pod, "metadata", "labels")
    index = text(labels, INDEX_LABEL) or text(pod, "metadata", "annotations", INDEX_LABEL)
    return text(labels, ROLE_LABEL) or ROLE, int(index) if index.isdecimal() else 0


def _worker(pod: dict[str, Any]) -> WorkerState:
    role, index = place_of(pod)
    main = _main_status(pod)
    ended = part(main, "state", "terminated")
    exit_code = number(ended, "exitCode")
    failed_setup = _failed_setup(pod)
    return WorkerState(
        role=role,
        index=index,
        phase=text(pod, "status", "phase") or "Pending",
        node=text(pod, "spec", "nodeName"),
        pod_name=text(pod, "metadata", "name"),
        pod_uid=text(pod, "metadata", "uid"),
        exit_code=number(part(failed_setup, "state", "terminated"), "exitCode") if failed_setup else exit_code,
        signal=number(ended, "signal") or _signal_of(exit_code),
        reason=text(pod, "status", "reason") or text(ended, "reason") or text(main, "state", "waiting", "reason"),
        message=(
            text(failed_setup, "state", "terminated", "message")
            or text(ended, "message")
            or text(pod, "status", "message")
            or text(main, "state", "waiting", "message")
        ),
        started_at=moment(ended, "startedAt") or moment(main, "state", "running", "startedAt"),
        finished_at=moment(ended, "finishedAt"),
    )


def _statuses(pod: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return parts(pod, "status", kind)


def _main_status(pod: dict[str, Any]) -> dict[str, Any]:
    """Of the container that decides; pods that are not ours may call it anything."""
    statuses = _statuses(pod, "containerStatuses")
    # the kubelet sorts them by name, so the first of them need not be the first container
    name = next((text(spec, "name") for spec in parts(pod, "spec", "containers")), MAIN)
    chosen = [status for wanted in (MAIN, name) for status in statuses if text(status, "name") == wanted]
    return next(iter(chosen or statuses), {})


def _setup_statuses(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Of init containers that end before the program begins; a sidecar runs on, and its end is nobody's failure."""
    sidecars = {
        text(spec, "name") for spec in parts(pod, "spec", "initContainers") if text(spec, "restartPolicy") == "Always"
    }
    return [status for status in _statuses(pod, "initContainerStatuses") if text(status, "name") not in sidecars]


def _failed_setup(pod: dict[str, Any]) -> dict[str, Any]:
    for status in _setup_statuses(pod):
        ended = part(status, "state", "terminated")
        if number(ended, "exitCode") not in (None, 0) and text(ended, "reason") != UNKNOWN_STATUS:
            return status
    return {}


def _is_ready(pod: dict[str, Any]) -> bool:
    """Its program runs; a sidecar that keeps ending makes the pod not ready, and is no news of the program."""
    ready, main = condition(pod, "Ready"), _main_status(pod)
    if text(ready, "reason") == "ContainersNotReady" and main.get("ready") is True:
        return True
    return ready.get("status") == "True" or (not ready.get("status") and "running" in part(main, "state"))


def _is_lost(pod: dict[str, Any]) -> bool:
    """Being deleted, and its node does not answer: nothing more will ever be heard of it (RELIABILITY R28)."""
    if text(pod, "status", "phase") == "Unknown" and text(pod, "metadata", "deletionTimestamp"):
        return True
    says_lost = "NodeLost" in (text(pod, "status", "reason"), text(condition(pod, "Ready"), "reason"))
    return says_lost and bool(text(pod, "metadata", "deletionTimestamp"))


def _signal_of(exit_code: int | None) -> int | None:
    """A shell and a container runtime both say 128 + signal."""
    if exit_code is None or not 128 < exit_code <= 128 + signals.SIGRTMAX:
        return None
    return exit_code - 128


# Why it ended


def verdict(view: PodView) -> Verdict:
    """Why a failed pod failed: the platform's doing first, then setup, then the program."""
    return _platform(view) or _setup(view) or _program(view)


def _platform(view: PodView) -> Verdict | None:
    name, pod = view.worker.name, view.pod
    if view.is_disrupted:
        disruption = condition(pod, "DisruptionTarget")
        if text(disruption, "reason") == "TerminationByKubelet":
            told = of_eviction(text(disruption, "message"))
            if told.is_known:
                return Verdict(told.reason, f"{name} had to leave. {told.text}", view.worker.exit_code)
        known = DISRUPTIONS.get(text(disruption, "reason"))
        reason, words = known or (
            Reason.DISRUPTION,
            f"was taken away ({text(disruption, 'reason') or 'no reason given'})",
        )
        return Verdict(reason, f"{name} {words}.{_quoted(text(disruption, 'message'))}", view.worker.exit_code)
    said = text(pod, "status", "reason")
    if view.is_lost or said == "NodeLost":
        node = f" {view.worker.node}" if view.worker.node else ""
        return Verdict(Reason.NODE_LOST, f"{name} lost its machine{node}: it does not answer any more.")
    if said == "Evicted":
        told = of_eviction(text(pod, "status", "message"))
        return Verdict(told.reason, f"{name} was evicted. {told.text}", view.worker.exit_code)
    if said == "DeadlineExceeded":
        return Verdict(Reason.TIME_LIMIT, f"{name} reached its time limit.")
    if said.startswith(NOT_ADMITTED):
        return Verdict(Reason.DISRUPTION, f"{name} was not taken by its machine ({said}).")
    return None


def _setup(view: PodView) -> Verdict | None:
    status = _failed_setup(view.pod)
    if not status:
        return None
    ended = part(status, "state", "terminated")
    code = number(ended, "exitCode")
    words = f"{view.worker.name} could not be set up (exit code {code}).{_quoted(text(ended, 'message'))}"
    return Verdict(Reason.SETUP_FAILED, words, code)


def _program(view: PodView) -> Verdict:
    name = view.worker.name
    ended = part(_main_status(view.pod), "state", "terminated")
    code, said, message = number(ended, "exitCode"), text(ended, "reason"), text(ended, "message")
    if view.out_of_memory:
        return Verdict(Reason.OUT_OF_MEMORY, f"{name} used more memory than its limit{_limit(view.pod)}.", code)
    if said == UNKNOWN_STATUS or code is None:
        words = message or text(view.pod, "status", "message")
        return Verdict(Reason.OUTCOME_UNKNOWN, f"How {name} ended is not known.{_quoted(words)}")
    if said in NO_COMMAND or code == START_ERROR:
        words = of_start_error(message)
        words = f" {words}" if words else _quoted(message)
        return Verdict(Reason.COMMAND_NOT_FOUND, f"{name} could not start its command.{words}", code)
    if code in (NOT_FOUND, NOT_EXECUTABLE):
        words = "was not found" if code == NOT_FOUND else "cannot be executed"
        return Verdict(
            Reason.COMMAND_NOT_FOUND, f"{name}: the command {words} (exit code {code}).{_last(message)}", code
        )
    number_of_signal = view.worker.signal
    if number_of_signal is not None:
        words = f"{name} was ended by {_signal_name(number_of_signal)} (exit code {code}).{_last(message)}"
        return Verdict(Reason.KILLED_BY_SIGNAL, words, code)
    return Verdict(Reason.NON_ZERO_EXIT, f"{name} ended with exit code {code}.{_last(message)}", code)


def _signal_name(number_of_signal: int) -> str:
    try:
        return f"signal {number_of_signal} ({signals.Signals(number_of_signal).name})"
    except ValueError:
        return f"signal {number_of_signal}"


def _limit(pod: dict[str, Any]) -> str:
    containers = parts(pod, "spec", "containers")
    main = next((spec for spec in containers if text(spec, "name") == MAIN), {})
    size = text(main, "resources", "limits", "memory")
    return f" of {size}" if size else ""


def _quoted(message: str) -> str:
    shortened = " ".join(message.split())
    return f" {shortened[-LAST_WORDS:]}" if shortened else ""


def _last(message: str) -> str:
    """The program's last line: of a traceback, the one that says what happened."""
    lines = [line for line in message.splitlines() if line.strip()]
    return _quoted(lines[-1]) if lines else ""


# Why it does not start


def waiting(view: PodView, events: Sequence[dict[str, Any]] = ()) -> Verdict:
    """What a pod that does not run yet is waiting for; `events` are the warnings about it."""
    name = view.worker.name
    for status in (*_statuses(view.pod, "initContainerStatuses"), *_statuses(view.pod, "containerStatuses")):
        said, message = text(status, "state", "waiting", "reason"), text(status, "state", "waiting", "message")
        if said in NO_IMAGE:
            found = of_image(said, message, text(status, "image"))
            if "tried again" in found.text:  # a back-off that does not say why: an event may
                found = _of_events(events, text(status, "image")) or found
            return _waits(name, "cannot start.", found)
        if said in ("CreateContainerConfigError", "CreateContainerError"):
            return _waits(name, "cannot be set up.", of_config(message))
    scheduled = condition(view.pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return _waits(name, "has no machine yet.", of_scheduling(text(scheduled, "message")))
    # once a container has started, its volumes are there and its machine has made it, whatever was said before
    if not _has_begun(view.pod) and (told := _of_events(events)):
        return _waits(name, f"cannot start on {view.worker.node or 'its machine'}.", told)
    for status in _setup_statuses(view.pod):
        if "running" in part(status, "state"):
            if text(status, "name") == WAIT:
                return Verdict(Reason.SETTING_UP, f"{name} waits until its workers answer.")
            return Verdict(
                Reason.SETTING_UP, f"{name} is being set up: {text(status, 'name')} fetches and unpacks the code."
            )
    return Verdict(Reason.ADMITTED, f"{name} is starting.")


def _waits(name: str, words: str, told: Told) -> Verdict:
    return Verdict(told.reason, f"{name} {words} {told.text}", is_known=told.is_known)


def _of_events(events: Sequence[dict[str, Any]], image: str = "") -> Told | None:
    """The newest one that says what a pod lacks."""
    for event in sorted(events, key=seen_at, reverse=True):
        if told := of_pod_event(text(event, "reason"), text(event, "message"), image):
            return told
    return None


def _has_begun(pod: dict[str, Any]) -> bool:
    statuses = (*_statuses(pod, "initContainerStatuses"), *_statuses(pod, "containerStatuses"))
    return any({"running", "terminated"} & part(status, "state").keys() for status in statuses)


_NAMED_POD = re.compile(r"^(?:Pod (?:[^/\s]+)/(\S+) has condition|Container \S+ for pod (?:[^/\s]+)/(\S+) failed with)")


def named_in(message: str) -> str:
    """The pod that a Job's failure message names, "" if it names none."""
    match = _NAMED_POD.match(message)
    return (match[1] or match[2]) if match else ""
