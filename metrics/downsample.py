"""Many points as at most so many buckets, each with min, max, last, count and bad; nothing is sampled away (pure)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.packed import Floats, Ints

MAX_BUCKETS = 2000


@dataclass(slots=True)
class Buckets:
    """Buckets that hold at least one point. `step` and `time` are those of the last point of each."""

    step: Ints
    time: Floats
    min: Floats  # of the finite points; NaN where a bucket has none
    max: Floats
    last: Floats
    count: Ints
    bad: Ints  # points that are not finite
    ends: Ints  # of each bucket the place behind its last point

    def __len__(self) -> int:
        return len(self.step)


def bucketed(x: Ints | Floats, step: Ints, time: Floats, value: Floats, *, buckets: int) -> Buckets:
    """Put points into equally wide buckets over the range of `x`, which must be sorted and not empty."""
    low, high = float(x[0]), float(x[-1])
    edges = np.linspace(low, high, buckets + 1)[:-1] if high > low else np.array([low])
    # a step beyond 2**53 is not exact as a float: the first edge must still begin at the first point
    starts = np.searchsorted(x.astype(np.float64), edges, side="left")
    starts[0] = 0
    # reduceat takes two equal starts for a bucket of one element; and nothing begins behind the last point
    starts = np.unique(starts[starts < len(x)])
    ends = np.append(starts[1:], len(x))
    finite = np.isfinite(value)
    good = value if finite.all() else np.where(finite, value, np.nan)
    return Buckets(
        step=step[ends - 1],
        time=time[ends - 1],
        min=np.fmin.reduceat(good, starts),
        max=np.fmax.reduceat(good, starts),
        last=value[ends - 1],
        count=(ends - starts).astype(np.int64),
        bad=np.add.reduceat((~finite).astype(np.int64), starts),
        ends=ends,
    )
