"""Sealed points: sorted, one per step, compressed; and how new ones are merged into them (pure but for zstd)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zstandard

from metrics.packed import Floats, Ints

FULL = 4096  # points of a chunk
LEVEL = 3


@dataclass(slots=True)
class Run:
    """Points of one series, sorted by step, each step once."""

    step: Ints
    time: Floats
    value: Floats

    def __len__(self) -> int:
        return len(self.step)

    def part(self, start: int, stop: int) -> Run:
        return Run(self.step[start:stop], self.time[start:stop], self.value[start:stop])

    def where(self, mask: Any) -> Run:
        return Run(self.step[mask], self.time[mask], self.value[mask])


EMPTY = Run(np.empty(0, np.int64), np.empty(0), np.empty(0))


def last_wins(pieces: Sequence[Run]) -> Run:
    """Sort by step; of an equal step the one that stands last in the pieces wins."""
    if not pieces:
        return EMPTY
    step = np.concatenate([piece.step for piece in pieces]) if len(pieces) > 1 else pieces[0].step
    if len(step) > 1 and (step[1:] <= step[:-1]).any():
        sorting = np.argsort(step, kind="stable")
        ordered = step[sorting]
        order: Any = sorting[np.append(ordered[1:] != ordered[:-1], True)]
    else:
        order = slice(None)
    time = np.concatenate([piece.time for piece in pieces])
    value = np.concatenate([piece.value for piece in pieces])
    return Run(step[order], time[order], value[order])


class Damaged(Exception):
    """A body is not what was compressed."""


def compress(run: Run) -> bytes:
    raw = b"".join([run.step.tobytes(), run.time.tobytes(), run.value.tobytes()])
    return zstandard.ZstdCompressor(LEVEL, write_checksum=True).compress(raw)


def decompress(body: bytes | memoryview, count: int) -> Run:
    """The points of a body. Raise Damaged."""
    try:
        raw = zstandard.decompress(body)
        return Run(
            np.frombuffer(raw, dtype="<i8", count=count),
            np.frombuffer(raw, dtype="<f8", count=count, offset=8 * count),
            np.frombuffer(raw, dtype="<f8", count=count, offset=16 * count),
        )
    except (zstandard.ZstdError, ValueError, MemoryError) as error:  # a frame may claim any size
        raise Damaged(str(error)) from error


def split(run: Run, *, newest: bool) -> list[Run]:
    """A run as chunks: the newest of a series is filled up and the rest stays open, an older one is cut evenly."""
    if len(run) <= FULL:
        return [run]
    if newest:
        cuts = list(range(0, len(run), FULL))
    else:
        pieces = -(-len(run) // FULL)
        cuts = [len(run) * number // pieces for number in range(pieces)]
    return [run.part(start, stop) for start, stop in zip(cuts, [*cuts[1:], len(run)], strict=True)]


def measures(run: Run) -> dict[str, Any]:
    """What a chunk's row says of its points."""
    finite = np.isfinite(run.value)
    good = run.value[finite]
    return {
        "first_step": int(run.step[0]),
        "last_step": int(run.step[-1]),
        "first_time": float(run.time.min()),
        "last_time": float(run.time.max()),
        "count": len(run),
        "bad": int(len(run) - len(good)),
        "min": float(good.min()) if len(good) else None,
        "max": float(good.max()) if len(good) else None,
        "last": float(run.value[-1]),
    }
