"""Metric rules of a runtime: RE2 patterns whose named groups are metrics; RE2 cannot be made to hang (pure).

A rule is `{"pattern": r"top1=(?P<top1>[0-9.]+) at (?P<step>\\d+)", "group": "val"}`. The groups step and epoch say where the
others belong. A pattern with the groups key and value names its metric by what it finds.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from jobs.patterns import compile_pattern
from metrics.doors.numerals import number_of, numeral_at
from metrics.doors.reading import Found, Reading
from metrics.doors.words import LONGEST_KEY

MOST_MATCHES = 20  # of one rule in one line


@dataclass(frozen=True, slots=True)
class Rule:
    number: int
    pattern: Any
    group: str
    names: tuple[str, ...]

    def read(self, text: str, reading: Reading) -> None:
        """Add what the pattern finds in the line."""
        by = f"rule {self.number}"
        for match in islice(self.pattern.finditer(text), MOST_MATCHES):
            groups = {name: match.group(name) for name in self.names}
            found = {name: _number(words) for name, words in groups.items() if words is not None}
            reading.says_so = True
            if (step := found.pop("step", None)) is not None:
                reading.set_step(step)
            if (epoch := found.pop("epoch", None)) is not None:
                reading.set_epoch(epoch)
            if (total := found.pop("total", None)) is not None and 0 < total < 2**63:
                reading.total = int(total)
            if groups.get("key") and "value" in found:
                found = {groups["key"].strip(): found["value"]}
            for name, value in found.items():
                key = f"{self.group}/{name}" if self.group else name
                if value is not None and 0 < len(key) <= LONGEST_KEY:
                    reading.metrics.append(Found(key, value, by, match.start()))


def _number(words: str) -> float | None:
    value = number_of(words)
    if value is None and (numeral := numeral_at(words.strip(), 0)):
        value = numeral.value  # with a unit, such as 0.51s
    return value


def compile_rules(rules: Any) -> tuple[list[Rule], list[dict[str, Any]]]:
    """The rules that can be used, and what is wrong with the others: `{"rule": its number, "code", "said": what RE2 says}`."""
    usable: list[Rule] = []
    errors: list[dict[str, Any]] = []
    for number, rule in enumerate(rules if isinstance(rules, list) else [], start=1):
        if not isinstance(rule, dict) or not isinstance(rule.get("pattern"), str):
            errors.append({"rule": number, "code": "no_rule", "said": ""})
            continue
        try:
            pattern = compile_pattern(rule["pattern"])
        except ValueError as error:
            errors.append({"rule": number, "code": "bad_pattern", "said": str(error)})
            continue
        names = tuple(pattern.groupindex)
        if not set(names) - {"step", "epoch", "total"}:
            errors.append({"rule": number, "code": "no_metric", "said": ""})
            continue
        group = rule.get("group")
        usable.append(Rule(number, pattern, group.strip() if isinstance(group, str) else "", names))
    return usable, errors


@functools.lru_cache(maxsize=256)
def _compiled(rules: tuple[tuple[str, str], ...]) -> tuple[Rule, ...]:
    return tuple(compile_rules([{"pattern": pattern, "group": group} for pattern, group in rules])[0])


def rules_of(snapshot: dict[str, Any]) -> Sequence[Rule]:
    """The rules in a job's snapshot of its runtime, compiled once for all jobs that have the same."""
    rules = snapshot.get("metric_rules") or []
    return _compiled(
        tuple(
            (rule["pattern"], str(rule.get("group") or ""))
            for rule in rules
            if isinstance(rule, dict) and isinstance(rule.get("pattern"), str)
        )
    )
