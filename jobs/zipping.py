"""All that a job left as one zip, which is made while it is sent: whatever its size, a few hundred kilobytes of memory.

Nothing is compressed: checkpoints hardly shrink, and so the size of the whole is known before its first byte. Of a job that is
over it is promised, and a file that is not as it was listed ends the answer short, which every client notices. While a job
writes, files are taken as they are in their moment, and what is gone by then is left out.
"""

from __future__ import annotations

import io
import re
import time
import zipfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from django.utils.translation import gettext as _

from jobs.exceptions import JobError
from jobs.run_files import Left

CHUNK = 256 * 2**10
MOST_FILES = 20_000
_UNSAFE = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|\ud800-\udfff]')
# the fixed parts of the format, in bytes (APPNOTE.TXT 4.3)
_LOCAL, _CENTRAL, _END, _END_64 = 30, 46, 22, 56 + 20
_DESCRIPTOR, _DESCRIPTOR_64, _EXTRA_64 = 16, 24, 20


class TooManyFiles(JobError):
    code = "too_many_files"
    http_status = 413

    def __init__(self) -> None:
        super().__init__(_("These are more than {most} files: fetch them one by one.").format(most=f"{MOST_FILES:,}"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A file and its name in the zip."""

    file: Left
    name: str


class Changed(Exception):
    """A file is not as it was listed."""


def entries_of(files: Sequence[Left], *, folder: str) -> list[Entry]:
    """All below one folder, so that unpacking strews nothing about."""
    taken: set[str] = set()
    entries = []
    for file in files:
        name = safe_name(f"{folder}/{file.path}")
        stem, dot, end = name.rpartition(".")
        number = 1
        while name.casefold() in taken:  # also where the reader's file system knows no capitals
            number += 1
            name = f"{stem} ({number}).{end}" if dot and "/" not in end else f"{stem}{dot}{end} ({number})"
        taken.add(name.casefold())
        entries.append(Entry(file, name))
    return entries


def safe_name(path: str) -> str:
    """A path that means the same on every system and leads nowhere but below: a job may name its files as it likes."""
    parts = (_UNSAFE.sub("_", part).rstrip(" .") or "_" for part in path.split("/") if part)
    return "/".join(parts)


def size_of(entries: Sequence[Entry]) -> int:
    """The bytes of the whole zip, if every file is as it was listed."""
    position = central = 0
    for entry in entries:
        name, size = len(entry.name.encode()), entry.file.size
        is_big = _is_big(size)
        wide = 2 * (size > zipfile.ZIP64_LIMIT) + (position > zipfile.ZIP64_LIMIT)
        central += _CENTRAL + name + (4 + 8 * wide if wide else 0)
        position += _LOCAL + name + size + (_EXTRA_64 + _DESCRIPTOR_64 if is_big else _DESCRIPTOR)
    is_64 = (
        len(entries) > zipfile.ZIP_FILECOUNT_LIMIT or position > zipfile.ZIP64_LIMIT or central > zipfile.ZIP64_LIMIT
    )
    return position + central + _END + (_END_64 if is_64 else 0)


def stream(
    entries: Sequence[Entry], open_file: Callable[[str], IO[bytes]], *, exact: bool
) -> Generator[bytes, None, None]:
    """The zip in pieces. Raise Changed where it is to be exact and a file is not what it was."""
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_STORED) as archive:
        for entry in entries:
            try:
                source = open_file(entry.file.path)
            except FileNotFoundError as error:
                if exact:
                    raise Changed(entry.file.path) from error
                continue
            with source, archive.open(_info(entry), "w", force_zip64=_is_big(entry.file.size)) as target:
                left = entry.file.size  # never more: what grows meanwhile would not fit what was promised of its size
                while left and (chunk := source.read(min(CHUNK, left))):
                    left -= len(chunk)
                    target.write(chunk)
                    yield pipe.take()
                if left and exact:
                    raise Changed(entry.file.path)
    yield pipe.take()


def _is_big(size: int) -> bool:
    return size * 1.05 > zipfile.ZIP64_LIMIT  # as zipfile itself decides


def _info(entry: Entry) -> zipfile.ZipInfo:
    moment = max(315_532_800.0, min(entry.file.modified.timestamp(), 4_354_819_198.0))  # what the format can say
    info = zipfile.ZipInfo(entry.name, time.gmtime(moment)[:6])
    info.external_attr = 0o100644 << 16  # a plain file that can be read
    info.file_size = entry.file.size
    return info


class _Pipe(io.RawIOBase):
    """Takes what is written until it is fetched; cannot seek, so that zipfile writes strictly forward."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
