"""How much a namespace may use at one time, and how much of it is left (pure)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """None means no limit."""

    gpus: int | None = None
    cpu_millis: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    gpus: int = 0
    cpu_millis: int = 0
    memory_bytes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            gpus=self.gpus + other.gpus,
            cpu_millis=self.cpu_millis + other.cpu_millis,
            memory_bytes=self.memory_bytes + other.memory_bytes,
        )


def headroom(limit: Limits, used: Usage) -> Limits:
    """What is left. Never below 0, also where a limit was lowered under what runs: that runs on, and nothing starts."""
    return Limits(
        gpus=_left(limit.gpus, used.gpus),
        cpu_millis=_left(limit.cpu_millis, used.cpu_millis),
        memory_bytes=_left(limit.memory_bytes, used.memory_bytes),
    )


def fits(room: Limits, wanted: Usage) -> bool:
    return all(
        left is None or ask <= left
        for left, ask in (
            (room.gpus, wanted.gpus),
            (room.cpu_millis, wanted.cpu_millis),
            (room.memory_bytes, wanted.memory_bytes),
        )
    )


def _left(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)
