"""From what a training logged to the bytes of a batch, in the wire format of the portal's ingest door."""

from __future__ import annotations

import binascii
import math
import os
import zlib
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

GZIP_ABOVE = 4096  # bytes; below, compressing costs more than it saves

Record = Tuple[float, int, Sequence[Tuple[str, Any]]]  # time, step, (key, value) pairs


class Batch(NamedTuple):
    """Bytes that are sent until they are answered: always the same, so that a repeat is recognised by its id."""

    body: bytes
    points: int

    @property
    def is_gzip(self) -> bool:
        return self.body[:2] == b"\x1f\x8b"


def pack(
    records: Iterable[Record],
    distributions: List[Dict[str, Any]],
    progress: Optional[Dict[str, Any]],
    *,
    attempt: int,
    rank: int,
    source: str = "",
) -> Batch:
    """One batch with an id of its own."""
    import json

    series: Dict[str, Dict[str, Any]] = {}
    points = len(distributions)
    for time, step, pairs in records:
        for key, value in pairs:
            columns = series.get(key)
            if columns is None:
                columns = series[key] = {"key": sendable(key), "group": group_of(sendable(key))}
                columns["step"], columns["time"], columns["value"] = [], [], []
            columns["step"].append(step)
            columns["time"].append(time)
            columns["value"].append(number(value))
            points += 1
    body: Dict[str, Any] = {"batch": new_id(), "attempt": attempt, "rank": rank, "series": list(series.values())}
    if distributions:
        body["distributions"] = distributions
    if progress:
        body["progress"] = progress
    if source:
        body["source"] = source
    text = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    return Batch(_gzip(text) if len(text) > GZIP_ABOVE else text, points)


def number(value: Any) -> Any:
    """A value as JSON can carry it: numbers that are not finite become words."""
    try:
        value = float(value)
    except OverflowError:
        value = math.inf if value > 0 else -math.inf
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def group_of(key: str) -> str:
    head, slash, _rest = key.partition("/")
    return head if slash else ""


def sendable(key: str) -> str:
    """Half a character would make the portal refuse the whole batch."""
    return key.encode("utf-8", "replace").decode("utf-8")


def new_id() -> str:
    """A random UUID. From the kernel: a fork would copy the state of another generator."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = binascii.hexlify(bytes(raw)).decode()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _gzip(text: bytes) -> bytes:
    packer = zlib.compressobj(4, zlib.DEFLATED, 31)
    return packer.compress(text) + packer.flush()
