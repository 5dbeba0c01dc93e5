"""A request that is not well formed somewhere, judged point by point: one bad point costs itself and not its batch (pure)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metrics.batches import (
    LAST_STEP,
    LAST_TIME,
    MAX_BINS,
    MAX_POINTS,
    Batch,
    Distribution,
    too_large,
    why_not_a_name,
)
from metrics.packed import Floats, Series
from metrics.spelling import WORDS


def check_size(points: int) -> None:
    if points > MAX_POINTS:
        raise too_large(f"A batch has at most {MAX_POINTS:,} points; this one has {points:,}.")


def is_count(number: Any, most: int) -> bool:
    return type(number) is int and 0 <= number <= most


def group_of(key: Any) -> str:
    head, slash, _rest = key.partition("/") if isinstance(key, str) else ("", "", "")
    return head if slash else ""


def name_is_good(batch: Batch, key: Any, group: Any, points: int) -> bool:
    if why := why_not_a_name(key) or ("must not be empty" if not key else ""):
        batch.refusals.add(key, "bad_key", f"key {why}", points=points)
        return False
    if why := why_not_a_name(group):
        batch.refusals.add(key, "bad_group", f"group {why}", points=points)
        return False
    return True


def refuse_surplus(batch: Batch, key: str, steps: list[Any], values: list[Any], count: int) -> None:
    for index in range(count, max(len(steps), len(values))):
        missing = "value" if index < len(steps) else "step"
        step = steps[index] if index < len(steps) else None
        batch.refusals.add(key, "incomplete", f"the point has no {missing}", step=step, index=index)


def refuse_time(batch: Batch, key: str, step: int, index: int) -> None:
    batch.refusals.add(key, "bad_time", "time must be seconds since 1970, before year 10000", step=step, index=index)


def judge_series(batch: Batch, one: Any, now: float) -> None:
    if not isinstance(one, dict):
        batch.refusals.add(None, "bad_series", "a series is an object with key, step and value")
        return
    key: Any = one.get("key")
    steps, values, times = one.get("step"), one.get("value"), one.get("time")
    group = one["group"] if one.get("group") is not None else group_of(key)
    if not (isinstance(steps, list) and isinstance(values, list) and (times is None or isinstance(times, list))):
        batch.refusals.add(key, "bad_series", "step, value and time must be lists of the same length")
        return
    if not name_is_good(batch, key, group, max(len(steps), len(values))):
        return
    count = min(len(steps), len(values))
    refuse_surplus(batch, key, steps, values, count)
    kept: list[tuple[int, float, float]] = []
    for index in range(count):
        step, value = _step(steps[index]), _value(values[index])
        time = _time(times[index] if times is not None and index < len(times) else None, now)
        if step is None:
            message = f"step must be a whole number from 0 to {LAST_STEP}"
            batch.refusals.add(key, "bad_step", message, step=steps[index], index=index)
        elif value is None:
            message = 'value must be a number, "NaN", "Infinity" or "-Infinity"'
            batch.refusals.add(key, "bad_value", message, step=step, index=index)
        elif time is None:
            refuse_time(batch, key, step, index)
        else:
            kept.append((step, time, value))
    if kept:
        step_column, time_column, value_column = zip(*kept, strict=True)
        batch.series.append(
            Series(
                key,
                group,
                np.array(step_column, dtype=np.int64),
                np.array(time_column, dtype=np.float64),
                np.array(value_column, dtype=np.float64),
            )
        )


def _step(step: Any) -> int | None:
    if type(step) is float and step.is_integer() and 0 <= step < 2.0**63:
        return int(step)
    return step if is_count(step, LAST_STEP) else None


def _value(value: Any) -> float | None:
    """A float64, or None where it is no number. A number beyond its range is infinite, as it is in the trainer."""
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if value is None:
        return math.nan
    return WORDS.get(value) if isinstance(value, str) else None


def _time(time: Any, now: float) -> float | None:
    if time is None:
        return now
    if type(time) not in (int, float) or not 0 <= time <= LAST_TIME:
        return None
    return float(time)


def add_distributions(batch: Batch, distributions: list[Any], now: float) -> None:
    bins = 0
    for one in distributions:
        if not isinstance(one, dict):
            batch.refusals.add(None, "bad_distribution", "a distribution is an object with key, step, edges and counts")
            continue
        if isinstance(one.get("counts"), list):
            bins += len(one["counts"])
            check_size(bins)
        found = _distribution(one, now)
        if isinstance(found, str):
            step = one.get("step")
            batch.refusals.add(one.get("key"), "bad_distribution", found, step=step)
        else:
            batch.distributions.append(found)


def _distribution(one: dict[str, Any], now: float) -> Distribution | str:
    """The distribution, or what is wrong with it."""
    key, of, step = one.get("key"), one.get("of", "weight"), _step(one.get("step"))
    time = _time(one.get("time"), now)
    if why := why_not_a_name(key) or ("must not be empty" if not key else ""):
        return f"key {why}"
    if why_not_a_name(of) or len(of) > 50:
        return "of must be text of at most 50 characters"
    if step is None:
        return f"step must be a whole number from 0 to {LAST_STEP}"
    if time is None:
        return "time must be seconds since 1970, before year 10000"
    edges, counts = _finite(one.get("edges", [])), _finite(one.get("counts", []))
    if edges is None or counts is None:
        return "edges and counts must be lists of finite numbers"
    if len(counts) > MAX_BINS:
        return f"a distribution has at most {MAX_BINS:,} bins"
    if len(edges) != (len(counts) + 1 if len(counts) else 0):
        return "edges must be one more than counts"
    if (np.diff(edges) < 0).any() or (counts < 0).any():
        return "edges must rise and counts must not be negative"
    nan, inf = one.get("nan", 0), one.get("inf", 0)
    if not (is_count(nan, LAST_STEP) and is_count(inf, LAST_STEP)):
        return "nan and inf must be whole numbers from 0"
    return Distribution(str(key), of, step, time, edges, counts, nan, inf)


def _finite(numbers: Any) -> Floats | None:
    if not isinstance(numbers, list) or any(type(number) not in (int, float) for number in numbers):
        return None
    try:
        column = np.array(numbers, dtype=np.float64)
    except OverflowError:
        return None
    return column if np.isfinite(column).all() else None


def progress_of(batch: Batch, progress: Any) -> dict[str, Any] | None:
    """The fields of a progress that make sense; what does not is refused by name."""
    if progress is None:
        return None
    if not isinstance(progress, dict):
        batch.refusals.add(None, "bad_progress", "progress is an object with step, total and epoch")
        return None
    found: dict[str, Any] = {}
    for name, value in (("step", progress.get("step")), ("total", progress.get("total"))):
        if value is None:
            continue
        if (number := _step(value)) is None:
            batch.refusals.add(None, "bad_progress", f"progress.{name} must be a whole number from 0")
        else:
            found[name] = number
    epoch = progress.get("epoch")
    if epoch is not None:
        if type(epoch) in (int, float) and 0 <= epoch < 1e15:
            found["epoch"] = epoch
        else:
            batch.refusals.add(None, "bad_progress", "progress.epoch must be a finite number from 0")
    return found or None
