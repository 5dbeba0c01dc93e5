"""A batch of points, what it may hold at most, and what of it was refused (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from metrics.packed import Floats, Series
from metrics.sources import SDK

MAX_BYTES = 8 * 2**20  # decompressed
MAX_POINTS = 100_000  # in one request
MAX_BINS = 4096  # of one distribution
MAX_LISTED = 100  # refusals that are named in an answer
LAST_STEP = 2**63 - 1
LAST_RANK = 2**31 - 1
LAST_TIME = 253_402_300_799.0  # the end of year 9999: what clients can show as a date
NAME_LENGTH = 200  # characters of a key or a group


_BAD_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class IngestRefused(Exception):
    """The whole request is refused and nothing of it is stored."""

    def __init__(self, http_status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.code = code
        self.message = message


def bad_json(message: str) -> IngestRefused:
    return IngestRefused(400, "bad_json", message)


def too_large(message: str) -> IngestRefused:
    return IngestRefused(413, "too_large", message)


@dataclass(slots=True)
class Refusals:
    """What was not stored: all counted, the first hundred named."""

    listed: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    def add(
        self, key: Any, code: str, message: str, *, step: Any = None, index: int | None = None, points: int = 1
    ) -> None:
        self.count += max(points, 1)
        if len(self.listed) < MAX_LISTED:
            step = step if isinstance(step, int) and abs(step) < 2**63 else None
            self.listed.append({"key": printable(key), "step": step, "index": index, "code": code, "message": message})


@dataclass(slots=True)
class Distribution:
    key: str
    of: str
    step: int
    time: float
    edges: Floats
    counts: Floats
    nan: int
    inf: int


@dataclass(slots=True)
class Batch:
    """What is left of a request when the refused is taken out."""

    id: UUID
    attempt: int | None
    rank: int
    series: list[Series] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)
    progress: dict[str, Any] | None = None
    refusals: Refusals = field(default_factory=Refusals)
    source: str = SDK

    @property
    def points(self) -> int:
        return sum(len(one) for one in self.series) + len(self.distributions)


def printable(text: Any) -> str | None:
    """A name as it may stand in an answer: lone surrogates escaped, cut to the length a name may have."""
    if not isinstance(text, str):
        return None
    return text[:NAME_LENGTH].encode("utf-8", "backslashreplace").decode()


def why_not_a_name(name: Any) -> str:
    """Why this cannot be a key or a group; empty if it can."""
    if not isinstance(name, str):
        return "must be text"
    if len(name) > NAME_LENGTH:
        return f"must have at most {NAME_LENGTH} characters, not {len(name):,}"
    if bad := _BAD_CHARACTERS.search(name):
        kind = "a lone surrogate" if bad[0] >= "\ud800" else "a control character"
        return f"must not hold {kind} (U+{ord(bad[0]):04X})"
    return ""
