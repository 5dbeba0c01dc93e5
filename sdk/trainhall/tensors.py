"""What a tensor holds: its histogram, mean, deviation and norm, whoever made it.

numpy, torch and the rest are never imported here: whoever hands us an array has them loaded already.
"""

from __future__ import annotations

import math
import sys
from typing import Any, List, NamedTuple, Optional

BINS = 64


class Picture(NamedTuple):
    """Of the finite values; `edges` and `counts` are empty where there is none."""

    edges: List[float]
    counts: List[int]
    nan: int
    inf: int
    mean: float
    std: float
    norm: float


def picture(values: Any) -> Optional[Picture]:
    """The picture of an array, a tensor or (nested) lists of numbers; None of an empty one."""
    if _is_torch(values):
        return _torch_picture(values)
    numpy = sys.modules.get("numpy")
    if numpy is not None and not isinstance(values, (list, tuple)):
        return _numpy_picture(numpy, values)
    return _plain_picture(list(_flat(values)))


def to_number(value: Any) -> float:
    """A float from anything that holds one number: a tensor of one element, a 0-d array, a numeric string."""
    item = getattr(value, "item", None)
    return float(item()) if callable(item) else float(value)


def _is_torch(values: Any) -> bool:
    return type(values).__module__.partition(".")[0] == "torch" and hasattr(values, "detach")


def _torch_picture(tensor: Any) -> Optional[Picture]:
    """On the tensor's own device; only the counts and a few numbers leave it."""
    flat = tensor.detach().reshape(-1).float()
    total = flat.numel()
    if not total:
        return None
    finite = flat[flat.isfinite()]
    count = finite.numel()
    nan = int(flat.isnan().sum())
    if not count:
        return _nothing_finite(nan, total)
    low, high = _range(float(finite.min()), float(finite.max()))
    counts = [int(number) for number in finite.histc(BINS, low, high).tolist()]
    if sum(counts) != count:  # histc sums in float32, which ends at 2**24, and leaves out what rounding put outside
        counts = [int(number) for number in finite.cpu().double().histc(BINS, low, high).tolist()]
        counts[-1] += count - sum(counts)
    wide = finite.double() if finite.device.type == "cpu" else finite
    mean = float(wide.mean())
    std = float(((wide - mean) ** 2).mean() ** 0.5)
    return Picture(_edges(low, high), counts, nan, total - count - nan, mean, std, float(wide.norm()))


def _numpy_picture(numpy: Any, values: Any) -> Optional[Picture]:
    flat = numpy.asarray(values).reshape(-1)
    if flat.dtype.kind not in "biuf":
        flat = flat.astype(numpy.float64)
    if not flat.size:
        return None
    finite = flat[numpy.isfinite(flat)].astype(numpy.float64, copy=False)
    nan = int(numpy.isnan(flat).sum()) if flat.dtype.kind == "f" else 0
    if not finite.size:
        return _nothing_finite(nan, flat.size)
    low, high = _range(float(finite.min()), float(finite.max()))
    counts, _ = numpy.histogram(finite, bins=BINS, range=(low, high))
    inf = int(flat.size - finite.size) - nan
    norm = float(numpy.sqrt(numpy.dot(finite, finite)))
    return Picture(_edges(low, high), counts.tolist(), nan, inf, float(finite.mean()), float(finite.std()), norm)


def _plain_picture(flat: List[float]) -> Optional[Picture]:
    if not flat:
        return None
    finite = [value for value in flat if math.isfinite(value)]
    nan = sum(1 for value in flat if value != value)
    if not finite:
        return _nothing_finite(nan, len(flat))
    low, high = _range(min(finite), max(finite))
    counts = [0] * BINS
    for value in finite:
        counts[min(BINS - 1, int((value - low) / (high - low) * BINS))] += 1
    mean = math.fsum(finite) / len(finite)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in finite) / len(finite))
    norm = math.sqrt(math.fsum(value * value for value in finite))
    return Picture(_edges(low, high), counts, nan, len(flat) - len(finite) - nan, mean, std, norm)


def _nothing_finite(nan: int, total: int) -> Picture:
    return Picture([], [], nan, total - nan, math.nan, math.nan, math.nan)


def _range(low: float, high: float) -> "tuple[float, float]":
    """All values equal: a bin around them, as numpy does it."""
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _edges(low: float, high: float) -> List[float]:
    width = (high - low) / BINS
    return [low + width * index for index in range(BINS)] + [high]


def _flat(values: Any) -> Any:
    try:
        parts = iter(values)
    except TypeError:
        yield float(values)
        return
    for part in parts:
        for value in _flat(part):
            yield value
