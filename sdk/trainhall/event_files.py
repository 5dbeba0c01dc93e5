"""TensorBoard's event files, read while they are written: records in TFRecord frames, events in protobuf; scalars only.

Standard library only. A record that is not complete yet is left for the next look; one whose checksum is wrong is looked at
again a few times, and then the rest of its file is given up, as TensorBoard does.
"""

from __future__ import annotations

import os
import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

LONGEST_RECORD = 2**20  # longer ones are images and graphs, which hold no scalars worth the time: skipped unread
MOST_AT_ONCE = 8 * 2**20  # bytes of one file in one look
PATIENCE = 5  # looks at a broken record that has bytes behind it
_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FLOAT, _DOUBLE, _INT32, _INT64, _BOOL, _HALF = 1, 2, 3, 9, 10, 19
_FORMATS = {_FLOAT: "<f", _DOUBLE: "<d", _INT32: "<i", _INT64: "<q", _HALF: "<e"}
# where a TensorProto keeps numbers that are not in tensor_content
_LISTS = {5: "<f", 6: "<d"}
_INT_LISTS = (7, 10, 11)


class Scalar(NamedTuple):
    tag: str
    step: int
    time: float
    value: float


class Broken(ValueError):
    """Bytes that are no event."""


class EventFile:
    """One file, from where the last look ended."""

    def __init__(self, path: str, position: int = 0) -> None:
        self.path = path
        self.position = position
        self.is_given_up = False
        self._looks_at_broken = 0
        self.plugins: Dict[str, str] = {}  # only the first event of a tag has to say what it is

    def read(self) -> List[Scalar]:
        """What is new, at most a few megabytes of it."""
        size = os.stat(self.path).st_size
        if size < self.position:
            self.position = 0  # written anew
        if self.is_given_up or size == self.position:
            return []
        found: List[Scalar] = []
        with open(self.path, "rb") as file:
            file.seek(self.position)
            end = self.position + MOST_AT_ONCE
            while self.position < end:
                try:
                    record, length = _next_record(file, size - self.position)
                    scalars = list(self._scalars_of(record)) if record else []
                except Broken:
                    self._looks_at_broken += 1
                    self.is_given_up = self._looks_at_broken >= PATIENCE
                    break
                if not length:
                    break
                self._looks_at_broken = 0
                self.position += length
                found += scalars
        return found

    @property
    def has_more(self) -> bool:
        try:
            return not self.is_given_up and os.stat(self.path).st_size > self.position
        except OSError:
            return False

    def _scalars_of(self, record: bytes) -> Iterator[Scalar]:
        time, step, summary = 0.0, 0, b""
        for number, value in fields(record):
            if number == 1 and isinstance(value, bytes) and len(value) == 8:
                (time,) = struct.unpack("<d", value)
            elif number == 2 and isinstance(value, int):
                step = _signed(value)
            elif number == 5 and isinstance(value, bytes):
                summary = value
        for number, value in fields(summary):
            if number == 1 and isinstance(value, bytes):
                tag, scalar = self._value_of(value)
                if tag and scalar is not None and step >= 0:
                    yield Scalar(tag, step, time, scalar)

    def _value_of(self, message: bytes) -> Tuple[str, Optional[float]]:
        tag, simple, tensor, plugin = "", None, None, None
        for number, value in fields(message):
            if number == 1 and isinstance(value, bytes):
                tag = value.decode("utf-8", "replace")
            elif number == 2 and isinstance(value, bytes) and len(value) == 4:
                (simple,) = struct.unpack("<f", value)
            elif number == 8 and isinstance(value, bytes):
                tensor = value
            elif number == 9 and isinstance(value, bytes):
                plugin = _plugin_of(value)
        if plugin is not None:
            self.plugins.setdefault(tag, plugin)
        if simple is not None:
            return tag, simple
        if tensor is not None and self.plugins.get(tag) == "scalars":
            return tag, _number_of(tensor)
        return tag, None


def _next_record(file: Any, left: int) -> Tuple[bytes, int]:
    """A record and the bytes it takes with its frame; nothing and 0 where it is not all there yet."""
    if left < _HEADER.size:
        return b"", 0
    header = file.read(_HEADER.size)
    length, check = _HEADER.unpack(header)
    if masked(crc32c(header[:8])) != check:
        raise Broken("the length of a record is damaged")
    whole = _HEADER.size + length + _CRC.size
    if left < whole:
        return b"", 0
    if length > LONGEST_RECORD:
        file.seek(length + _CRC.size, os.SEEK_CUR)
        return b"", whole
    record = file.read(length)
    if masked(crc32c(record)) != _CRC.unpack(file.read(_CRC.size))[0]:
        raise Broken("a record is damaged")
    return record, whole


def fields(message: bytes) -> Iterator[Tuple[int, Any]]:
    """The fields of a protobuf message: whole numbers as int, everything else as bytes."""
    position, end = 0, len(message)
    while position < end:
        key, position = _varint(message, position)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if kind == _BYTES:
            size, position = _varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise Broken("a field of an unknown kind")
        if position + size > end:
            raise Broken("a field is longer than its message")
        yield number, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> Tuple[int, int]:
    value = shift = 0
    while position < len(message) and shift < 70:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise Broken("a number without an end")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _plugin_of(metadata: bytes) -> str:
    for number, value in fields(metadata):
        if number == 1 and isinstance(value, bytes):
            for inner, name in fields(value):
                if inner == 1 and isinstance(name, bytes):
                    return name.decode("utf-8", "replace")
    return ""


def _number_of(tensor: bytes) -> Optional[float]:
    """The one number of a tensor that holds one."""
    kind, content, numbers = 0, b"", []  # type: int, bytes, List[float]
    for number, value in fields(tensor):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in _LISTS and isinstance(value, bytes):
            numbers += [one[0] for one in struct.iter_unpack(_LISTS[number], _whole(value, _LISTS[number]))]
        elif number in _INT_LISTS:
            numbers += _ints(value)
    if content:
        if kind not in _FORMATS:
            return None
        numbers = [one[0] for one in struct.iter_unpack(_FORMATS[kind], _whole(content, _FORMATS[kind]))]
    return float(numbers[0]) if len(numbers) == 1 else None


def _whole(packed: bytes, shape: str) -> bytes:
    if len(packed) % struct.calcsize(shape):
        raise Broken("numbers that do not fit their bytes")
    return packed


def _ints(value: Any) -> List[float]:
    if isinstance(value, int):
        return [float(_signed(value))]
    found, position = [], 0
    while position < len(value):
        number, position = _varint(value, position)
        found.append(float(_signed(number)))
    return found


def _table() -> List[int]:
    table = []
    for value in range(256):
        for _bit in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
