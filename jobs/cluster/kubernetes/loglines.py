"""What the kubelet says of a log, read: time stamps become seconds, a progress bar inside a line its states. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from functools import lru_cache

from jobs.cluster.local.lines import MAX_LINE, clean

HELD = MAX_LINE + 64  # bytes of each end of a line: what is shown of it, and its time stamp
MOST_STATES = 20  # of a progress bar that came as one line: the runtime writes a line only at its end
_STAMP = re.compile(rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")

Entry = tuple[float, str, bool]  # time, text, overwritten


class Lines:
    """Bytes as they come become lines. Of one that has no end for megabytes only what can be shown is held, however long it gets.

    What is left of a line depends on the line alone, never on how its bytes came, so that a log can be resumed.
    """

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._length = 0

    def feed(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        """Each line that has ended, and how many of its bytes were left out."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._keep(piece)
            yield self._take()
        self._keep(rest)

    def finish(self) -> Iterator[tuple[bytes, int]]:
        """The last line, which has no end."""
        if self._length:
            yield self._take()

    def _keep(self, piece: bytes) -> None:
        room = HELD - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:][-HELD:]
        del self._tail[:-HELD]
        self._length += len(piece)

    def _take(self) -> tuple[bytes, int]:
        head, tail, missing = bytes(self._head), bytes(self._tail), self._length - len(self._head) - len(self._tail)
        self._head, self._tail, self._length = bytearray(), bytearray(), 0
        if not missing:
            return head + tail, 0
        if b"\r" in tail:  # a bar: its first states and its last, each whole
            return head.rpartition(b"\r")[0] + b"\r" + tail.partition(b"\r")[2], 0
        return head, len(tail) + missing


def read_line(line: bytes, *, left_out: int = 0) -> Iterator[Entry]:
    """`2026-01-31T12:00:00.123456789Z text`: always the same entries for the same line, so that a log can be resumed."""
    stamp, _space, said = line.partition(b" ")
    if (at := _seconds(stamp)) is None:
        at, said = 0.0, line  # a word of the kubelet's own, such as that it cannot read the file
    states = [state for state in said.rstrip(b"\r").split(b"\r") if state] or [b""]
    if len(states) > MOST_STATES:
        step = len(states) / MOST_STATES
        states = [states[int(number * step)] for number in range(MOST_STATES - 1)] + states[-1:]
    for state in states[:-1]:
        yield at, _text(state), True
    yield at, _text(states[-1], left_out), False


def _text(said: bytes, left_out: int = 0) -> str:
    cut = max(0, len(said) - MAX_LINE) + left_out
    return f"{clean(said[:MAX_LINE])} … [{cut} more bytes of this line were cut]" if cut else clean(said)


def _seconds(stamp: bytes) -> float | None:
    """Since the epoch. The same stamp gives the same number, which is all that resuming needs."""
    match = _STAMP.fullmatch(stamp)
    if match is None:
        return None
    whole = _whole(b" ".join(match.groups()[:6])) - _offset(match[8])
    return whole + float(b"0" + (match[7] or b""))


@lru_cache(maxsize=16)
def _whole(fields: bytes) -> int:
    year, month, day, hour, minute, second = (int(field) for field in fields.split())
    return calendar.timegm((year, month, day, hour, minute, second, 0, 0, 0))


def _offset(zone: bytes) -> int:
    if zone == b"Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
    return -seconds if zone[:1] == b"-" else seconds
