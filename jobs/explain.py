"""Why an attempt failed: one cause with its owner, the line that shows it and what to do next (pure).

First match wins, the most certain first: what the cluster reports, then what the workers wrote, then what an exit code means.
Of several workers the one that failed by itself counts; those that fell because it was gone are named as such. Nothing is
claimed that was not seen: "unknown" is an answer too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs.causes import endings, hints, program
from jobs.causes.catalogue import KINDS
from jobs.causes.scene import Finding, Line, Scene, WorkerEnd, at_home, clean
from jobs.causes.words import Owner
from jobs.states import Reason

OTHERS = 5  # workers that fell with the first, named one by one
EXCERPT = 500  # characters of the evidence line that are kept
QUICK = 5.0  # seconds: who ends sooner, silently, may have done nothing
_TIMED_OUT = re.compile(
    r"\[Rank (?P<rank>\d+)\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d+)"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """What is stored: the kind and its values, and the English words for whoever has no catalogue at hand."""

    kind: str
    owner: Owner
    code: str
    values: dict[str, str]
    worker: str = ""
    attempt: int = 1
    line: Line | None = None
    shows_it: bool = True  # False: only the last line, which shows where it stood
    others: tuple[dict[str, Any], ...] = ()
    more_others: int = 0
    went_on: bool = False  # it wrote more after that line, which may have been a warning only
    changes: tuple[tuple[str, str], ...] = ()  # fields of the form and the values to try

    @property
    def text(self) -> str:
        return KINDS[self.kind].sentence(self.values)

    def as_dict(self) -> dict[str, Any]:
        line = self.line
        return {
            "kind": self.kind,
            "owner": self.owner.value,
            "code": self.code,
            "text": self.text,
            "steps": KINDS[self.kind].next_steps(self.values),
            "values": self.values,
            "worker": self.worker,
            "evidence": {
                "seq": line.seq,
                "worker": self.worker,
                "attempt": self.attempt,
                "text": at_home(line.text)[:EXCERPT],
                "shows_it": self.shows_it,
            }
            if line
            else None,
            "went_on": self.went_on,
            "others": list(self.others),
            "more_others": self.more_others,
            "changes": dict(self.changes),
        }


def explain(scene: Scene) -> Cause | None:
    """The cause, or None where nothing went wrong."""
    if scene.succeeded:
        return _limit_hit(scene) or _did_nothing(scene)
    if by_cluster := endings.told_by_cluster(scene):
        return _cause(scene, endings.reported(scene), by_cluster, others=())
    ends = sorted(((worker, _finding(worker, scene)) for worker in scene.workers if worker.failed), key=_order)
    if not ends:
        return _cause(scene, None, Finding("unknown", {"words": scene.text}), others=())
    worker, finding = ends[0]
    if finding.kind == "nccl_timeout":
        finding = _with_suspect(finding, scene)
    return _cause(scene, worker, finding, others=ends[1:])


def _finding(worker: WorkerEnd, scene: Scene) -> Finding:
    if found := program.of_worker(worker, scene):
        return found
    if worker.signal is None and worker.exit_code not in endings.BY_EXIT and (metric := _bad_loss(scene)):
        return Finding("nan_loss", metric, endings.last_line(worker))
    return endings.by_exit(worker, scene)


def _bad_loss(scene: Scene) -> dict[str, str]:
    """A loss whose last report is not a number, where nothing else tells why the program ended."""
    for key, value in scene.headline.items():
        if "loss" in key.lower() and value in ("NaN", "Infinity", "-Infinity"):
            return {"metric": key, "value": str(value)}
    return {}


def _order(one: tuple[WorkerEnd, Finding]) -> tuple[bool, bool, float, str]:
    """Whose failure came first; who says that another is gone, or was told to end, never before one who says more."""
    worker, finding = one
    was_told = finding.kind in ("terminated", "killed")
    wrote_at = finding.line.time if finding.line and _is_shown(finding) else 0.0
    # clusters tell whole seconds: who wrote why, in the second in which another ended in silence, was not the later one
    ended_at = float("inf") if worker.finished_at is None else worker.finished_at + (not _is_shown(finding))
    return finding.follow_up, was_told, wrote_at or ended_at, worker.name


def _is_shown(finding: Finding) -> bool:
    """Whether its line shows the cause, or is only the last that was written."""
    return finding.line is not None and finding.kind not in endings.FROM_EXIT and "metric" not in finding.values


def _with_suspect(finding: Finding, scene: Scene) -> Finding:
    """The rank that was the furthest behind, where the ranks say different numbers."""
    reported: dict[str, int] = {}
    for worker in scene.workers:
        for line in worker.lines:
            if match := _TIMED_OUT.search(line.text):
                reported.setdefault(match["rank"], int(match["number"][:15]))
    behind = [rank for rank, number in reported.items() if number == min(reported.values())]
    if len(behind) == 1 and len(reported) > 1:
        return Finding(finding.kind, finding.values | {"suspect": behind[0]}, finding.line)
    return finding


def _limit_hit(scene: Scene) -> Cause | None:
    """Exit code 0, and yet a child of it was killed for its memory (RELIABILITY R23)."""
    if scene.code != Reason.OUT_OF_MEMORY:
        return None
    return _cause(scene, None, Finding("memory_limit_hit"), others=())


def _did_nothing(scene: Scene) -> Cause | None:
    if scene.has_points or any(worker.lines for worker in scene.workers):
        return None
    if scene.code != Reason.COMPLETED or scene.ran_seconds is None or scene.ran_seconds >= QUICK:
        return None
    return _cause(scene, None, Finding("did_nothing", {"ran": _ran(scene.ran_seconds)}), others=())


def _ran(seconds: float) -> str:
    """Clusters tell whole seconds."""
    return f"{seconds:.0f} s" if seconds >= 1 else "less than 1 s"


def _cause(
    scene: Scene, worker: WorkerEnd | None, finding: Finding, *, others: Sequence[tuple[WorkerEnd, Finding]]
) -> Cause:
    kind = finding.kind
    if kind == "no_gpu":
        kind = "gpu_not_seen" if scene.gpus else "no_gpu_asked"
    values = hints.values_of(scene, worker) | finding.values
    return Cause(
        kind=kind,
        owner=KINDS[kind].owner,
        code=str(scene.code),
        values={name: at_home(clean(value)) for name, value in values.items() if value},
        worker=worker.name if worker else "",
        attempt=scene.attempt,
        line=finding.line if finding.line and finding.line.seq else None,
        shows_it=_is_shown(finding),
        went_on=finding.went_on,
        others=tuple(_other(*other) for other in others[:OTHERS]),
        more_others=max(0, len(others) - OTHERS),
        changes=hints.changes_of(kind, scene),
    )


def _other(worker: WorkerEnd, finding: Finding) -> dict[str, Any]:
    line = finding.line
    return {
        "worker": worker.name,
        "kind": finding.kind,
        "seq": line.seq if line else 0,
        "line": at_home(line.text)[:EXCERPT] if line else "",
        "exit_code": worker.exit_code,
        "signal": endings.signal_name(worker.signal) if worker.signal else "",
    }
