"""Who may hash a password now: as many as there are cores to spare, the others after them (pure).

A hash takes a quarter of a second of a core, which is what it is for. Of a hundred at once each would take as long as all of
them, and every other page with it. Who cannot have it in time is turned away before anything is known of the name.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from accounts.deadline import Deadline

USUAL = 0.25  # seconds of a hash, until one was measured


class NoTurn(Exception):
    """There is no time left in which a password could be looked at."""


class Turns:
    def __init__(self, count: int) -> None:
        self._count = count
        self._free = threading.BoundedSemaphore(count)
        self._lock = threading.Lock()
        self._waiting = 0
        self._takes = USUAL

    @contextmanager
    def one(self, deadline: Deadline) -> Iterator[None]:
        """Wait for a turn, for as long as a hash could still end in time. Raise NoTurn, at once where it is known before."""
        if not self._wait(deadline):
            raise NoTurn
        began = time.monotonic()
        try:
            yield
        finally:
            took = time.monotonic() - began
            with self._lock:
                # more on a busy machine, which does not become idle from one to the next
                self._takes = max(took, 0.9 * self._takes)
            self._free.release()

    def _wait(self, deadline: Deadline) -> bool:
        if deadline.rest > 0 and self._free.acquire(blocking=False):
            return True  # whatever the last ones took: else one slow hash would be the last of all
        with self._lock:
            patience = deadline.rest - self._takes
            if patience < 0 or self._waiting * self._takes / self._count > patience:
                return False
            self._waiting += 1
        try:
            return self._free.acquire(timeout=patience)
        finally:
            with self._lock:
                self._waiting -= 1


turns = Turns(max(1, (os.cpu_count() or 1) // 2))  # the other half is for everybody who is signed in
