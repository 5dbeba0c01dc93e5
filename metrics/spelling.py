"""How numbers that JSON cannot carry are spelled in it (pure)."""

from __future__ import annotations

import math

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def as_json(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
