"""How long something may take in all, whatever the number of calls it is made of (pure)."""

from __future__ import annotations

import time

MOMENT = 0.05  # seconds


class Deadline:
    def __init__(self, seconds: float, *, since: float | None = None) -> None:
        """`since` is when it began, by time.monotonic(): now, where nothing is said."""
        self.seconds = seconds
        self._ends = (time.monotonic() if since is None else since) + seconds

    @property
    def rest(self) -> float:
        """Seconds that are left; fewer than none once it is over."""
        return self._ends - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Or as good as: who waits in another language may come back a moment early."""
        return self.rest < MOMENT

    def left(self, *, at_most: float | None = None) -> float:
        """Seconds for the next call; raise TimeoutError where none are left."""
        left = self.rest
        if left <= 0:
            raise TimeoutError(f"not within {self.seconds:g} s")
        return left if at_most is None else min(left, at_most)
