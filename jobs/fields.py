"""Reading single fields of a job document: each kind of value, and errors that name the field, the line and the fix (pure)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from accounts.disguise import hidden_in
from jobs.exceptions import SpecError

DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def parse_duration(value: object) -> int:
    """Seconds of `90`, `"90s"`, `"30m"`, `"4h"`, `"1d12h"`. Raise ValueError."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str):
        text = value.strip().lower()
        if text.isascii() and text.isdecimal() and len(text) < 10:
            return int(text)
        match = DURATION.fullmatch(text)
        if text and match and len(text) < 30:
            days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
            return days * 86400 + hours * 3600 + minutes * 60 + seconds
    raise ValueError("a length of time such as 30s, 20m, 4h or 1d12h")


class FieldReader:
    """Reads values and gathers what is wrong; `lines` tells where a dotted field stands, `path` what leads to it."""

    def __init__(self, lines: Mapping[str, int], errors: dict[str, list[str]] | None = None, path: str = "") -> None:
        self.lines = lines
        self.errors = {} if errors is None else errors
        self.path = path

    def under(self, field: str) -> FieldReader:
        """A reader of the mapping in `field`; what it finds wrong is told with the whole path."""
        return FieldReader(self.lines, self.errors, f"{self.path}{field}.")

    def wrong(self, field: str, message: str) -> None:
        field = f"{self.path}{field}"
        line = self.lines.get(field)
        self.errors.setdefault(field, []).append(f"line {line}: {message}" if line else message)

    def failure(self) -> SpecError:
        field, messages = next(iter(self.errors.items()))
        more = len(self.errors) - 1
        also = f" ({more} more field{'s' * (more > 1)} to mend)" if more else ""
        return SpecError(f"{field}: {messages[0]}{also}", fields=self.errors)

    def only_known(self, data: Mapping[Any, Any], known: Collection[str]) -> None:
        for key in data:
            if key not in known:
                near = difflib.get_close_matches(str(key), list(known), n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                self.wrong(str(key)[:100], f"there is no such field; {hint}")

    def text(self, data: Mapping[str, Any], field: str, *, required: bool = False, limit: int) -> str:
        value = data.get(field)
        if value is None or value == "":
            if required:
                self.wrong(field, "is required")
            return ""
        if not isinstance(value, str):
            self.wrong(field, f"must be text, not {value!r}; put it in quotes"[:300])
            return ""
        if len(value) > limit:
            self.wrong(field, f"is {len(value)} characters long; {limit} are allowed")
        if CONTROL.search(value):
            self.wrong(field, "holds a control character")
            return ""
        if hidden := hidden_in(value):
            self.wrong(field, f"holds {hidden}, which nobody sees")
            return ""
        return str(value).strip()

    def matching(self, data: Mapping[str, Any], field: str, form: re.Pattern[str], *, fix: str, limit: int) -> str:
        value = self.text(data, field, limit=limit)
        if value and not form.fullmatch(value):
            self.wrong(field, fix)
        return value

    def mapping(
        self, data: Mapping[str, Any], field: str, names: re.Pattern[str], read: Callable[[str, object], Any]
    ) -> dict[str, Any]:
        value = {} if data.get(field) is None else data[field]
        if not isinstance(value, dict):
            self.wrong(field, "must map names to values")
            return {}
        if len(value) > 500:
            self.wrong(field, f"has {len(value)} entries; 500 are allowed")
            return {}
        found = {}
        for name, entry in value.items():
            if not isinstance(name, str) or not names.fullmatch(name):
                self.wrong(f"{field}.{str(name)[:100]}", "is not a usable name: letters, digits and _ only")
                continue
            found[str(name)] = read(f"{field}.{name}", entry)
        return found

    def one_of(self, data: Mapping[str, Any], field: str, allowed: Collection[str], *, default: str) -> str:
        value = self.text(data, field, limit=63) or default
        if value not in allowed:
            self.wrong(field, f"must be one of {', '.join(sorted(allowed))}, not {value!r}")
        return value

    def boolean(self, data: Mapping[str, Any], field: str, *, default: bool) -> bool:
        value = data.get(field, default)
        if not isinstance(value, bool):
            self.wrong(field, f"must be true or false, not {value!r}"[:200])
            return default
        return value

    def whole(self, data: Mapping[str, Any], field: str, *, default: int, low: int, high: int) -> int:
        value = data.get(field, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.wrong(field, f"must be a whole number from {low} to {high}, not {value!r}"[:200])
            return default
        return value

    def seconds(self, data: Mapping[str, Any], field: str, *, default: int, low: int, high: int) -> int:
        try:
            value = parse_duration(data.get(field, default))
        except ValueError as error:
            self.wrong(field, f"must be {error}, not {data.get(field)!r}"[:200])
            return default
        if not low <= value <= high:
            self.wrong(field, f"must be from {low} to {high} seconds, not {value}")
        return value

    def quantity(
        self, data: Mapping[str, Any], field: str, read: Callable[[Any], int], *, default: int, low: int, high: int
    ) -> int:
        if data.get(field) in (None, ""):
            return default
        try:
            value = read(data[field])
        except ValueError as error:
            self.wrong(field, str(error)[:300])
            return default
        if not low <= value <= high:
            self.wrong(field, f"{data[field]!r} is outside what is possible"[:200])
            return default
        return value

    def words(self, data: Mapping[str, Any], field: str, *, allowed: Collection[str] | None = None) -> tuple[str, ...]:
        value = [] if data.get(field) is None else data[field]
        good = isinstance(value, list) and len(value) <= 50
        if not good or not all(isinstance(item, str) and 0 < len(item) <= 60 for item in value):
            self.wrong(field, "must be a list of at most 50 short texts")
            return ()
        for item in value:
            if CONTROL.search(item):
                self.wrong(field, f"{item!r} holds a control character")
            elif hidden := hidden_in(item):
                self.wrong(field, f"{item!r} holds {hidden}, which nobody sees")
            elif allowed is not None and item not in allowed:
                self.wrong(field, f"must be of {', '.join(allowed)}, not {item!r}")
        return tuple(str(item) for item in dict.fromkeys(value))
