"""Bytes of a program become log lines: any bytes, any length, a bounded flow, to the last line (RELIABILITY, LOGS). Pure.

Progress bars: a line that ends in a carriage return replaces the one before it on a screen, so of those that come within
200 ms only the last is kept.
"""

from __future__ import annotations

import re
from collections import deque

MAX_LINE = 64 * 1024  # bytes
LINES_PER_SECOND = 5_000
BYTES_PER_SECOND = 2 * 2**20
BAR_INTERVAL = 0.2  # seconds between two states of a progress bar
KEPT_WHEN_FLOODED = 100  # newest lines kept aside, so that the last words of a flood are not lost

Line = tuple[float, str, bool]  # time, text, overwritten

_END = re.compile(rb"\r\n|[\r\n]")


class LineSplitter:
    """Feed it bytes with the time they came; it gives lines back."""

    def __init__(self) -> None:
        self._part = bytearray()  # of the line that has not ended
        self._cut = 0  # bytes of it that were dropped
        self._bar: tuple[float, str] | None = None  # ended by CR, not given out yet
        self._bar_given = 0.0  # when one was given out last
        self._after_bar = False  # the line that has not ended replaces one
        self._part_shown = ""
        self._part_time = 0.0

    def feed(self, data: bytes, now: float) -> list[Line]:
        lines: list[Line] = []
        position = 0
        for match in _END.finditer(data):
            self._keep(data[position : match.start()], now)
            position = match.end()
            if match.group() == b"\r":
                # at the very end it may be the first half of "\r\n": not shown before we know
                self._carriage_return(now, lines, hold=position == len(data))
            else:
                self._newline(now, lines)
        self._keep(data[position:], now)
        lines.extend(self.pending(now))
        return lines

    def pending(self, now: float) -> list[Line]:
        """A bar's state that has waited long enough, also one that the program has not ended yet."""
        lines: list[Line] = []
        if now - self._bar_given < BAR_INTERVAL:
            return lines
        if self._bar is not None:
            if now > self._bar[0]:
                self._give_bar(now, lines)
        elif self._after_bar and self._part and now - self._part_time >= BAR_INTERVAL:
            text = self._text()
            if text != self._part_shown:
                self._part_shown = text
                self._bar_given = now
                lines.append((now, text, True))
        return lines

    def finish(self, now: float) -> list[Line]:
        """The rest, when nothing more comes."""
        lines: list[Line] = []
        if self._part or self._bar is not None:
            self._newline(now, lines)
        return lines

    def _keep(self, data: bytes, now: float) -> None:
        if not data:
            return
        self._part_time = now
        room = MAX_LINE - len(self._part)
        self._part += data[:room]
        self._cut += max(0, len(data) - room)

    def _text(self) -> str:
        text = clean(bytes(self._part))
        return f"{text} … [{self._cut} more bytes of this line were cut]" if self._cut else text

    def _take(self) -> str:
        text = self._text()
        self._part.clear()
        self._cut = 0
        self._part_shown = ""
        return text

    def _newline(self, now: float, lines: list[Line]) -> None:
        text = self._take()
        if not text and self._bar is not None:  # "\r\n", or a bar's last state
            text = self._bar[1]
        self._bar = None
        self._after_bar = False
        lines.append((now, text, False))

    def _carriage_return(self, now: float, lines: list[Line], *, hold: bool) -> None:
        text = self._take()
        self._after_bar = True
        if not text:
            return
        due = now - self._bar_given >= BAR_INTERVAL
        if hold and due and self._bar is not None:
            self._give_bar(now, lines)  # the state before, so that a bar whose every write is held still moves
            due = False
        self._bar = (now, text)
        if due and not hold:
            self._give_bar(now, lines)

    def _give_bar(self, now: float, lines: list[Line]) -> None:
        assert self._bar is not None
        lines.append((*self._bar, True))
        self._bar = None
        self._bar_given = now


def clean(data: bytes) -> str:
    """Text that every database and page can hold: bad bytes replaced, NUL made visible. Decoding never gives surrogates."""
    return data.decode("utf-8", errors="replace").replace("\x00", "␀")


class RateCap:
    """Lets through so many lines and bytes a second; says how many it dropped, and keeps the newest of those aside."""

    def __init__(self) -> None:
        self._window = 0.0
        self._lines = self._bytes = self._dropped = 0
        self._aside: deque[Line] = deque(maxlen=KEPT_WHEN_FLOODED)

    def pass_on(self, lines: list[Line], now: float) -> list[Line]:
        passed = self.reopen(now)
        for line in lines:
            size = len(line[1].encode())
            if self._lines >= LINES_PER_SECOND or self._bytes + size > BYTES_PER_SECOND:
                self._dropped += 1
                self._aside.append(line)
                continue
            self._lines += 1
            self._bytes += size
            passed.append(line)
        return passed

    def reopen(self, now: float) -> list[Line]:
        """What is said when a new second begins after a flood."""
        if now - self._window < 1:
            return []
        self._window = now
        self._lines = self._bytes = 0
        return self._confess(now, 0)

    def finish(self, now: float) -> list[Line]:
        """The last lines of a flood, after the word of what is missing before them."""
        last = list(self._aside)
        return self._confess(now, len(last)) + last

    def _confess(self, now: float, kept: int) -> list[Line]:
        missing, self._dropped = self._dropped - kept, 0
        self._aside.clear()
        return [(now, f"[{missing} lines dropped by the rate limit]", False)] if missing > 0 else []
