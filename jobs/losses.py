"""What an attempt that was taken away had reached and what it had saved, so what its next one has to do again (C15, C25). Pure.

Nothing is claimed that was not seen: where the name of a checkpoint tells no step, or steps were not reported, no number is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from jobs.causes.words import gettext_noop as _

_STEP = re.compile(r"(?:step|ckpt|checkpoint|iter)[-_=]?(\d{1,15})", re.IGNORECASE)
_PLAIN = re.compile(r"^(\d{1,15})(?:\.\w+)?$")


class Outcome(StrEnum):
    SAVED = "saved"  # after it was told that it has to go
    EARLIER = "earlier"  # not then, but before
    NOTHING = "nothing"
    UNKNOWN = "unknown"  # its files cannot be seen


@dataclass(frozen=True, slots=True)
class Loss:
    outcome: Outcome
    checkpoint: str = ""  # its name in the checkpoint folder
    step: int | None = None  # of that checkpoint
    reached: int | None = None  # the last step that was reported

    @property
    def lost(self) -> int | None:
        """Steps to be done again; None where that cannot be told."""
        if self.reached is None or self.outcome == Outcome.UNKNOWN:
            return None
        if self.outcome == Outcome.NOTHING:
            return self.reached
        return None if self.step is None else max(0, self.reached - self.step)

    def words(self, gettext: Callable[[str], str], ngettext: Callable[[str, str, int], str]) -> str:
        """One or two sentences."""
        values: dict[str, Any] = {"name": self.checkpoint, "step": self.step, "reached": self.reached}
        said = gettext(_WORDS[self.outcome, self.step is not None]) % values
        return f"{said} {self._lost_words(gettext, ngettext)}".strip()

    def _lost_words(self, gettext: Callable[[str], str], ngettext: Callable[[str, str, int], str]) -> str:
        if self.outcome == Outcome.UNKNOWN:
            return ""
        values = {"lost": self.lost, "reached": self.reached}
        if self.reached is None:
            return gettext("It had reported no step.")
        if self.outcome == Outcome.NOTHING:
            return gettext("It had reached step %(reached)s, and begins again.") % values
        if self.lost is None:
            return (
                gettext("It had reached step %(reached)s; how many of them are lost the name does not tell.") % values
            )
        if not self.lost:
            return gettext("It had reached step %(reached)s: no step is lost.") % values
        return (
            ngettext(
                "It had reached step %(reached)s: %(lost)s step is lost.",
                "It had reached step %(reached)s: %(lost)s steps are lost.",
                self.lost,
            )
            % values
        )


_WORDS: dict[tuple[Outcome, bool], str] = {
    (Outcome.SAVED, True): _("It saved step %(step)s (%(name)s) when it was told to stop."),
    (Outcome.SAVED, False): _("It saved %(name)s when it was told to stop."),
    (Outcome.EARLIER, True): _(
        "It saved nothing when it had to stop; its last checkpoint is of step %(step)s (%(name)s)."
    ),
    (Outcome.EARLIER, False): _("It saved nothing when it had to stop; its last checkpoint is %(name)s."),
    (Outcome.NOTHING, False): _("It had saved nothing."),
    (Outcome.UNKNOWN, False): _("Whether it saved is not known: the portal cannot see its files."),
}


def loss_of(newest: tuple[float, str] | None, *, told_at: float | None, reached: int | None) -> Loss:
    """From the newest complete checkpoint (written when, called how), and when the attempt was told to stop."""
    if newest is None:
        return Loss(Outcome.NOTHING, reached=reached)
    written, name = newest
    found = Loss(Outcome.EARLIER, name, step_of(name, reached), reached)
    after = -1.0 if told_at is None else written - told_at
    # clusters tell whole seconds: of what was written in that second the step tells on which side it lies
    saved = after >= 1 or (after >= 0 and (found.lost is None or found.lost <= 1))
    return replace(found, outcome=Outcome.SAVED) if saved else found


def step_of(name: str, reached: int | None) -> int | None:
    """As its name tells; a number that lies beyond what was reached counts something else."""
    found = _STEP.findall(name) or _PLAIN.findall(name)
    if not found or (reached is not None and int(found[-1]) > reached + 1):
        return None
    return int(found[-1])
