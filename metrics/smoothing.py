"""Smoothing of a whole series, so that a curve keeps its shape while somebody zooms (pure).

Both kinds are one recurrence, total = decay * total + gain * value, divided by the same recurrence over ones. That ratio is
what TensorBoard calls debiased. Points that are not finite are passed over, and a series that never changes is left alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from metrics.packed import Floats, Ints

EMA, BY_DISTANCE = "ema", "distance"
MODES = (EMA, BY_DISTANCE)
MOST = 0.999  # with 1.0 every curve is flat
VIEWPORT = 1000.0  # the width that distances in x are measured in
MANY, USUAL = 200, 0.6  # from so many points on, and so much, where nobody said how much
TOO_MANY = 100_000  # points, beyond which so light a smoothing cannot be seen
BLOCK = 64


@dataclass(frozen=True, slots=True)
class Smoothing:
    """`weight` None: by the number of points."""

    weight: float | None
    mode: str = EMA

    def of(self, points: int) -> float:
        """The weight for a series of so many points."""
        if self.weight is None:
            return USUAL if MANY <= points <= TOO_MANY else 0.0
        return min(self.weight, MOST)


@dataclass(slots=True)
class Smoothed:
    """A value per point, and where the recurrence stands after the last, from where new points go on."""

    mode: str
    weight: float
    value: Floats
    total: float
    norm: float
    span: float  # the range of x that distances were measured in


def smooth(x: Ints | Floats, value: Floats, *, weight: float, mode: str = EMA, span: float | None = None) -> Smoothed:
    """`span`: the range of x of the whole series, where these are its first points only."""
    finite = np.isfinite(value)
    good = value if finite.all() else value[finite]
    if not len(good):
        return Smoothed(mode, weight, value, 0.0, 0.0, 0.0)
    if mode == EMA:
        span = 0.0
        gain = 1.0 - weight
        total = _recurrence(np.broadcast_to(weight, len(good)), gain * good)
        norm = np.ones(len(good))
        settled = min(len(good), math.ceil(-40 / math.log(weight)))  # from here on it is 1 to the last bit
        norm[:settled] = -np.expm1(np.arange(1, settled + 1) * math.log(weight))
    else:
        place = x[finite].astype(np.float64)
        span = float(x[-1] - x[0]) if span is None else span
        root = min(math.sqrt(weight), MOST)
        distance = np.diff(place, prepend=place[0]) / (span or 1.0) * VIEWPORT
        decay = root**distance
        total, norm = _recurrence(decay, good), _recurrence(decay, np.ones(len(good)))
    curve = good if (good == good[0]).all() else total / norm
    if len(good) < len(value):
        whole = value.copy()
        whole[finite] = curve
        curve = whole
    return Smoothed(mode, weight, curve, float(total[-1]), float(norm[-1]), span)


def _recurrence(decay: Floats, gain: Floats) -> Floats:
    """y[i] = decay[i] * y[i-1] + gain[i] from y[-1] = 0, many blocks at a time."""
    count = len(decay)
    blocks = -(-count // BLOCK)
    padding = (0, blocks * BLOCK - count)
    factor = np.pad(decay, padding, constant_values=1.0).reshape(blocks, BLOCK).T.copy()
    found = np.pad(gain, padding).reshape(blocks, BLOCK).T.copy()
    for row in range(1, BLOCK):
        found[row] += factor[row] * found[row - 1]
        factor[row] *= factor[row - 1]
    carried = np.empty(blocks)
    carry = 0.0
    for block, (kept, added) in enumerate(zip(factor[-1].tolist(), found[-1].tolist(), strict=True)):
        carried[block] = carry
        carry = kept * carry + added
    found += factor * carried
    whole: Floats = found.T.reshape(-1)[:count]
    return whole
