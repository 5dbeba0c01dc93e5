"""A sealed chunk of a log: consecutive lines as one file in the storage, laid out so that a search reads only what people see."""

from __future__ import annotations

import os
import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import orjson
import zstandard
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage
from numpy.typing import NDArray

from jobs.logs.text import as_seen
from jobs.models import LogChunk

# a header, then three zstd frames: the columns, what is seen (a newline between two lines), and as JSON the texts that
# differ from what is seen of them, which are those with escapes in them and those that were overwritten; a checksum of all
_HEADER = struct.Struct("<8s4Q")
_SUM = struct.Struct("<I")
_MAGIC = b"THLOG\x00\x00\x03"
_WITHOUT_SUM = b"THLOG\x00\x00\x02"
_WITHOUT_LEVELS = b"THLOG\x00\x00\x01"  # written before lines had levels: all are plain
_LEVEL = 3


class ChunkLost(Exception):
    """The storage does not give back what was put there."""


@dataclass
class Body:
    """A chunk's file, read; what is not asked for stays compressed."""

    times: NDArray[np.float64]
    writer: NDArray[np.uint16]
    overwritten: NDArray[np.bool_]
    levels: NDArray[np.uint8]
    differs: NDArray[np.bool_]
    packed_seen: bytes
    packed_kept: bytes

    @cached_property
    def seen(self) -> bytes:
        return zstandard.decompress(self.packed_seen)

    @cached_property
    def numbers_seen(self) -> NDArray[np.intp]:
        return np.flatnonzero(~self.overwritten)

    @cached_property
    def _kept(self) -> list[str]:
        kept: list[str] = orjson.loads(zstandard.decompress(self.packed_kept))
        return kept

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        return np.append(np.flatnonzero(np.frombuffer(self.seen, dtype=np.uint8) == ord("\n")), len(self.seen))

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Of each line: which one of the kept texts it is, else of those that are seen."""
        return np.where(self.differs, np.cumsum(self.differs), np.cumsum(~self.overwritten)) - 1

    def texts(self, numbers: NDArray[np.intp]) -> list[str]:
        """What the program wrote, escapes and all, of some lines."""
        texts: list[str] = []
        for keeps, place in zip(self.differs[numbers].tolist(), self._places[numbers].tolist(), strict=True):
            if keeps:
                texts.append(self._kept[place])
            else:
                start = self._ends[place - 1] + 1 if place else 0
                texts.append(self.seen[start : self._ends[place]].decode())
        return texts

    def check(self) -> None:
        """Unpack all of it now. Raise ValueError or ZstdError where it is not what was packed."""
        shown = len(self.numbers_seen)
        if len(self._ends) != max(1, shown) or len(self._kept) != np.count_nonzero(self.differs):
            raise ValueError("not as many texts as lines")
        self.seen.decode()


def pack(
    texts: Sequence[str],
    *,
    times: NDArray[np.float64],
    writer: NDArray[np.uint16],
    overwritten: NDArray[np.bool_],
    levels: NDArray[np.uint8],
) -> bytes:
    """The file of a chunk."""
    seen = as_seen(texts)
    hidden = overwritten.tolist()
    differs = np.array(
        [
            hides or (shown is not text and shown != text)
            for hides, shown, text in zip(hidden, seen, texts, strict=True)
        ],
        dtype=np.bool_,
    )
    columns = b"".join(column.tobytes() for column in (times, writer, overwritten, differs, levels))
    words = "\n".join(shown for hides, shown in zip(hidden, seen, strict=True) if not hides).encode()
    kept = orjson.dumps([texts[number] for number in np.flatnonzero(differs).tolist()])
    frames = [zstandard.compress(part, _LEVEL) for part in (columns, words, kept)]
    packed = _HEADER.pack(_MAGIC, len(texts), *map(len, frames)) + b"".join(frames)
    return packed + _SUM.pack(zlib.crc32(packed))


def folder_of(job_id: str) -> str:
    return f"logs/{job_id[:2]}/{job_id}"


def save(job_id: str, first_seq: int, body: bytes) -> str:
    """Put a new file into the storage, to stay there when the machine loses power; its name."""
    name = f"{folder_of(job_id)}/{first_seq:012d}-{uuid.uuid4().hex[:8]}.zst"
    name = default_storage.save(name, ContentFile(body))
    if isinstance(default_storage, FileSystemStorage):
        for path in (default_storage.path(name), os.path.dirname(default_storage.path(name))):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    return name


def load(chunk: LogChunk) -> Body:
    """Raise ChunkLost where the storage does not have it any more, or not as it was written."""
    try:
        with default_storage.open(chunk.storage_name) as stored:
            data = stored.read()
    except OSError as error:
        raise ChunkLost(f"Lines {chunk.first_seq} to {chunk.last_seq} are not in the storage any more.") from error
    try:
        return _unpacked(data, chunk)
    except (struct.error, zstandard.ZstdError, ValueError, MemoryError) as error:  # a frame may claim any size
        raise ChunkLost(f"Lines {chunk.first_seq} to {chunk.last_seq} are damaged in the storage.") from error


def _unpacked(data: bytes, chunk: LogChunk) -> Body:
    magic, count, *lengths = _HEADER.unpack_from(data)
    end = _HEADER.size + sum(lengths)
    if magic not in (_MAGIC, _WITHOUT_SUM, _WITHOUT_LEVELS) or count != chunk.last_seq - chunk.first_seq + 1:
        raise ValueError("not the file of these lines")
    # where there is no checksum, what stays packed for now is looked at too: no reader may meet it in the middle of an answer
    has_sum = magic == _MAGIC
    if len(data) != end + (_SUM.size if has_sum else 0):
        raise ValueError("cut off, or more than was written")
    if has_sum and _SUM.unpack_from(data, end) != (zlib.crc32(data[:end]),):
        raise ValueError("not as it was written")
    ends = np.cumsum([_HEADER.size, *lengths]).tolist()
    columns = zstandard.decompress(data[ends[0] : ends[1]])
    body = Body(
        times=np.frombuffer(columns, np.float64, count),
        writer=np.frombuffer(columns, np.uint16, count, 8 * count),
        overwritten=np.frombuffer(columns, np.bool_, count, 10 * count),
        differs=np.frombuffer(columns, np.bool_, count, 11 * count),
        levels=(
            np.zeros(count, np.uint8)
            if magic == _WITHOUT_LEVELS
            else np.frombuffer(columns, np.uint8, count, 12 * count)
        ),
        packed_seen=data[ends[1] : ends[2]],
        packed_kept=data[ends[2] : ends[3]],
    )
    if not has_sum:
        body.check()
    if count and body.writer.max() >= len(chunk.writers):
        raise ValueError("lines of nobody")
    return body
