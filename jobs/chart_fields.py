"""The `charts` of a job document: which charts stand first, how large, and what they should reach (pure).

Metrics are named by their key or by a glob such as `val/*`, in which `*` also stands for slashes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from accounts.disguise import hidden_in, uncovered
from jobs.fields import CONTROL, FieldReader
from jobs.spec import ChartGoal, Charts

LISTS = ("pin", "order", "hide", "log_y")
FIELDS = (*LISTS, "size", "best", "goals")
SIZES = ("small", "wide", "full")
BESTS = ("min", "max")
MOST = 200  # names in one of the fields
LONGEST = 200  # characters of a name
LONGEST_LABEL = 60
FARTHEST = 1e300
LIKE = {"pin": "[val/acc, train/loss]", "order": '["val/*"]', "hide": '["system/*"]', "log_y": "[train/loss]"}

T = TypeVar("T")


def read_charts(reader: FieldReader, value: Any) -> Charts:
    if value is None:
        return Charts()
    if not isinstance(value, dict):
        reader.wrong("charts", "must be a mapping such as {pin: [val/acc], goals: {val/acc: 0.9}}")
        return Charts()
    inner = reader.under("charts")
    inner.only_known(value, FIELDS)
    return Charts(
        **{name: _names(inner, value, name) for name in LISTS},
        size=_by_name(inner, value, "size", _one_of(inner, SIZES), like="{val/acc: wide}"),
        best=_by_name(inner, value, "best", _one_of(inner, BESTS), like="{throughput: max}"),
        goals=_by_name(inner, value, "goals", _goal(inner), like="{val/acc: 0.9}"),
    )


def told(charts: Charts) -> list[str]:
    """What a document says of its charts, a sentence for each thing."""
    lists = {"Pinned": charts.pin, "First": charts.order, "Hidden": charts.hide, "Log y": charts.log_y}
    found = [f"{what}: {', '.join(names)}." for what, names in lists.items() if names]
    for size in SIZES:
        if names := [name for name, chosen in charts.size.items() if chosen == size]:
            found.append(f"{size.capitalize()}: {', '.join(names)}.")
    found += [f"Best of {name}: its {way}." for name, way in charts.best.items()]
    for name, goal in charts.goals.items():
        found.append(f"Goal of {name}: {goal.value:g}{f' ({goal.label})' if goal.label else ''}.")
    return found


def _names(reader: FieldReader, data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    value = [] if data.get(field) is None else data[field]
    if not isinstance(value, list) or len(value) > MOST:
        reader.wrong(field, f"must be a list of at most {MOST} names of metrics, such as {LIKE[field]}")
        return ()
    return tuple(dict.fromkeys(str(name) for name in value if _is_name(reader, field, name)))


def _is_name(reader: FieldReader, field: str, name: object) -> bool:
    if not isinstance(name, str) or not name:
        reader.wrong(field, f"{name!r} is not the name of a metric; put it in quotes"[:300])
    elif len(name) > LONGEST or CONTROL.search(name):
        reader.wrong(field, f"{name[:60]!r} is longer than {LONGEST} characters or holds a control character")
    elif hidden := hidden_in(name):
        reader.wrong(field, f"{uncovered(name)[:60]!r} holds {hidden}, which nobody sees")
    else:
        return True
    return False


def _by_name(
    reader: FieldReader, data: Mapping[str, Any], field: str, read: Callable[[str, Any], T | None], *, like: str
) -> dict[str, T]:
    value = {} if data.get(field) is None else data[field]
    if not isinstance(value, dict) or len(value) > MOST:
        reader.wrong(field, f"must map at most {MOST} names of metrics, such as {like}")
        return {}
    found = {}
    for name, entry in value.items():
        if _is_name(reader, field, name) and (one := read(f"{field}.{name}", entry)) is not None:
            found[str(name)] = one
    return found


def _one_of(reader: FieldReader, allowed: tuple[str, ...]) -> Callable[[str, Any], str | None]:
    def read(field: str, value: Any) -> str | None:
        if value in allowed:
            return str(value)
        reader.wrong(field, f"must be one of {', '.join(allowed)}, not {value!r}"[:300])
        return None

    return read


def _goal(reader: FieldReader) -> Callable[[str, Any], ChartGoal | None]:
    def read(field: str, value: Any) -> ChartGoal | None:
        entry = value if isinstance(value, dict) else {"value": value}
        inner = reader.under(field)
        inner.only_known(entry, ("value", "label"))
        label = inner.text(entry, "label", limit=LONGEST_LABEL)
        number = entry.get("value")
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < FARTHEST:
            reader.wrong(field, f"must be a number, or {{value: 0.9, label: paper}}, not {value!r}"[:300])
            return None
        return ChartGoal(float(number), label)

    return read
