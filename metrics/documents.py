"""Series as they go over the wire (DESIGN 12): one shape for REST, websocket and page. Not finite values are words."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.packed import Floats, Series
from metrics.rows import Gap, SeriesId
from metrics.spelling import as_json
from metrics.store import SeriesPoints


def numbers(column: Floats) -> list[float | str]:
    values: list[float | str] = column.tolist()
    if not np.isfinite(column).all():
        for index in np.flatnonzero(~np.isfinite(column)).tolist():
            values[index] = as_json(float(column[index]))
    return values


def summary(one: dict[str, Any]) -> dict[str, Any]:
    """A series without its points, from store.list_series."""
    return {**one, "last": {"step": one["last"]["step"], "value": as_json(one["last"]["value"])}}


def _extreme(found: tuple[int, float] | None) -> dict[str, Any] | None:
    return None if found is None else {"step": found[0], "value": found[1]}


def _smooth(one: SeriesPoints) -> dict[str, Any]:
    """The curve, and what a page needs to go on with it: total, norm and span as metrics.smoothing names them."""
    if (found := one.smoothed) is None:
        return {}
    return {
        "smooth": {
            "mode": found.mode,
            "weight": found.weight,
            "value": numbers(found.value),
            "total": as_json(found.total),
            "norm": found.norm,
            "span": found.span,
        }
    }


def gap_document(gap: Gap) -> dict[str, Any]:
    return {"first_step": gap.first_step, "last_step": gap.last_step, "count": gap.count, "text": gap.text}


def _named(one: SeriesId, group: str) -> dict[str, Any]:
    return {"key": one.key, "group": group, "rank": one.rank, "attempt": one.attempt}


def series_document(one: SeriesPoints) -> dict[str, Any]:
    """A series with its points, or with buckets of them; `count` is the number of points, or of those in each bucket."""
    named = _named(one.id, one.group) | {
        "total": one.total,
        "lowest": _extreme(one.lowest),
        "highest": _extreme(one.highest),
        **_smooth(one),
        **({"gaps": [gap_document(gap) for gap in one.gaps]} if one.gaps else {}),
    }
    if one.buckets is not None:
        return named | {
            "step": one.buckets.step.tolist(),
            "time": one.buckets.time.tolist(),
            "min": numbers(one.buckets.min),
            "max": numbers(one.buckets.max),
            "last": numbers(one.buckets.last),
            "count": one.buckets.count.tolist(),
            "bad": one.buckets.bad.tolist(),
        }
    assert one.run is not None
    return named | {
        "step": one.run.step.tolist(),
        "time": one.run.time.tolist(),
        "value": numbers(one.run.value),
    }


def arrived(one: Series, *, rank: int, attempt: int) -> dict[str, Any]:
    """Points of one batch, as they were sent."""
    return _named(SeriesId(one.key, rank, attempt), one.group) | {
        "step": one.step.tolist(),
        "time": one.time.tolist(),
        "value": numbers(one.value),
    }
