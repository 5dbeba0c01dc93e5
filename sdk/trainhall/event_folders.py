"""Where event files lie: found below some folders while a training runs, each with the name that its folder gives its tags."""

from __future__ import annotations

import os
import re
import time
from typing import Dict, Iterator, List, Optional, Tuple

from trainhall.event_files import EventFile, Scalar

MARK = "tfevents"
DEEPEST = 6
MOST_ENTRIES = 20_000  # of folders and files in one walk
WALK_EVERY = 2.0  # seconds
MOST_FILES = 1_000
LEFT_OUT = {"node_modules", "__pycache__", "site-packages", "wandb", "mlruns"}
PARTS = {"train", "training", "val", "valid", "validation", "eval", "evaluation", "test"}
# folders whose name says nothing about what is inside
_NOISE = re.compile(
    r"runs?|logs?|tb|tensorboard|tb_logs|lightning_logs|outputs?|events?|summar(?:y|ies)|version_\d+|.*\d{6,}.*"
    r"|[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_.*|\d{4}-\d\d-\d\d.*"
)


class EventFolders:
    """All event files below some folders. What was there before `since` belongs to an earlier run and is not read."""

    def __init__(self, roots: List[str], since: float) -> None:
        self.roots = roots
        self.since = since
        self.files: Dict[str, EventFile] = {}
        self._prefixes: Dict[str, str] = {}
        self._first: Optional[str] = None  # the folder that needs no name of its own
        self._walked = float("-inf")

    def read(self, *, last: bool = False) -> Iterator[Tuple[str, Scalar]]:
        """What is new in every file: the name for the chart, and the scalar."""
        if last or time.monotonic() - self._walked >= WALK_EVERY:
            self._walk()
            self._walked = time.monotonic()
        for path, file in self.files.items():
            while True:
                before = file.position
                try:
                    found = file.read()
                except OSError:  # removed, or on a volume that is away
                    break
                for scalar in found:
                    yield self._prefixes[path] + scalar.tag, scalar
                # megabytes may hold no scalar; what stands still is a record that is not whole yet
                if file.position == before or not file.has_more:
                    break

    def _walk(self) -> None:
        left = [MOST_ENTRIES]
        for root in self.roots:
            for path in sorted(_event_files(root, DEEPEST, left), key=lambda path: (path.count(os.sep), path)):
                if path not in self.files and len(self.files) < MOST_FILES:
                    self._add(root, path)

    def _add(self, root: str, path: str) -> None:
        try:
            status = os.stat(path)
        except OSError:
            return
        if status.st_mtime < self.since:
            self.files[path] = EventFile(path, status.st_size)
        else:
            self.files[path] = EventFile(path)
        self._prefixes[path] = self._prefix_of(root, os.path.dirname(path), is_new=status.st_mtime >= self.since)

    def _prefix_of(self, root: str, folder: str, *, is_new: bool) -> str:
        """`validation/` for logs/validation; nothing for the first folder, unless it names a part of the data."""
        if self._first is None and is_new:
            named_part = os.path.basename(folder).lower() in PARTS
            self._first = os.path.dirname(folder) if named_part and folder != root else folder
        below = _below(self._first, folder) if self._first is not None else None
        if below is None:
            below = [name for name in _below(root, folder) or [] if not _NOISE.fullmatch(name)]
        return "/".join([*below[-2:], ""]) if below else ""


def _below(parent: Optional[str], folder: str) -> Optional[List[str]]:
    if parent is None:
        return None
    if folder == parent:
        return []
    return folder[len(parent) + 1 :].split(os.sep) if folder.startswith(parent + os.sep) else None


def _event_files(folder: str, depth: int, left: List[int]) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        left[0] -= 1
        if left[0] < 0:
            return
        try:
            if entry.is_dir(follow_symlinks=False):
                hidden = entry.name.startswith(".") or entry.name in LEFT_OUT
                if depth and not hidden and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                    for path in _event_files(entry.path, depth - 1, left):
                        yield path
            elif MARK in entry.name and entry.is_file(follow_symlinks=False):
                yield entry.path
        except OSError:
            continue
