"""One series of each of many jobs, as a few values in order: what a list draws beside each row.

It reads what `store` reads, for all jobs at once: a constant number of queries, and of a long series only the measures of its
chunks. It is a sketch, but no spike and no hole is lost: every stretch keeps its lowest, its highest and whatever is not finite.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from django.db.models import F

from metrics import chunks
from metrics.chunks import EMPTY, Run
from metrics.models import Chunk, PointBatch
from metrics.packed import unpack
from metrics.rows import column, one_moment

logger = logging.getLogger(__name__)

BUCKETS = 24  # each becomes at most two values
WHOLE = 4  # chunks whose points are read; of more, the measures are fine enough
UNSEALED = 2000  # newest batches of a job, of all its ranks: what is older has been sealed, or waits for it
MEASURES = "id job_id attempt key first_step last_step count bad min max last seq".split()


@dataclass(slots=True)
class Sketch:
    key: str
    values: list[float]  # not finite ones among them
    first_step: int
    last_step: int


@dataclass(slots=True)
class _Found:
    sealed: list[dict] = field(default_factory=list)
    tail: list[tuple[int, int, Run]] = field(default_factory=list)  # attempt, seq, points


def sketches(wanted: Mapping[str, str]) -> dict[str, Sketch]:
    """For each job the series of its key on rank 0; where attempts overlap, the newest wins. Jobs without points are left out."""
    found: dict[str, _Found] = defaultdict(_Found)
    with one_moment():
        _read_tails(wanted, found)  # unsealed rows first, as everywhere: a seal in between loses nothing
        rows = Chunk.objects.filter(job_id__in=list(wanted), key__in=set(wanted.values()), rank=0)
        for row in rows.order_by("job_id", "attempt", "first_step").values(*MEASURES):
            if wanted[row["job_id"]] == row["key"]:
                found[row["job_id"]].sealed.append(row)
        short = [row for one in found.values() if len(one.sealed) <= WHOLE for row in one.sealed]
        bodies = column("body", [row["id"] for row in short])
    drawn = {job_id: _draw(wanted[job_id], one, bodies) for job_id, one in found.items()}
    return {job_id: sketch for job_id, sketch in drawn.items() if sketch is not None}


def _read_tails(wanted: Mapping[str, str], found: dict[str, _Found]) -> None:
    newest = F("job__feed__points_seq") - UNSEALED
    rows = PointBatch.objects.filter(job_id__in=list(wanted), rank=0, body__isnull=False, seq__gt=newest)
    for job_id, attempt, seq, body in rows.order_by("seq").values_list("job_id", "attempt", "seq", "body"):
        for one in unpack(body or b""):
            if one.key == wanted[job_id]:
                found[job_id].tail.append((attempt, seq, Run(one.step, one.time, one.value)))


def _draw(key: str, one: _Found, bodies: Mapping[int, bytes | None]) -> Sketch | None:
    attempts = sorted(
        {row["attempt"] for row in one.sealed} | {attempt for attempt, _seq, _run in one.tail}, reverse=True
    )
    steps: list[np.ndarray] = []
    values: list[np.ndarray] = []
    before: int | None = None  # an older attempt ends where a newer one begins
    for attempt in attempts:
        rows = [row for row in one.sealed if row["attempt"] == attempt]
        sealed_up_to = max((row["seq"] for row in rows), default=0)
        new = chunks.last_wins([run for number, seq, run in one.tail if number == attempt and seq > sealed_up_to])
        run = chunks.last_wins([*(_points(row, bodies) for row in rows), new])
        if before is not None:
            run = run.where(run.step < before)
        if len(run):
            before = int(run.step[0])
            steps.insert(0, run.step)
            values.insert(0, run.value)
    if not steps:
        return None
    step, value = np.concatenate(steps), np.concatenate(values)
    return Sketch(key, _thinned(value), int(step[0]), int(step[-1]))


def _points(row: dict, bodies: Mapping[int, bytes | None]) -> Run:
    """Of a chunk whose body was read; by its measures where it was not, or is damaged."""
    if body := bodies.get(row["id"]):
        try:
            return chunks.decompress(body, row["count"])
        except chunks.Damaged as error:
            logger.error("Chunk %d is drawn by its measures: %s", row["id"], error)
    return _outline(row)


def _outline(row: dict) -> Run:
    """A chunk by its measures: its lowest and highest, its last, and a hole if it has one."""
    first, last = row["first_step"], row["last_step"]
    points = [value for value in (row["max"], row["min"]) if value is not None] + [row["last"]]
    if row["bad"]:
        points.insert(1, float("nan"))
    if last - first < len(points):
        points = points[-1:]
    places = np.linspace(first, last, len(points)).astype(np.int64) if len(points) > 1 else np.array([last])
    return Run(places, np.zeros(len(points)), np.array(points, dtype=np.float64)) if points else EMPTY


def _thinned(value: np.ndarray) -> list[float]:
    """Few values in the order of the many: of each stretch its lowest and highest as they came, and its first hole."""
    if len(value) <= 2 * BUCKETS:
        return [float(one) for one in value]
    kept: list[int] = [0]
    for part in np.array_split(np.arange(1, len(value) - 1), BUCKETS):
        finite = part[np.isfinite(value[part])]
        picks = {int(finite[value[finite].argmin()]), int(finite[value[finite].argmax()])} if len(finite) else set()
        if len(finite) < len(part):
            picks.add(int(part[~np.isfinite(value[part])][0]))
        kept += sorted(picks)
    kept.append(len(value) - 1)
    return [float(value[at]) for at in kept]
