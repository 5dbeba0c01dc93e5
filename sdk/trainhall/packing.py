"""A folder of code as a tar.gz: what .trainhallignore and .gitignore leave, and never .git, environments and caches."""

from __future__ import annotations

import fnmatch
import gzip
import io
import os
import tarfile
from typing import Any, Iterator, List, NamedTuple, Tuple

from trainhall.errors import TrainhallError

ALWAYS = {".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints", ".venv", "venv", ".tox", ".nox", "node_modules"}
CACHES = {".mypy_cache", ".pytest_cache", ".ruff_cache", ".DS_Store"}
IGNORE_FILES = (".gitignore", ".trainhallignore")  # the later has the last word
MOST_FILES = 5000
MOST_BYTES = 256 * 2**20


class Packed(NamedTuple):
    body: bytes
    files: List[Tuple[str, int]]  # path inside, size
    skipped: List[str]  # links that cannot travel

    @property
    def size(self) -> int:
        return sum(size for _path, size in self.files)


class Rule(NamedTuple):
    pattern: str
    keeps: bool  # written with "!"
    only_folders: bool
    anchored: bool

    def matches(self, path: str, is_folder: bool) -> bool:
        if self.only_folders and not is_folder:
            return False
        if self.anchored:
            return fnmatch.fnmatchcase(path, self.pattern)
        return fnmatch.fnmatchcase(path.rpartition("/")[2], self.pattern)


def pack(folder: str) -> Packed:
    """The same files always give the same bytes. Raise TrainhallError where it is too much or unreadable."""
    rules = read_rules(folder)
    skipped: List[str] = []
    files = sorted(_walk(folder, "", rules, skipped))
    size = sum(size for _path, size in files)
    if not files:
        raise TrainhallError("bad_code", "{} has no file to send.".format(folder))
    if len(files) > MOST_FILES or size > MOST_BYTES:
        biggest = ", ".join("{} ({})".format(path, readable(size)) for path, size in biggest_of(files, 3))
        raise TrainhallError(
            "code_too_large",
            "{} has {} files, {}; at most {} files and {} can be sent. The biggest: {}. Name in .trainhallignore what "
            "the job does not need.".format(
                folder, len(files), readable(size), MOST_FILES, readable(MOST_BYTES), biggest
            ),
        )
    out = io.BytesIO()
    zipped = gzip.GzipFile(fileobj=out, mode="wb", mtime=0)
    with zipped, tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, _size in files:
            _add(tar, folder, path)
    return Packed(out.getvalue(), files, skipped)


def read_rules(folder: str) -> List[Rule]:
    rules = [Rule(name, False, False, False) for name in sorted(ALWAYS | CACHES)]
    rules.append(Rule("*.pyc", False, False, False))
    for name in IGNORE_FILES:
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                rules += [rule for rule in map(_rule, file) if rule is not None]
        except FileNotFoundError:
            continue
    return rules


def biggest_of(files: List[Tuple[str, int]], count: int) -> List[Tuple[str, int]]:
    return sorted(files, key=lambda entry: -entry[1])[:count]


def readable(size: float) -> str:
    units = ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return "{:.{}f} {}".format(size, 0 if units[0] == "B" or size >= 10 else 1, units[0])


def _rule(line: str) -> Any:
    line = line.strip()
    if not line or line.startswith("#"):
        return None
    keeps = line.startswith("!")
    line = line[1:] if keeps else line
    only_folders = line.endswith("/")
    line = line.rstrip("/")
    if line.startswith("**/"):
        line = line[3:]
    anchored = "/" in line
    return Rule(line.lstrip("/"), keeps, only_folders, anchored) if line.strip("/") else None


def _ignored(path: str, is_folder: bool, rules: List[Rule]) -> bool:
    ignored = False
    for rule in rules:
        if rule.matches(path, is_folder):
            ignored = not rule.keeps
    return ignored


def _walk(root: str, below: str, rules: List[Rule], skipped: List[str]) -> Iterator[Tuple[str, int]]:
    with os.scandir(os.path.join(root, below)) as entries:
        for entry in entries:
            path = below + entry.name
            if entry.is_symlink():
                target = os.path.realpath(entry.path)
                inside = target.startswith(os.path.realpath(root) + os.sep)
                if not (inside and os.path.isfile(target)):
                    if not _ignored(path, False, rules):
                        skipped.append(path)
                    continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if _ignored(path, is_folder, rules):
                continue
            if is_folder:
                if not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):  # an environment under another name
                    for found in _walk(root, path + "/", rules, skipped):
                        yield found
            elif entry.is_file():
                yield path, entry.stat().st_size


def _add(tar: tarfile.TarFile, folder: str, path: str) -> None:
    full = os.path.join(folder, path)
    try:
        with open(full, "rb") as file:
            body = file.read()
            executable = os.fstat(file.fileno()).st_mode & 0o100
    except OSError as error:
        raise TrainhallError("bad_code", "{} cannot be read: {}".format(full, error.strerror)) from None
    info = tarfile.TarInfo(path)
    info.size = len(body)
    info.mode = 0o755 if executable else 0o644
    tar.addfile(info, io.BytesIO(body))
