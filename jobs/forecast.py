"""Will it start now? The planner asked about a job that does not exist yet (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from jobs.queue import Snapshot, Waiting, plan, why_never
from jobs.states import Reason


class Verdict(StrEnum):
    FITS_NOW = "fits_now"
    QUEUED = "queued"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Forecast:
    """`ahead` counts the waiting jobs before it; `nodes` are where it would go if it fits now."""

    verdict: Verdict
    text: str
    ahead: int = 0
    nodes: tuple[str, ...] = ()
    code: str = ""
    alternatives: Sequence[str] = ()


def forecast(snapshot: Snapshot, job: Waiting, now: datetime) -> Forecast:
    """What the next pass of the dispatcher would say about this job if it were submitted now."""
    if never := why_never(job.request, snapshot.nodes, snapshot.namespaces.get(job.namespace)):
        return Forecast(Verdict.NEVER, never, code=Reason.NEVER_FITS, alternatives=_smaller(snapshot, job))
    # with the code counted as ready: fetching it takes seconds and is not a matter of room
    asked = replace(job, code_ready=True)
    decided = plan(replace(snapshot, waiting=[*snapshot.waiting, asked]), now)
    for admission in decided.admissions:
        if admission.job_id == job.id:
            names = ", ".join(dict.fromkeys(admission.nodes))
            return Forecast(Verdict.FITS_NOW, f"Fits now, on {names}.", nodes=admission.nodes)
    wait = next(wait for wait in decided.waits if wait.job_id == job.id)
    ahead = wait.position - 1
    behind = f"Queued behind {ahead} job{'s' * (ahead != 1)}. " if ahead else "Queued. "
    return Forecast(Verdict.QUEUED, behind + wait.text, ahead=ahead, code=wait.code)


def _smaller(snapshot: Snapshot, job: Waiting) -> list[str]:
    """Shapes near the asked one that some state of the cluster can run."""
    found = []
    limit = snapshot.namespaces.get(job.namespace)
    most = max((node.gpus for node in snapshot.nodes if node.ready), default=0)
    asked = job.request
    shapes = []
    if asked.gpus > most > 0 and asked.gpus % most == 0:
        shapes.append((asked.workers * (asked.gpus // most), most))
    shapes += [(asked.workers, fewer) for fewer in range(min(asked.gpus - 1, most), 0, -1)]
    shapes += [(fewer, asked.gpus) for fewer in range(asked.workers - 1, 0, -1)]
    for workers, gpus in shapes[:4096]:
        if not why_never(replace(asked, workers=workers, gpus=gpus), snapshot.nodes, limit):
            found.append(f"{workers} worker{'s' * (workers != 1)} × {gpus} GPU{'s' * (gpus != 1)}")
            if len(found) == 3:
                break
    return found
