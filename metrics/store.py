"""The only reader of points (`sealing` moves them, `ingest` adds them). DESIGN 11.13 says how they lie on disk.

Readers take unsealed rows first and chunks second: a seal that commits in between moves points from where they have looked
to where they still look. A row whose number is not above what its series' chunks hold has been sealed meanwhile and is left
out, so an older row never covers a newer chunk.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import psycopg
from django.db import connection, transaction
from django.utils.translation import gettext as _
from psycopg.sql import SQL, Identifier

from jobs.models import JobFeed
from metrics import chunks, coarse
from metrics.chunks import Run
from metrics.coarse import Coarse
from metrics.downsample import Buckets, bucketed
from metrics.models import Chunk, MetricKey, PointBatch
from metrics.packed import Floats, Ints, Series, unpack
from metrics.smoothing import Smoothed, Smoothing, smooth
from metrics.sources import SDK

CHUNK_MEASURES = (
    "id attempt rank key group first_step last_step first_time last_time count bad min max last seq open".split()
)

logger = logging.getLogger(__name__)
COARSE_COLUMNS = [one.name for one in fields(Coarse)]


class SeriesId(NamedTuple):
    key: str
    rank: int
    attempt: int


@dataclass(slots=True)
class Tail:
    """Unsealed points of one series, in the order of their arrival."""

    group: str = ""
    pieces: list[tuple[int, Run]] = field(default_factory=list)

    def above(self, seq: int) -> Run:
        return chunks.last_wins([run for number, run in self.pieces if number > seq])


@dataclass(frozen=True, slots=True)
class Gap:
    """Points that were sealed and cannot be read any more."""

    first_step: int
    last_step: int
    count: int

    @property
    def text(self) -> str:
        return _("Steps %(first)d to %(last)d, %(count)d points, are damaged in the database.") % {
            "first": self.first_step,
            "last": self.last_step,
            "count": self.count,
        }


@dataclass(slots=True)
class SeriesPoints:
    """What a chart gets of one series: every point of the range, or buckets of them."""

    id: SeriesId
    group: str
    total: int  # points of the series, whatever the range
    run: Run | None
    buckets: Buckets | None
    lowest: tuple[int, float] | None  # step and value, of the finite points of the range
    highest: tuple[int, float] | None
    smoothed: Smoothed | None  # a value per point or bucket
    gaps: list[Gap] = field(default_factory=list)  # of what was read


@contextmanager
def one_moment() -> Iterator[None]:
    """All reads inside see the same moment. Inside somebody's transaction it is their isolation that counts."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


# ---- reading -------------------------------------------------------------------------------------------------------


def _tails(
    job_id: str, *, keys: Collection[str] | None, attempts: Collection[int] | None, ranks: Collection[int] | None
) -> dict[SeriesId, Tail]:
    rows = PointBatch.objects.filter(job_id=job_id, body__isnull=False)
    if attempts is not None:
        rows = rows.filter(attempt__in=attempts)
    if ranks is not None:
        rows = rows.filter(rank__in=ranks)
    found: dict[SeriesId, Tail] = defaultdict(Tail)
    for attempt, rank, seq, body in rows.order_by("seq").values_list("attempt", "rank", "seq", "body"):
        assert body is not None  # the query leaves sealed rows out
        for one in unpack(body):
            if keys is None or one.key in keys:
                tail = found[SeriesId(one.key, rank, attempt)]
                tail.group = one.group
                tail.pieces.append((seq, Run(one.step, one.time, one.value)))
    return found


def _chunks(
    job_id: str, *, keys: Collection[str] | None, attempts: Collection[int] | None, ranks: Collection[int] | None
) -> dict[SeriesId, list[dict[str, Any]]]:
    """The measures of chunks, without their points, in order of step."""
    rows = Chunk.objects.filter(job_id=job_id)
    if keys is not None:
        rows = rows.filter(key__in=keys)
    if attempts is not None:
        rows = rows.filter(attempt__in=attempts)
    if ranks is not None:
        rows = rows.filter(rank__in=ranks)
    found: dict[SeriesId, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.order_by("key", "attempt", "rank", "first_step").values(*CHUNK_MEASURES):
        found[SeriesId(row["key"], row["rank"], row["attempt"])].append(row)
    return found


def _points_of(rows: Sequence[dict[str, Any]], gaps: list[Gap]) -> list[Run]:
    """The points of chunks; what cannot be read is added to the gaps instead."""
    bodies = column("body", [row["id"] for row in rows])
    found = []
    for row in rows:
        try:
            found.append(chunks.decompress(bodies[row["id"]] or b"", row["count"]))
        except chunks.Damaged as error:
            gaps.append(Gap(row["first_step"], row["last_step"], row["count"]))
            logger.error("Chunk %d, %s: %s", row["id"], gaps[-1].text, error)
    return found


def column(name: str, ids: Sequence[int]) -> dict[int, bytes | None]:
    """The body or the coarse rows of chunks, by their ids."""
    if not ids:
        return {}
    with connection.cursor() as cursor:
        # as bytes over the wire, not as twice as many hexadecimal digits: a long series is many megabytes
        binary = psycopg.Cursor(cursor.connection)
        query = SQL("SELECT id, {} FROM metrics_chunk WHERE id = ANY(%s)").format(Identifier(name))
        binary.execute(query, [list(ids)], binary=True)
        return dict(binary.fetchall())


def _sealed_up_to(rows: Sequence[dict[str, Any]]) -> int:
    return max((row["seq"] for row in rows), default=0)


def list_series(job_id: str) -> list[dict[str, Any]]:
    """Every series with its source, count, range, extremes and last point: the sealed by measures, the rest by its points."""
    with one_moment():
        tails = _tails(job_id, keys=None, attempts=None, ranks=None)
        sealed = _chunks(job_id, keys=None, attempts=None, ranks=None)
        sources = dict(MetricKey.objects.filter(job_id=job_id).values_list("key", "source"))
        return [
            _summary(one, tails.get(one, Tail()), sealed.get(one, [])) | {"source": sources.get(one.key, SDK)}
            for one in sorted({*tails, *sealed})
        ]


def _summary(series: SeriesId, tail: Tail, rows: list[dict[str, Any]]) -> dict[str, Any]:
    new = tail.above(_sealed_up_to(rows))
    parts = rows
    if len(new):
        # chunks that new points may lie in are counted together with them, point by point
        mixed = [row for row in rows if row["last_step"] >= new.step[0]]
        lost: list[Gap] = []
        run = chunks.last_wins([*_points_of(mixed, lost), new])
        parts = [row for row in rows if row["last_step"] < new.step[0] or _is_lost(row, lost)]
        parts = [*parts, chunks.measures(run) | {"group": tail.group}]
    newest = parts[-1]
    return {
        "key": series.key,
        "group": newest["group"],
        "rank": series.rank,
        "attempt": series.attempt,
        "count": sum(part["count"] for part in parts),
        "bad": sum(part["bad"] for part in parts),
        "first_step": parts[0]["first_step"],
        "last_step": newest["last_step"],
        "first_time": min(part["first_time"] for part in parts),
        "last_time": max(part["last_time"] for part in parts),
        "min": min((part["min"] for part in parts if part["min"] is not None), default=None),
        "max": max((part["max"] for part in parts if part["max"] is not None), default=None),
        "last": {"step": newest["last_step"], "value": newest["last"]},
    }


def _is_lost(row: dict[str, Any], lost: Sequence[Gap]) -> bool:
    return Gap(row["first_step"], row["last_step"], row["count"]) in lost


def read_series(
    job_id: str,
    *,
    keys: Collection[str],
    x: str = "step",
    start: float | None = None,
    end: float | None = None,
    buckets: int = 0,
    attempts: Collection[int] | None = None,
    ranks: Collection[int] | None = None,
    all_attempts: bool = False,
    smoothing: Smoothing | None = None,
) -> list[SeriesPoints]:
    """Points of the series of these keys, each in order of `x`.

    What is smoothed is smoothed from the first point of the series on, whatever the range.

    Where attempts overlap the newest wins: an older one ends before the first step of a newer one, unless attempts are asked
    for by number or `all_attempts` is set.
    """
    with one_moment():
        tails = _tails(job_id, keys=keys, attempts=attempts, ranks=ranks)
        sealed = _chunks(job_id, keys=keys, attempts=attempts, ranks=ranks)
        ends = {} if all_attempts or attempts is not None else _ends(tails, sealed)
        return [
            _read_one(
                one,
                tails.get(one, Tail()),
                sealed.get(one, []),
                x=x,
                start=start,
                end=end,
                buckets=buckets,
                before=ends.get(one),
                smoothing=smoothing,
            )
            for one in sorted({*tails, *sealed})
        ]


def _ends(tails: dict[SeriesId, Tail], sealed: dict[SeriesId, list[dict[str, Any]]]) -> dict[SeriesId, int]:
    """For each series with a newer attempt: the first step that belongs to a newer one."""
    first: dict[SeriesId, int] = {}
    for one in {*tails, *sealed}:
        steps = [row["first_step"] for row in sealed.get(one, [])[:1]]
        steps += [int(run.step.min()) for _seq, run in tails.get(one, Tail()).pieces]
        first[one] = min(steps)
    return {
        one: min(newer)
        for one in first
        if (newer := [step for other, step in first.items() if other[:2] == one[:2] and other.attempt > one.attempt])
    }


def _read_one(
    series: SeriesId,
    tail: Tail,
    rows: list[dict[str, Any]],
    *,
    x: str,
    start: float | None,
    end: float | None,
    buckets: int,
    before: int | None,
    smoothing: Smoothing | None,
) -> SeriesPoints:
    new = tail.above(_sealed_up_to(rows))
    total = sum(row["count"] for row in rows) + len(new) - _replaced(new, rows)
    weight = smoothing.of(total) if smoothing else 0.0
    first, last = ("first_step", "last_step") if x == "step" else ("first_time", "last_time")
    needed = [
        row
        for row in rows
        if (start is None or weight or row[last] >= start)
        and (end is None or row[first] <= end)
        and (before is None or row["first_step"] < before)
    ]
    if buckets and not weight:
        whole = [row for row in needed if _is_whole(row, first, last, start=start, end=end, before=before, new=new)]
        if coarse.rows_in(whole) >= buckets and (rows_of := _rows_of(whole)) is not None:
            ids = {row["id"] for row in whole}
            parts = [row for row in needed if row["id"] not in ids]
            gaps: list[Gap] = []
            beside = _cut(chunks.last_wins([*_points_of(parts, gaps), new]), x=x, start=start, end=end, before=before)
            if (found := _in_buckets([*rows_of, coarse.of_points(beside)], x=x, buckets=buckets)) is not None:
                group = tail.group or rows[-1]["group"]
                return SeriesPoints(series, group, total, None, found[0], *coarse.extremes(found[1]), None, gaps)
    gaps = []
    run = chunks.last_wins([*_points_of(needed, gaps), new])
    if before is not None:
        run = run.where(run.step < before)
    axis = run.step if x == "step" else run.time
    if x == "time" and len(axis) > 1 and (axis[1:] < axis[:-1]).any():
        run = run.where(axis.argsort(kind="stable"))
        axis = run.time
    smoothed = None
    if weight and smoothing and len(run):
        span = _span(rows, new, first, last, x=x)
        smoothed = smooth(axis, run.value, weight=weight, mode=smoothing.mode, span=span)
    low = 0 if start is None else int(axis.searchsorted(start, side="left"))
    high = len(axis) if end is None else int(axis.searchsorted(end, side="right"))
    run = run.part(low, high)
    if smoothed is not None:
        smoothed.value = smoothed.value[low:high]
    group = tail.group or (rows[-1]["group"] if rows else "")
    lowest, highest = _extremes(run.step, run.value)
    if buckets and len(run) > buckets:
        axis = run.step if x == "step" else run.time
        in_buckets = bucketed(axis, run.step, run.time, run.value, buckets=buckets)
        if smoothed is not None:
            smoothed.value = smoothed.value[in_buckets.ends - 1]
        return SeriesPoints(series, group, total, None, in_buckets, lowest, highest, smoothed, gaps)
    return SeriesPoints(series, group, total, run, None, lowest, highest, smoothed, gaps)


def _is_whole(
    row: dict[str, Any],
    first: str,
    last: str,
    *,
    start: float | None,
    end: float | None,
    before: int | None,
    new: Run,
) -> bool:
    """All points of this chunk are asked for, and no new ones lie between them."""
    return (
        (start is None or row[first] >= start)
        and (end is None or row[last] <= end)
        and (before is None or row["last_step"] < before)
        and (not len(new) or row["last_step"] < new.step[0])
    )


def _span(rows: Sequence[dict[str, Any]], new: Run, first: str, last: str, *, x: str) -> float:
    """The range of x of a whole series, whatever part of it is read."""
    lows, highs = [row[first] for row in rows], [row[last] for row in rows]
    if len(new):
        axis = new.step if x == "step" else new.time
        lows.append(axis.min())
        highs.append(axis.max())
    return float(max(highs) - min(lows))


def _rows_of(rows: Sequence[dict[str, Any]]) -> list[Coarse] | None:
    """The coarse rows of chunks; None where one has none yet."""
    found = column("coarse", [row["id"] for row in rows])
    if any(body is None for body in found.values()):
        return None
    return [coarse.unpack(body) for row in rows if (body := found[row["id"]]) is not None]


def _cut(run: Run, *, x: str, start: float | None, end: float | None, before: int | None) -> Run:
    axis = run.step if x == "step" else run.time
    chosen = np.ones(len(run), dtype=bool)
    if start is not None:
        chosen &= axis >= start
    if end is not None:
        chosen &= axis <= end
    if before is not None:
        chosen &= run.step < before
    return run.where(chosen)


def _in_buckets(pieces: Sequence[Coarse], *, x: str, buckets: int) -> tuple[Buckets, Coarse] | None:
    """Buckets of rows; None where time goes back from one row to the next: then every point is looked at."""
    rows = coarse.joined(pieces)
    order = rows.step.argsort(kind="stable")
    rows = Coarse(**{name: getattr(rows, name)[order] for name in COARSE_COLUMNS})
    axis = rows.step if x == "step" else rows.time
    if len(axis) > 1 and (axis[1:] < axis[:-1]).any():
        return None
    return coarse.buckets_of(rows, axis, buckets=buckets), rows


def _extremes(step: Ints, value: Floats) -> tuple[tuple[int, float] | None, tuple[int, float] | None]:
    finite = np.isfinite(value)
    if not finite.any():
        return None, None
    good = finite.all()
    low = int((value if good else np.where(finite, value, np.inf)).argmin())
    high = int((value if good else np.where(finite, value, -np.inf)).argmax())
    return (int(step[low]), float(value[low])), (int(step[high]), float(value[high]))


def _replaced(new: Run, rows: Sequence[dict[str, Any]]) -> int:
    """How many of the new points take the place of sealed ones."""
    mixed = [row for row in rows if row["last_step"] >= new.step[0]] if len(new) else []
    if not mixed:
        return 0
    sealed = chunks.last_wins(_points_of(mixed, []))
    return len(sealed) + len(new) - len(chunks.last_wins([sealed, new]))


PAGE = 16  # chunks
BEFORE_ALL = -1  # a step is not negative


@dataclass(slots=True)
class Page:
    """Points of some series, whole series by whole series; the last one may go on."""

    runs: list[tuple[SeriesId, Run, list[Gap]]] = field(default_factory=list)
    goes_on: bool = False
    upto: int = BEFORE_ALL  # the step up to which the last one has been read, if it goes on


def page(job_id: str, wanted: Sequence[SeriesId], *, after: int) -> Page:
    """The next points of these series, each in order: the first one above the step `after`, the others from their start.

    Each page is a moment of its own, so that a download of any length holds neither memory nor a transaction; and unsealed
    bodies, which hold points of all series, are read once for all of a page.
    """
    keys, ranks, attempts = (set(column) for column in zip(*wanted, strict=True))
    found = Page()
    room = PAGE * chunks.FULL
    with one_moment():
        tails = _tails(job_id, keys=keys, attempts=attempts, ranks=ranks)
        sealed = _chunks(job_id, keys=keys, attempts=attempts, ranks=ranks)
        for one in wanted:
            rows = sealed.get(one, [])
            new = tails.get(one, Tail()).above(_sealed_up_to(rows))
            ahead = [row for row in rows if row["last_step"] > after]
            now = ahead[: max(1, room // chunks.FULL)]
            found.upto = max((row["last_step"] for row in now), default=BEFORE_ALL)
            found.goes_on = any(row["last_step"] > found.upto for row in ahead)
            if found.goes_on:
                now = [row for row in ahead if row["first_step"] <= found.upto]  # beside a damaged one others may lie
            gaps: list[Gap] = []
            run = chunks.last_wins([*_points_of(now, gaps), new])
            run = run.where((run.step > after) & (run.step <= found.upto) if found.goes_on else run.step > after)
            found.runs.append((one, run, gaps))
            room -= len(run)
            if room <= 0 or found.goes_on:
                break
            after = BEFORE_ALL
    return found


# ---- following -----------------------------------------------------------------------------------------------------


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
