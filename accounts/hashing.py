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

USUAL = 0.25  # seconds of a hash at the least, and until one was measured
HALF = 3.0  # seconds after which a slow hash says half as much of the next one: a busy machine stays so for a while


class NoTurn(Exception):
    """There is no time left in which a password could be looked at."""


class Turns:
    def __init__(self, count: int) -> None:
        self._count = count
        self._free = threading.BoundedSemaphore(count)
        self._lock = threading.Lock()
        self._waiting = 0
        self._took = USUAL
        self._measured = time.monotonic()

    @property
    def takes(self) -> float:
        """Seconds that a hash which begins now is expected to take."""
        rests: float = 0.5 ** ((time.monotonic() - self._measured) / HALF)
        return max(USUAL, self._took * rests)

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
                # one quick hash does not yet say that the machine is idle
                self._took, self._measured = max(took, self.takes), time.monotonic()
            self._free.release()

    def _wait(self, deadline: Deadline) -> bool:
        with self._lock:
            patience = deadline.rest - self.takes
            if patience < 0 or self._waiting * self.takes / self._count > patience:
                return False
            self._waiting += 1
        try:
            if not self._free.acquire(timeout=patience):
                return False
        finally:
            with self._lock:
                self._waiting -= 1
        if deadline.rest < self.takes:  # those before it took longer than was known when it came
            self._free.release()
            return False
        return True


turns = Turns(max(1, (os.cpu_count() or 1) // 2))  # the other half is for everybody who is signed in
