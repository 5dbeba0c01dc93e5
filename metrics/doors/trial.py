"""What the stdout door would make of some lines: the same code that reads real ones, for the "test my line" box (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metrics.doors.memory import Gathered, Memory
from metrics.doors.reading import Reading
from metrics.doors.rules import Rule, compile_rules
from metrics.doors.stdout import plain, read_line
from metrics.spelling import as_json


def try_lines(lines: Sequence[str], rules: Any) -> dict[str, list[dict[str, Any]]]:
    """`metrics`, `ignored` and the `errors` of rules, as codes that `metrics.api.rules` has sentences for. A name need not
    come three times here, so that one line is enough."""
    usable, errors = compile_rules(rules)
    answer: dict[str, list[dict[str, Any]]] = {"metrics": [], "ignored": [], "errors": errors}
    memory = Memory(admit=lambda _key: True)
    for index, line in enumerate(lines):
        _try_line(index, line, usable, memory, answer)
    return answer


def _try_line(
    index: int, line: str, rules: Sequence[Rule], memory: Memory, answer: dict[str, list[dict[str, Any]]]
) -> None:
    reading: Reading = read_line(line, rules)
    memory.take(index + 1, 0.0, reading, Gathered())
    for one in reading.metrics:
        found = {"line": index, "key": one.key, "value": as_json(one.value), "step": memory.step, "epoch": memory.epoch}
        found["by"] = one.by
        if one.start is not None and plain(line) == line:
            found["start"] = one.start
        answer["metrics"].append(found)
    answer["ignored"] += [{"line": index, "key": key, "why": why} for key, why in reading.ignored]
