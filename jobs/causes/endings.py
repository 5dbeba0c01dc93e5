"""Causes that need no line: what the cluster reports, and what an exit code or a signal means (pure)."""

from __future__ import annotations

import re
import signal as signals

from jobs import exits
from jobs.causes.scene import Finding, Line, Scene, WorkerEnd
from jobs.states import Reason

# What the cluster knows is never overruled by what a program printed.
BY_REASON: dict[Reason, str] = {
    Reason.OUT_OF_MEMORY: "host_out_of_memory",
    Reason.TIME_LIMIT: "time_limit",
    Reason.SETUP_FAILED: "setup_failed",
    Reason.CODE_NOT_FETCHED: "code_not_fetched",
    Reason.REFUSED_BY_CLUSTER: "refused_by_cluster",
    Reason.IMAGE_NOT_FOUND: "image_not_found",
    Reason.REGISTRY_UNAVAILABLE: "registry_unavailable",
    Reason.QUOTA_EXCEEDED: "quota_exceeded",
    Reason.NOT_ALLOWED: "not_allowed",
    Reason.CLUSTER_NOT_SET_UP: "cluster_not_set_up",
    Reason.SECRET_MISSING: "secret_missing",
    Reason.VOLUME_MISSING: "volume_missing",
    Reason.VOLUME_UNAVAILABLE: "volume_not_mounted",
    Reason.MACHINE_FAULT: "machine_fault",
    Reason.OUT_OF_DISK: "scratch_full",
    Reason.START_TIMEOUT: "start_timeout",
    Reason.PREEMPTED: "preempted",
    Reason.DISRUPTION: "disruption",
    Reason.NODE_LOST: "node_lost",
    Reason.OUTCOME_UNKNOWN: "outcome_unknown",
}
BY_SIGNAL: dict[int, str] = {
    signals.SIGSEGV: "segfault",
    signals.SIGABRT: "aborted",
    signals.SIGBUS: "bus_error",
    signals.SIGILL: "illegal_instruction",
    signals.SIGKILL: "killed",
    signals.SIGTERM: "terminated",
}
BY_EXIT = {
    exits.CHECKPOINTED: "checkpointed",
    exits.NOT_EXECUTABLE: "not_executable",
    exits.NOT_FOUND: "command_not_found",
}
# of one reason several kinds: whose it is, its words tell
_BY_WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "code_not_fetched": (("TRAINHALL_FETCH_HOSTS", "code_address_private"),),
    "scratch_full": (("/dev/shm", "shm_over_limit"),),  # noqa: S108 - a name in a sentence
    "disruption": (("ran short of", "machine_pressure"),),
}
# kinds that only an exit code or the cluster tells: a line beside them is the last one written, no more
FROM_EXIT = frozenset(
    {
        *BY_REASON.values(),
        *BY_SIGNAL.values(),
        *(kind for pairs in _BY_WORDS.values() for _words, kind in pairs),
        "checkpointed",
        "signalled",
        "gave_up_in_time",
        "nonzero_exit",
        "unknown",
    }
)
_START = re.compile(
    r'(?:exec: )?"?(?P<command>[^\s":]{1,200})"?: (?:executable file not found|not found|no such file)', re.IGNORECASE
)


def told_by_cluster(scene: Scene) -> Finding | None:
    kind = BY_REASON.get(scene.code)
    if kind is None:
        return None
    kind = next((other for words, other in _BY_WORDS.get(kind, ()) if words in scene.text), kind)
    return Finding(kind, {"words": scene.text}, last_line(reported(scene)))


def reported(scene: Scene) -> WorkerEnd | None:
    """The worker that the cluster's sentence names, else the first that failed."""
    failed = [worker for worker in scene.workers if worker.failed]
    named = [worker for worker in failed if scene.text.startswith(f"{worker.name} ")]
    return next(iter(named or sorted(failed, key=lambda worker: worker.finished_at or float("inf"))), None)


def last_line(worker: WorkerEnd | None) -> Line | None:
    """The last one of its log, whoever wrote it: it has to be the one that the log shows last."""
    return worker.lines[-1] if worker and worker.lines else None


def by_exit(worker: WorkerEnd, scene: Scene) -> Finding:
    """What is left to say where neither the cluster nor a line says more."""
    last = last_line(worker)
    values: dict[str, str] = {}
    if worker.signal is not None:
        kind = BY_SIGNAL.get(worker.signal, "signalled")
        values["signal"] = signal_name(worker.signal)
    elif scene.code == Reason.COMMAND_NOT_FOUND or worker.exit_code in BY_EXIT:
        kind = BY_EXIT.get(worker.exit_code or 0, "command_not_found")
        if found := _START.search(worker.message or scene.text):
            values["command"] = found["command"]
        elif worker.exit_code not in BY_EXIT:
            values["words"] = worker.message or scene.text
    elif worker.exit_code == 124 and re.search(r"\btimeout\b", scene.command):
        kind = "gave_up_in_time"
    elif worker.exit_code is None:
        return Finding("unknown", {"words": scene.text}, last)
    else:
        kind = "nonzero_exit"
    return Finding(kind, values, last)


def signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
