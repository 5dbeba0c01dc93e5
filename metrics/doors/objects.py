"""Lines that are an object: JSON, whole or at the end, and a Python dict as the Hugging Face Trainer prints it (pure)."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from metrics.doors.numerals import number_of
from metrics.doors.reading import Found, Reading
from metrics.doors.words import LONGEST_KEY, Kind, kind_of

MOST_DEPTH = 3
MOST_NAMES = 500  # of one object
LONGEST_DICT = 4096  # characters
MESSAGES = ("message", "msg", "log")
_WRAPPED = re.compile(r"(?:(?:np|numpy|torch|jnp)\.)?(?:float\d*|int\d*|tensor|array)\(\s*([-+.\w]{1,40})[^()]{0,60}\)")
_BARE = re.compile(r"(?<=[\s:,\[])([-+]?(?:nan|inf))(?=[\s,}\]])")


def read_object(text: str) -> tuple[Reading | None, str]:
    """What the object of a line says, and a message it carries; None where the line holds no object."""
    data, by = _json_in(text), "json"
    if data is None:
        data, by = _dict_in(text), "dict"
    if data is None:
        return None, ""
    reading = Reading()
    _collect(reading, data, "", by, depth=0)
    reading.says_so = by == "json" and reading.step is not None
    message = next((data[name] for name in MESSAGES if isinstance(data.get(name), str)), "")
    return reading, message


def _json_in(text: str) -> dict[Any, Any] | None:
    if not text.endswith("}"):
        return None
    start = -1
    for _try in range(3):
        start = text.find("{", start + 1)
        if start < 0:
            return None
        try:
            data = json.loads(text[start:])
        except (ValueError, RecursionError):
            continue
        return data if isinstance(data, dict) else None
    return None


def _dict_in(text: str) -> dict[Any, Any] | None:
    start = text.find("{'")
    if start < 0 or not text.endswith("}") or len(text) - start > LONGEST_DICT:
        return None
    plain = _BARE.sub(r"'\1'", _WRAPPED.sub(r"\1", text[start:]))
    try:
        data = ast.literal_eval(plain)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    return data if isinstance(data, dict) else None


def _collect(reading: Reading, data: dict[Any, Any], prefix: str, by: str, *, depth: int) -> None:
    for name, value in list(data.items())[:MOST_NAMES]:
        if not isinstance(name, str) or not name:
            continue
        if isinstance(value, dict):
            if depth < MOST_DEPTH:
                inner = prefix if name == "metrics" else f"{prefix}{name}/"
                _collect(reading, value, inner, by, depth=depth + 1)
            continue
        number = number_of(value)
        if number is None:
            continue
        key = f"{prefix}{name}"
        match kind_of(key):
            case Kind.STEP:
                reading.set_step(number)
            case Kind.EPOCH:
                reading.set_epoch(number)
            case Kind.TOTAL:
                reading.total = int(number) if 0 < number < 2**63 else None
            case Kind.DENIED:
                reading.ignored.append((key[:LONGEST_KEY], "denied"))
            case Kind.METRIC:
                if len(key) <= LONGEST_KEY:
                    reading.metrics.append(Found(key, number, by))
