"""One name told by two doors (UX 5.5): the door that is believed more keeps it. Where both say the same, the other one is
left out; where they differ, or it tells steps that the other has passed over, it becomes a second series beside,
`loss (stdout)`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from metrics import store
from metrics.batches import NAME_LENGTH
from metrics.models import MetricKey
from metrics.packed import Series
from metrics.sources import STDOUT, is_above, suffixed

AGREED_AFTER = 3  # steps with equal values
MOST_VERDICTS = 100_000  # remembered at one time
SINGLE = 1e-6  # event files hold float32, and a program may print less exactly than it reports


class Verdict(Enum):
    SAME = "same"
    OTHER = "other"
    OPEN = "open"


@dataclass(slots=True)
class Settled:
    """What of some series is to be stored, under which name, and what cannot be decided yet."""

    series: list[Series] = field(default_factory=list)
    undecided: list[Series] = field(default_factory=list)


class Precedence:
    """Remembers that two doors say the same of a series; that they differ is known by the name of the second series."""

    def __init__(self) -> None:
        self._same: OrderedDict[tuple[str, int, int, str, str], None] = OrderedDict()

    def settle(
        self, job_id: str, attempt: int, rank: int, series: list[Series], source: str, *, most_waiting: int
    ) -> Settled:
        """Drop or rename what a door that is believed more reports too. One query where there is none.

        A series of more than `most_waiting` points is decided now: what this door alone has told must not be lost by waiting.
        """
        settled = Settled()
        beside = {one.key: suffixed(one.key, source, most=NAME_LENGTH) for one in series}
        sources = dict(
            MetricKey.objects.filter(job_id=job_id, key__in=[*beside, *beside.values()]).values_list("key", "source")
        )
        for one in series:
            other = sources.get(one.key)
            if other is None or not is_above(other, source):
                settled.series.append(one)
                continue
            verdict = Verdict.OTHER
            if beside[one.key] not in sources:
                may_wait = source == STDOUT and len(one) <= most_waiting
                verdict = self._compare(job_id, attempt, rank, one, source, may_wait=may_wait)
            if verdict is Verdict.OTHER:
                settled.series.append(Series(beside[one.key], one.group, one.step, one.time, one.value))
            elif verdict is Verdict.OPEN:
                settled.undecided.append(one)
        return settled

    def _compare(self, job_id: str, attempt: int, rank: int, one: Series, source: str, *, may_wait: bool) -> Verdict:
        name = (job_id, attempt, rank, one.key, source)
        if name in self._same:
            self._same.move_to_end(name)
            return Verdict.SAME
        # to its end: where it stands beyond a step that it has not told, it never will tell it
        found = store.read_series(job_id, keys=[one.key], start=float(one.step.min()), attempts=[attempt], ranks=[rank])
        run = found[0].run if found else None
        told = dict(zip(run.step.tolist(), run.value.tolist(), strict=True)) if run is not None else {}
        mine = dict(zip(one.step.tolist(), one.value.tolist(), strict=True))
        common = [(value, told[step]) for step, value in mine.items() if step in told]
        if not all(agrees(value, exact) for value, exact in common):
            return Verdict.OTHER
        newest = max(told, default=-1)
        if any(step <= newest and step not in told for step in mine):
            return Verdict.OTHER
        # text is read as it is printed, ahead of what the SDK sends every two seconds; an event file is flushed much later
        if len(common) >= (AGREED_AFTER if source == STDOUT else 1):
            self._same[name] = None
            while len(self._same) > MOST_VERDICTS:
                self._same.popitem(last=False)
            return Verdict.SAME
        if may_wait:
            return Verdict.OPEN
        return Verdict.SAME if len(common) == len(mine) else Verdict.OTHER


def agrees(printed: float, exact: float) -> bool:
    """Whether a number is the other one rounded to the digits that it has."""
    if math.isnan(printed) or math.isnan(exact):
        return math.isnan(printed) and math.isnan(exact)
    if printed == exact:
        return True
    if math.isinf(printed) or math.isinf(exact):
        return False
    text = np.format_float_positional(printed, unique=True, trim="-")
    digits = len(text.partition(".")[2])
    rounding = 0.5 * 10.0**-digits * (1 + 1e-9)
    return abs(printed - exact) <= max(rounding, SINGLE * abs(exact))
