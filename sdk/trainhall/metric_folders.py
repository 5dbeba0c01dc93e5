"""Where metric files lie, which of them may be believed, and the name each gives its numbers."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from trainhall.folders import LEFT_OUT, PARTS, Prefixes, files_below
from trainhall.metric_files import MetricFile, is_candidate
from trainhall.metric_rows import Pairs

MOST_ENTRIES = 20_000
WALK_EVERY = 2.0  # seconds
MOST_FILES = 200
MOST_NAMES = 5_000  # of all files; the portal takes no more of a job
MOST_SEEN = 5_000  # files whose size is remembered
DATA = frozenset({"data", "dataset", "datasets", "cache", "corpus", "tokenized"})
_SAYS_NOTHING = frozenset(
    "metrics metric scalars log logs trainer_log train_log training_log training progress result results history "
    "out output report stats".split()
)


class Told(NamedTuple):
    time: float
    step: int
    pairs: Pairs


class MetricFolders:
    """Metric files below some folders. Read is what was written since, in files that changed since.

    A file whose name says nothing about it counts only once it was seen to grow: a table that was copied or unpacked stands
    still.
    """

    def __init__(self, roots: List[str], since: float) -> None:
        self.roots = roots
        self.since = since
        self.files: Dict[str, MetricFile] = {}
        self.progress: Optional[Dict[str, int]] = None  # the newest that a file told
        self._roots: Dict[str, str] = {}
        self._names: Dict[str, Dict[str, str]] = {}  # of the files that told something: key to name
        self._taken: Set[str] = set()
        self._beginnings: Dict[str, Tuple[str, ...]] = {}
        self._sizes: Dict[str, int] = {}  # of the files that were not seen to grow
        self._prefixes = Prefixes()
        self._walked = float("-inf")

    def read(self, *, last: bool = False) -> Iterator[Told]:
        if last or time.monotonic() - self._walked >= WALK_EVERY:
            self._walk()
            self._walked = time.monotonic()
        for path, file in self.files.items():
            while True:
                before = file.position
                try:
                    rows = file.read(last=last)
                except OSError:  # removed, or on a volume that is away
                    break
                for row in rows:
                    if row.total:
                        self.progress = {"step": row.step, "total": row.total}
                    pairs = [(name, value) for key, value in row.pairs for name in self._name_of(path, key)]
                    if pairs:
                        yield Told(row.time or file.modified, row.step, pairs)
                if file.position == before or not file.has_more:
                    break

    def state(self) -> Dict[str, Any]:
        begun = {path: list(beginnings) for path, beginnings in self._beginnings.items()}
        files = {
            path: [self._roots[path], file.state(), self._names.get(path, {})] for path, file in self.files.items()
        }
        return {"first": self._prefixes.first, "files": files, "sizes": dict(self._sizes), "begun": begun}

    def restore(self, state: Dict[str, Any]) -> None:
        self._prefixes.first = state["first"]
        self._sizes.update(state["sizes"])
        self._beginnings = {path: tuple(beginnings) for path, beginnings in state["begun"].items()}
        for path, (root, file, names) in state["files"].items():
            self.files[path] = MetricFile(path)
            self.files[path].restore(file)
            self._roots[path] = str(root)
            if names:
                self._names[path] = dict(names)
                self._taken.update(self._names[path].values())

    def _walk(self) -> None:
        left = [MOST_ENTRIES]
        for root in self.roots:
            found = files_below(root, is_candidate, left, left_out=LEFT_OUT | DATA)
            for path in sorted(found, key=lambda path: (path.count(os.sep), path)):
                if path not in self.files and len(self.files) < MOST_FILES:
                    self._look_at(root, path)

    def _look_at(self, root: str, path: str) -> None:
        try:
            status = os.stat(path)
        except OSError:
            return
        is_new = status.st_mtime >= self.since
        before = self._sizes.get(path)
        if before is None and len(self._sizes) < MOST_SEEN:
            self._sizes[path] = status.st_size if is_new else -status.st_size - 1  # below 0: from an earlier run
        file = MetricFile(path)
        if before is not None and before < 0 and is_new:
            file = MetricFile(path, min(-before - 1, status.st_size))
        has_grown = before is not None and status.st_size > (before if before >= 0 else -before - 1)
        if is_new and (file.is_known or has_grown):
            self._sizes.pop(path, None)
            self.files[path] = file
            self._roots[path] = root

    def _name_of(self, path: str, key: str) -> Tuple[str, ...]:
        """The name of a key of this file; none where there are too many.

        Never the same for two files: one would overwrite the other's points.
        """
        if key == "epoch":  # charts along epochs look for it
            return (key,)
        names = self._names.setdefault(path, {})
        if key not in names:
            if len(self._taken) >= MOST_NAMES:
                return ()
            if path not in self._beginnings:
                self._beginnings[path] = self._beginnings_of(path)
            choices = [beginning + key for beginning in self._beginnings[path]]
            names[key] = next((name for name in choices if name not in self._taken), choices[-1])
            self._taken.add(names[key])
        return (names[key],)

    def _beginnings_of(self, path: str) -> Tuple[str, ...]:
        """What may stand before its keys: its folder's name as for event files and its own where that says something, or
        where another file has that already all of its path.
        """
        root, (folder, file_name) = self._roots[path], os.path.split(path)
        stem = os.path.splitext(file_name)[0]
        is_first = not self._beginnings
        # the first file needs no name of its own, as long as it is not about a part of the data
        says_nothing = stem.lower() in _SAYS_NOTHING or (is_first and stem.lower() not in PARTS)
        prefix = self._prefixes.of(root, folder, is_new=True)
        below = os.path.relpath(path, root).replace(os.sep, "/")
        above = os.path.dirname(below) or file_name
        return (prefix if says_nothing else prefix + stem + "/", above + "/", below + "/")
