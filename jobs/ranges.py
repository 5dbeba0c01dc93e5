"""Serving part of a file, so that a download that was cut off goes on (RFC 9110, sections 13 and 14; pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ONE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes `start` to `end`, the last one included."""

    start: int
    end: int
    size: int  # of the whole file

    @property
    def length(self) -> int:
        return self.end - self.start + 1

    @property
    def content_range(self) -> str:
        return f"bytes {self.start}-{self.end}/{self.size}"


class Unsatisfiable(Exception):
    """The range lies outside the file: 416."""


def wanted_part(header: str, *, size: int, if_range: str = "", etag: str = "") -> Part | None:
    """What a Range header asks for; None means the whole file.

    None also for several ranges, for a unit we do not know, and where `If-Range` names another version of the file: the
    RFC lets a server answer those whole.
    """
    if not header or (if_range and if_range != etag):
        return None
    match = _ONE_RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        length = min(int(last), size)
        if length == 0:
            raise Unsatisfiable
        return Part(size - length, size - 1, size)
    start, end = int(first), min(int(last), size - 1) if last else size - 1
    if last and int(last) < start:
        return None
    if start >= size:
        raise Unsatisfiable
    return Part(start, end, size)
