"""A worker's log on disk: one JSON array a line, and an index that says where every 256th begins.

A reader finds any number by one jump and at most 255 skipped lines, so following a long log costs what is new.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress

from jobs.cluster.local.layout import PodFolder
from jobs.cluster.local.lines import Line

STRIDE = 256
_OFFSET = 8  # bytes of an entry of the index


class LogWriter:
    """Used by the one runner of the pod."""

    def __init__(self, pod: PodFolder) -> None:
        self._file = open(pod.log, "ab")  # noqa: SIM115 - open for the runner's life
        self._index = open(pod.log_index, "ab", buffering=0)  # noqa: SIM115
        self._offset = self._file.tell()
        self._number = 0
        self.tail: deque[str] = deque(maxlen=80)  # as much as Kubernetes falls back to for a message

    def write(self, lines: Iterable[Line]) -> None:
        """Append; a reader sees whole lines only, because it stops at the last line feed."""
        for time, text, overwritten in lines:
            if self._number % STRIDE == 0:
                self._index.write(self._offset.to_bytes(_OFFSET, "big"))
            self._number += 1
            data = (
                json.dumps([self._number, round(time, 3), text, int(overwritten)], ensure_ascii=False).encode() + b"\n"
            )
            self._offset += len(data)
            self._file.write(data)
            if not overwritten:
                self.tail.append(text)
        self._file.flush()

    def message(self, limit: int = 2048) -> str:
        """The last lines, at most so many characters."""
        return "\n".join(self.tail).strip()[-limit:]


def read(
    pod: PodFolder, *, after: int, limit: int, hint: tuple[int, int] | None = None
) -> Iterator[tuple[int, Line, int]]:
    """Lines with a number above `after`: number, line, and the offset where the next one begins.

    `hint` is a number and that offset, from an earlier call. Raise FileNotFoundError if there is no log.
    """
    number, offset = hint if hint and hint[0] <= after else (0, 0)
    indexed = after // STRIDE * STRIDE
    if indexed > number:
        number, offset = _look_up(pod, indexed) or (number, offset)
    with open(pod.log, "rb") as file:
        file.seek(offset)
        given = 0
        while given < limit:
            data = file.readline()
            if not data.endswith(b"\n"):
                return  # not there yet, or half written
            offset += len(data)
            number += 1
            if number > after:
                _number, time, text, overwritten = json.loads(data)
                yield number, (time, text, bool(overwritten)), offset
                given += 1


def _look_up(pod: PodFolder, number: int) -> tuple[int, int] | None:
    with suppress(FileNotFoundError), open(pod.log_index, "rb") as file:
        file.seek(number // STRIDE * _OFFSET)
        entry = file.read(_OFFSET)
        if len(entry) == _OFFSET:
            offset = int.from_bytes(entry, "big")
            # The index may be ahead of the log, whose lines are written in batches.
            if offset <= os.stat(pod.log).st_size:
                return number, offset
    return None
