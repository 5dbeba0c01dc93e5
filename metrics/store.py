"""Series as they are listed and drawn: the reader of points for pages and REST (`sealing` moves them, `ingest` adds
them, `rows` knows how they lie).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from metrics import chunks, coarse
from metrics.chunks import Run
from metrics.coarse import Coarse
from metrics.downsample import Buckets, bucketed
from metrics.models import MetricKey
from metrics.packed import Floats, Ints
from metrics.rows import Gap, SeriesId, Tail, column, one_moment, points_of, read_measures, read_tails, sealed_up_to
from metrics.smoothing import Smoothed, Smoothing, smooth
from metrics.sources import SDK

COARSE_COLUMNS = [one.name for one in fields(Coarse)]


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


def list_series(job_id: str) -> list[dict[str, Any]]:
    """Every series with its source, count, range, extremes and last point: the sealed by measures, the rest by its points."""
    with one_moment():
        tails = read_tails(job_id, keys=None, attempts=None, ranks=None)
        sealed = read_measures(job_id, keys=None, attempts=None, ranks=None)
        sources = dict(MetricKey.objects.filter(job_id=job_id).values_list("key", "source"))
        return [
            _summary(one, tails.get(one, Tail()), sealed.get(one, [])) | {"source": sources.get(one.key, SDK)}
            for one in sorted({*tails, *sealed})
        ]


def last_step(job_id: str, attempt: int) -> int | None:
    """The last one that this attempt reported."""
    return max((one["last_step"] for one in list_series(job_id) if one["attempt"] == attempt), default=None)


def _summary(series: SeriesId, tail: Tail, rows: list[dict[str, Any]]) -> dict[str, Any]:
    new = tail.above(sealed_up_to(rows))
    parts = rows
    if len(new):
        # chunks that new points may lie in are counted together with them, point by point
        mixed = [row for row in rows if row["last_step"] >= new.step[0]]
        lost: list[Gap] = []
        run = chunks.last_wins([*points_of(mixed, lost), new])
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
        tails = read_tails(job_id, keys=keys, attempts=attempts, ranks=ranks)
        sealed = read_measures(job_id, keys=keys, attempts=attempts, ranks=ranks)
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
    new = tail.above(sealed_up_to(rows))
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
            beside = _cut(chunks.last_wins([*points_of(parts, gaps), new]), x=x, start=start, end=end, before=before)
            if (found := _in_buckets([*rows_of, coarse.of_points(beside)], x=x, buckets=buckets)) is not None:
                group = tail.group or rows[-1]["group"]
                return SeriesPoints(series, group, total, None, found[0], *coarse.extremes(found[1]), None, gaps)
    gaps = []
    run = chunks.last_wins([*points_of(needed, gaps), new])
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
    sealed = chunks.last_wins(points_of(mixed, []))
    return len(sealed) + len(new) - len(chunks.last_wins([sealed, new]))
