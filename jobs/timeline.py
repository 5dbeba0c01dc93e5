"""The phases of a job's life with their lengths, from its events: their sum is its whole time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from jobs.models import Job
from jobs.states import FINAL


@dataclass(frozen=True, slots=True)
class Phase:
    status: str
    attempt: int
    started_at: datetime
    seconds: float
    reason: str
    is_open: bool


def phases(job: Job) -> list[Phase]:
    """Oldest first; the last one is open while the job is not over."""
    moves = [event for event in job.events.all() if event.kind == "move" and event.new]
    found = []
    for index, event in enumerate(moves):
        if event.new in FINAL:
            break
        until = moves[index + 1].at if index + 1 < len(moves) else None
        seconds = ((until or timezone.now()) - event.at).total_seconds()
        found.append(Phase(event.new, event.attempt, event.at, max(0.0, seconds), event.reason, until is None))
    return found
