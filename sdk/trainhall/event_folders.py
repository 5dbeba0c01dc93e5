"""Where event files lie: found below some folders while a training runs, each with the name that its folder gives its tags."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterator, List, Tuple

from trainhall.event_files import EventFile, Scalar
from trainhall.folders import Prefixes, files_below

MARK = "tfevents"
MOST_ENTRIES = 20_000  # of folders and files in one walk
WALK_EVERY = 2.0  # seconds
MOST_FILES = 1_000


class EventFolders:
    """All event files below some folders. What was there before `since` belongs to an earlier run and is not read."""

    def __init__(self, roots: List[str], since: float) -> None:
        self.roots = roots
        self.since = since
        self.files: Dict[str, EventFile] = {}
        self._names: Dict[str, str] = {}
        self._prefixes = Prefixes()
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
                    yield self._names[path] + scalar.tag, scalar
                # megabytes may hold no scalar; what stands still is a record that is not whole yet
                if file.position == before or not file.has_more:
                    break

    def state(self) -> Dict[str, Any]:
        """How far each file was read, for an agent that takes over from one that died."""
        files = {path: [file.position, file.plugins, self._names[path]] for path, file in self.files.items()}
        return {"first": self._prefixes.first, "files": files}

    def restore(self, state: Dict[str, Any]) -> None:
        self._prefixes.first = state["first"]
        for path, (position, plugins, name) in state["files"].items():
            self.files[path] = EventFile(path, int(position))
            self.files[path].plugins.update(plugins)
            self._names[path] = str(name)

    def _walk(self) -> None:
        left = [MOST_ENTRIES]
        for root in self.roots:
            found = files_below(root, lambda name: MARK in name, left)
            for path in sorted(found, key=lambda path: (path.count(os.sep), path)):
                if path not in self.files and len(self.files) < MOST_FILES:
                    self._add(root, path)

    def _add(self, root: str, path: str) -> None:
        try:
            status = os.stat(path)
        except OSError:
            return
        is_new = status.st_mtime >= self.since
        self.files[path] = EventFile(path, 0 if is_new else status.st_size)
        self._names[path] = self._prefixes.of(root, os.path.dirname(path), is_new=is_new)
