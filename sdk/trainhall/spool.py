"""Batches on disk, for the time in which the portal is away and memory is not enough."""

from __future__ import annotations

import os
from typing import List, Optional, Tuple

from trainhall.batches import Batch, new_id

MOST_BYTES = 512 * 2**20


class Spool:
    """A queue of files in a folder of this process alone; the folder is there only while there is something in it."""

    def __init__(self, parent: str) -> None:
        self.folder = os.path.join(parent, "{}-{}".format(os.getpid(), new_id()[:8]))
        self._waiting: List[Tuple[str, int, int]] = []  # path, bytes, points
        self._bytes = 0
        self._written = 0
        self.problem = ""  # why the last batch was not kept

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def points(self) -> int:
        return sum(points for _path, _size, points in self._waiting)

    def put(self, batch: Batch) -> bool:
        """Keep a batch. False if there is no room for it, here or on the disk."""
        if self._bytes + len(batch.body) > MOST_BYTES:
            self.problem = "{} MiB wait in {} already".format(MOST_BYTES // 2**20, self.folder)
            return False
        path = os.path.join(self.folder, "{:08d}.batch".format(self._written))
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            with open(path + ".new", "wb") as file:
                file.write(batch.body)
            os.replace(path + ".new", path)
        except OSError as error:
            self.problem = "{}: {}".format(self.folder, error.strerror or error)
            return False
        self._written += 1
        self._bytes += len(batch.body)
        self._waiting.append((path, len(batch.body), batch.points))
        return True

    def first(self) -> Optional[Batch]:
        """The oldest batch; one that can no longer be read is counted by an empty body."""
        if not self._waiting:
            return None
        path, _size, points = self._waiting[0]
        try:
            with open(path, "rb") as file:
                return Batch(file.read(), points)
        except OSError:
            return Batch(b"", points)

    def drop_first(self) -> None:
        path, size, _points = self._waiting.pop(0)
        self._bytes -= size
        try:
            os.unlink(path)
            if not self._waiting:
                os.rmdir(self.folder)
                os.rmdir(os.path.dirname(self.folder))  # the last process out; refused while another has files there
        except OSError:
            return  # a file left behind harms nobody
