"""Reading what a job left in its run's folder, which the job's own code made: nothing there is trusted (RELIABILITY R103).

Every step of a path is opened relative to the one before, without following links, so that neither a link nor a folder
swapped for one between two looks leads out.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from jobs.cluster.port import RunFile

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# non-blocking, so that opening a FIFO that nobody writes to does not hang; it is refused by its kind afterwards
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
MAX_DEPTH = 40


def walk(run: Path, *, limit: int) -> list[RunFile]:
    """Regular files below `run`, at most `limit`, by path; links, devices and FIFOs are left out."""
    try:
        root = os.open(run, _FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found: list[RunFile] = []
    try:
        for entry in _walk(root, "", MAX_DEPTH):
            found.append(entry)
            if len(found) >= limit:
                break
    finally:
        os.close(root)
    return sorted(found, key=lambda file: file.path)


def _walk(folder: int, prefix: str, depth: int) -> Iterator[RunFile]:
    names = sorted(os.listdir(folder))
    for name in names:
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # it changes while we look
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            path = f"{prefix}{name}"
            if stat.S_ISREG(info.st_mode):
                yield RunFile(path=path, size=info.st_size, modified=info.st_mtime)
            elif stat.S_ISDIR(info.st_mode) and depth:
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from _walk(inner, f"{path}/", depth - 1)
                finally:
                    os.close(inner)


def open_file(run: Path, path: str) -> BinaryIO:
    """One regular file. Raise FileNotFoundError for anything else, whatever stands in its way."""
    parts = path.split("/")
    if len(parts) > MAX_DEPTH + 1 or any(part in ("", ".", "..") or "\x00" in part for part in parts):
        raise FileNotFoundError(path)
    with ExitStack() as opened:
        try:
            step = os.open(run, _FOLDER)
            for part in parts[:-1]:
                opened.callback(os.close, step)
                step = os.open(part, _FOLDER, dir_fd=step)
            opened.callback(os.close, step)
            file = os.open(parts[-1], _FILE, dir_fd=step)
        except (OSError, UnicodeEncodeError) as error:
            raise FileNotFoundError(path) from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise FileNotFoundError(path)
    return open(file, "rb")


def remove(path: Path) -> None:
    """A link is removed, never what it points to."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
        return
    if not path.exists():
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        _open_up(path)  # the job closed a folder of its own; it ran as our account
        shutil.rmtree(path)


def _open_up(folder: Path) -> None:
    os.chmod(folder, stat.S_IRWXU)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            _open_up(Path(entry.path))
