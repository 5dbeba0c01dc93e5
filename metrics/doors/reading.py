"""What one line of output says (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field

LAST_STEP = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Found:
    """A number with a name. `start` is where it stands in the line, where that is known."""

    key: str
    value: float
    by: str  # json, dict, tqdm, pairs, or the rule
    start: int | None = None


@dataclass(slots=True)
class Reading:
    """Everything read from a line. A fraction is a place within a round: batch 10 of 938."""

    metrics: list[Found] = field(default_factory=list)
    step: int | None = None
    epoch: float | None = None
    total: int | None = None
    fraction: tuple[int, int] | None = None
    says_so: bool = False  # the line means to report: it is an object with its step, or a rule of the runtime matched
    ignored: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.metrics or self.fraction) and self.step is None and self.epoch is None

    def set_step(self, value: float) -> None:
        if 0 <= value <= LAST_STEP and value == int(value):
            self.step = int(value)

    def set_epoch(self, value: float) -> None:
        if 0 <= value < 1e9:
            self.epoch = value
