"""A chunk in few rows, stored beside its points: a chart of a whole long series needs no more, and loses no extreme (pure).

A row stands for consecutive points: where the last of them is, their least and greatest with their steps, the last value, how
many they are and how many are not finite. Rows of rows are made the same way, so buckets of a million points are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from metrics.chunks import FULL, Run
from metrics.downsample import Buckets
from metrics.packed import Floats, Ints

ROWS = 32  # of a full chunk
POINTS = FULL // ROWS  # of a row


@dataclass(slots=True)
class Coarse:
    step: Ints  # of the last point
    time: Floats
    low: Floats  # of the finite points; NaN where a row has none
    low_step: Ints
    high: Floats
    high_step: Ints
    last: Floats
    count: Ints
    bad: Ints

    def __len__(self) -> int:
        return len(self.step)

    def pack(self) -> bytes:
        return b"".join(getattr(self, one.name).tobytes() for one in fields(self))


def unpack(body: bytes) -> Coarse:
    columns = fields(Coarse)
    count = len(body) // (8 * len(columns))
    whole = {"step", "low_step", "high_step", "count", "bad"}
    return Coarse(
        **{
            one.name: np.frombuffer(
                body, dtype="<i8" if one.name in whole else "<f8", count=count, offset=8 * count * place
            )
            for place, one in enumerate(columns)
        }
    )


def of_points(run: Run) -> Coarse:
    """Each point a row of its own."""
    bad = (~np.isfinite(run.value)).astype(np.int64)
    good = np.where(bad, np.nan, run.value)
    ones = np.ones(len(run), dtype=np.int64)
    return Coarse(run.step, run.time, good, run.step, good, run.step, run.value, ones, bad)


def of_chunk(run: Run) -> Coarse:
    return _grouped(of_points(run), np.arange(0, len(run), POINTS))


def rows_in(measures: Iterable[Mapping[str, Any]]) -> int:
    """How many rows chunks of these measures have: one that is not full has fewer."""
    return sum(-(-one["count"] // POINTS) for one in measures)


def joined(pieces: Sequence[Coarse]) -> Coarse:
    return Coarse(
        **{one.name: np.concatenate([getattr(piece, one.name) for piece in pieces]) for one in fields(Coarse)}
    )


def _grouped(rows: Coarse, starts: Ints) -> Coarse:
    """Rows of rows: each from one start to the next."""
    ends = np.append(starts[1:], len(rows))
    low, high = np.fmin.reduceat(rows.low, starts), np.fmax.reduceat(rows.high, starts)
    return Coarse(
        step=rows.step[ends - 1],
        time=rows.time[ends - 1],
        low=low,
        low_step=_where(rows.low, rows.low_step, low, starts, ends),
        high=high,
        high_step=_where(rows.high, rows.high_step, high, starts, ends),
        last=rows.last[ends - 1],
        count=np.add.reduceat(rows.count, starts),
        bad=np.add.reduceat(rows.bad, starts),
    )


def _where(value: Floats, step: Ints, found: Floats, starts: Ints, ends: Ints) -> Ints:
    """The step of the first row of each group that holds what was found there."""
    holds = value == np.repeat(found, ends - starts)
    nowhere = np.iinfo(np.int64).max
    first: Ints = np.minimum.reduceat(np.where(holds, step, nowhere), starts)
    return np.where(first == nowhere, step[starts], first)


def buckets_of(rows: Coarse, x: Ints | Floats, *, buckets: int) -> Buckets:
    """As downsample.bucketed; `x` is where the rows are along an axis, sorted."""
    low, high = float(x[0]), float(x[-1])
    edges = np.linspace(low, high, buckets + 1)[:-1] if high > low else np.array([low])
    starts = np.searchsorted(x.astype(np.float64), edges, side="left")
    starts[0] = 0
    found = _grouped(rows, np.unique(starts[starts < len(x)]))
    ends = np.cumsum(found.count)
    return Buckets(found.step, found.time, found.low, found.high, found.last, found.count, found.bad, ends)


def extremes(rows: Coarse) -> tuple[tuple[int, float] | None, tuple[int, float] | None]:
    """Step and value of the least and of the greatest."""
    if not np.isfinite(rows.low).any():
        return None, None
    low, high = int(np.nanargmin(rows.low)), int(np.nanargmax(rows.high))
    return (int(rows.low_step[low]), float(rows.low[low])), (int(rows.high_step[high]), float(rows.high[high]))
