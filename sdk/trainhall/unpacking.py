"""An archive of code into a folder, and not one byte outside it.

Plain files and folders only, and links that stay inside. The first bad entry is named and ends it.
"""

from __future__ import annotations

import os
import posixpath
import tarfile
import zlib
from typing import List

from trainhall.setup import SetupError

MOST_FILES = 20_000
MOST_BYTES = 1024 * 2**20


def unpack(archive: str, folder: str) -> int:
    """Unpack a tar.gz; returns how many entries. Everything is looked at before anything is written."""
    root = os.path.realpath(folder)
    try:
        with tarfile.open(archive, "r:*") as tar:
            entries = _checked(tar)
            for entry in entries:
                _write(tar, entry, root)
    except (tarfile.TarError, EOFError, zlib.error, ValueError, UnicodeError) as error:
        raise SetupError("the code is no archive that can be read: {}.".format(error)) from None
    return len(entries)


def _checked(tar: tarfile.TarFile) -> List[tarfile.TarInfo]:
    entries: List[tarfile.TarInfo] = []
    links = set()
    size = 0
    for entry in tar:
        name = _inside(entry.name, entry.name)
        if not (entry.isreg() or entry.isdir() or entry.issym()):
            raise _bad(entry.name, "is neither a file nor a folder")
        if any(_parent in links for _parent in _parents(name)):
            raise _bad(entry.name, "goes through a link")
        if name in links:
            raise _bad(entry.name, "is there already, as a link")
        if entry.issym():
            if posixpath.isabs(entry.linkname):
                raise _bad(entry.name, "is a link to an absolute path")
            _inside(posixpath.join(posixpath.dirname(name), entry.linkname), entry.name)
            links.add(name)
        size += entry.size
        if size > MOST_BYTES:
            raise _bad(entry.name, "makes the code larger than {} MiB".format(MOST_BYTES // 2**20))
        if len(entries) >= MOST_FILES:
            raise _bad(entry.name, "is one file more than {}".format(MOST_FILES))
        entry.name = name
        if name != ".":
            entries.append(entry)
    return entries


def _inside(path: str, shown: str) -> str:
    if "\x00" in path or "\\" in path:
        raise _bad(shown, "holds a NUL or a backslash")
    if posixpath.isabs(path):
        raise _bad(shown, "is an absolute path")
    if ".." in path.split("/") and path == shown:
        raise _bad(shown, "leads out of the folder")
    clean = posixpath.normpath(path)
    if clean == ".." or clean.startswith("../"):
        raise _bad(shown, "leads out of the folder")
    return clean


def _parents(name: str) -> List[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _write(tar: tarfile.TarFile, entry: tarfile.TarInfo, root: str) -> None:
    target = os.path.join(root, entry.name)
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    # what lay in the folder before us may be links too
    if os.path.commonpath([root, os.path.realpath(parent)]) != root:
        raise _bad(entry.name, "goes through a link that leads out of the folder")
    if entry.isdir():
        os.makedirs(target, exist_ok=True)
        return
    if os.path.lexists(target):
        if os.path.isdir(target) and not os.path.islink(target):
            raise _bad(entry.name, "is a folder already")
        os.unlink(target)
    if entry.issym():
        os.symlink(entry.linkname, target)
        return
    source = tar.extractfile(entry)
    if source is None:
        raise _bad(entry.name, "has no content")
    with source, open(target, "wb") as file:
        for piece in iter(lambda: source.read(2**20), b""):
            file.write(piece)
    os.chmod(target, 0o755 if entry.mode & 0o100 else 0o644)


def _bad(name: str, what: str) -> SetupError:
    return SetupError("the entry {} of the code {}.".format(ascii(name[:200]), what))
