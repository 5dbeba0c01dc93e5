"""Batches of points as they arrived, after a number: what followers are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs.models import JobFeed
from metrics.models import PointBatch
from metrics.packed import Series, unpack
from metrics.rows import one_moment


@dataclass(slots=True)
class Arrival:
    """One batch as it arrived."""

    seq: int
    attempt: int
    rank: int
    series: list[Series]


def since(job_id: str, seq: int) -> tuple[int, list[Arrival] | None, dict[str, Any]]:
    """Where the points of a job stand, what arrived after `seq`, and the progress.

    The list is None where some of it has been sealed meanwhile (or `seq` is not of this database): take a snapshot.
    """
    with one_moment():
        now, progress = position(job_id)
        if seq > now:
            return now, None, progress
        rows = PointBatch.objects.filter(job_id=job_id, body__isnull=False, seq__gt=seq, seq__lte=now)
        arrivals = [
            Arrival(number, attempt, rank, list(unpack(body or b"")))
            for number, attempt, rank, body in rows.order_by("seq").values_list("seq", "attempt", "rank", "body")
        ]
    return now, arrivals if len(arrivals) == now - seq else None, progress


def position(job_id: str) -> tuple[int, dict[str, Any]]:
    """The number of the last batch of a job, and its progress."""
    found = JobFeed.objects.filter(pk=job_id).values_list("points_seq", "progress").first()
    return found or (0, {})
