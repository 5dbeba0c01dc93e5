"""What the kubelet says of a log, read: time stamps become seconds, a progress bar inside a line its states. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from functools import lru_cache

from jobs.cluster.local.lines import MAX_LINE, clean

MOST_STATES = 20  # of a progress bar that came as one line: the runtime writes a line only at its end
_STAMP = re.compile(rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")

Entry = tuple[float, str, bool]  # time, text, overwritten


def read_line(line: bytes) -> Iterator[Entry]:
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
    yield at, _text(states[-1]), False


def _text(said: bytes) -> str:
    if len(said) <= MAX_LINE:
        return clean(said)
    return f"{clean(said[:MAX_LINE])} … [{len(said) - MAX_LINE} more bytes of this line were cut]"


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
