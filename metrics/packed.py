"""The body of a batch: a head that names its series, then all steps, all times and all values as plain columns (pure)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PREFIX = struct.Struct("<II")  # version, bytes of the head
VERSION = 1
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, str, int]]).decode


@dataclass(slots=True)
class Series:
    """Points of one metric in the order they were sent: not sorted, and a step may stand there twice."""

    key: str
    group: str
    step: Ints
    time: Floats
    value: Floats

    def __len__(self) -> int:
        return len(self.step)


def pack(series: Sequence[Series]) -> bytes:
    head = _encode([(one.key, one.group, len(one.step)) for one in series])
    return b"".join(
        [
            PREFIX.pack(VERSION, len(head)),
            head,
            *[one.step.tobytes() for one in series],
            *[one.time.tobytes() for one in series],
            *[one.value.tobytes() for one in series],
        ]
    )


def unpack(body: bytes | memoryview) -> Iterator[Series]:
    """The series of a body. Its columns are views: whoever keeps one keeps the whole body."""
    version, size = PREFIX.unpack_from(body)
    if version != VERSION:
        raise ValueError(f"A batch of version {version} cannot be read by this portal.")
    start = PREFIX.size + size
    head = _decode(body[PREFIX.size : start])
    total = sum(count for _key, _group, count in head)
    steps = np.frombuffer(body, dtype="<i8", count=total, offset=start)
    times = np.frombuffer(body, dtype="<f8", count=total, offset=start + 8 * total)
    values = np.frombuffer(body, dtype="<f8", count=total, offset=start + 16 * total)
    at = 0
    for key, group, count in head:
        end = at + count
        yield Series(key, group, steps[at:end], times[at:end], values[at:end])
        at = end
