"""What the stdout door remembers of a worker: where its steps stand, and which names have shown themselves (pure).

Most lines do not say their step. Then it is the last one that was said; where none ever was, the number of the line. A name
is only believed when it comes for the third time; what it said before is given then, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from metrics.doors.reading import LAST_STEP, Reading
from metrics.doors.words import is_of_evaluation

BELIEVED_AFTER = 3  # times
MOST_CANDIDATES = 500  # names that wait to be believed; of more the oldest are forgotten


class Point(NamedTuple):
    step: int
    time: float
    value: float


@dataclass(slots=True)
class Gathered:
    """What some lines gave: points by name, and how far the training is."""

    points: dict[str, list[Point]] = field(default_factory=dict)
    progress: dict[str, Any] | None = None

    def add(self, key: str, points: Iterable[Point]) -> None:
        self.points.setdefault(key, []).extend(points)


@dataclass(slots=True)
class Memory:
    """`admit` says whether there is room for one more name, and takes it."""

    admit: Callable[[str], bool]
    believed: set[str] = field(default_factory=set)
    candidates: dict[str, list[Point]] = field(default_factory=dict)
    step: int | None = None
    epoch: float | None = None
    _plain: int = -1  # the step as it was last written
    _offset: int = 0  # of steps that begin anew with each epoch
    _total: int = 0  # of the round that counts the steps
    _carries: bool = False  # whether that round has told numbers of the training
    _place: int = -1
    _rounds: int = 0

    def take(self, number: int, time: float, reading: Reading, gathered: Gathered) -> None:
        """Add what a line says to `gathered`, as far as it is believed."""
        if reading.is_empty:
            return
        said_step = self._follow(reading)
        if said_step or reading.total:
            self._note_progress(reading, gathered)
        if not reading.metrics:
            return
        step = self.step if self.step is not None else _without_step(number, reading)
        metrics = {one.key: one.value for one in reading.metrics}
        if reading.epoch is not None and "epoch" not in metrics:
            metrics["epoch"] = reading.epoch
        for key, value in metrics.items():
            self._add(key, Point(step, time, value), gathered, at_once=reading.says_so)

    def _add(self, key: str, point: Point, gathered: Gathered, *, at_once: bool) -> None:
        if key in self.believed:
            gathered.add(key, [point])
            return
        waiting = self.candidates.setdefault(key, [])
        waiting.append(point)
        if at_once or len(waiting) >= BELIEVED_AFTER:
            del self.candidates[key]
            if self.admit(key):
                self.believed.add(key)
                gathered.add(key, waiting)
        elif len(self.candidates) > MOST_CANDIDATES:
            del self.candidates[next(iter(self.candidates))]

    def _follow(self, reading: Reading) -> bool:
        """Move on to the step that the line says; False where it says none."""
        moved = False
        if reading.fraction is not None:
            moved = self._follow_round(*reading.fraction, carries=_tells_of_training(reading))
        elif reading.step is not None:
            self._follow_step(reading)
            moved = True
        if reading.epoch is not None:
            self.epoch = reading.epoch
        return moved

    def _follow_round(self, place: int, total: int, *, carries: bool) -> bool:
        """A place within a round; one that falls back begins the next.

        Bars of other lengths come before, inside and after the training's: of data that is prepared, of an evaluation. The
        training's is the one that tells numbers; the others move nothing, and among equals the longest is it.
        """
        if total != self._total:
            if (carries, total) < (self._carries, self._total):
                return False
            self._total, self._rounds, self._place, self._carries = total, 0, -1, False
        self._carries = self._carries or carries
        if place < self._place:
            self._rounds += 1
        self._place = place
        self.step = min(self._rounds * total + place, LAST_STEP)
        return True

    def _follow_step(self, reading: Reading) -> None:
        assert reading.step is not None
        if reading.says_so:
            self.step = reading.step
            return
        falls_back = reading.step < self._plain and self.step is not None
        if falls_back and reading.epoch is not None and self.epoch is not None and reading.epoch > self.epoch:
            self._offset = self.step or 0  # counted anew in each epoch
        self._plain = reading.step
        self.step = min(self._offset + reading.step, LAST_STEP)

    def _note_progress(self, reading: Reading, gathered: Gathered) -> None:
        total = reading.total
        if reading.fraction is not None and reading.epoch is None and self._rounds == 0:
            total = reading.fraction[1]  # where rounds repeat, one of them is not the whole
        found = {"step": self.step, "total": total, "epoch": reading.epoch if reading.epoch is not None else self.epoch}
        gathered.progress = {name: value for name, value in found.items() if value is not None}


def _tells_of_training(reading: Reading) -> bool:
    return any(not is_of_evaluation(one.key) for one in reading.metrics)


def _without_step(number: int, reading: Reading) -> int:
    """A whole epoch of the same line counts well enough; else the lines are counted, or all until the next epoch were one."""
    epoch = reading.epoch
    return int(epoch) if epoch is not None and epoch == int(epoch) else number
