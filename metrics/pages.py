"""The points of many series, page by page: what a file of all of them is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from metrics import chunks
from metrics.chunks import Run
from metrics.rows import Gap, SeriesId, Tail, one_moment, points_of, read_measures, read_tails, sealed_up_to

PAGE = 16  # chunks
BEFORE_ALL = -1  # a step is not negative


@dataclass(slots=True)
class Page:
    """Points of some series, whole series by whole series; the last one may go on."""

    runs: list[tuple[SeriesId, Run, list[Gap]]] = field(default_factory=list)
    goes_on: bool = False
    upto: int = BEFORE_ALL  # the step up to which the last one has been read, if it goes on


def page(job_id: str, wanted: Sequence[SeriesId], *, after: int) -> Page:
    """The next points of these series, each in order: the first one above the step `after`, the others from their start.

    Each page is a moment of its own, so that a download of any length holds neither memory nor a transaction; and unsealed
    bodies, which hold points of all series, are read once for all of a page.
    """
    keys, ranks, attempts = (set(column) for column in zip(*wanted, strict=True))
    found = Page()
    room = PAGE * chunks.FULL
    with one_moment():
        tails = read_tails(job_id, keys=keys, attempts=attempts, ranks=ranks)
        sealed = read_measures(job_id, keys=keys, attempts=attempts, ranks=ranks)
        for one in wanted:
            rows = sealed.get(one, [])
            new = tails.get(one, Tail()).above(sealed_up_to(rows))
            ahead = [row for row in rows if row["last_step"] > after]
            now = ahead[: max(1, room // chunks.FULL)]
            found.upto = max((row["last_step"] for row in now), default=BEFORE_ALL)
            found.goes_on = any(row["last_step"] > found.upto for row in ahead)
            if found.goes_on:
                now = [row for row in ahead if row["first_step"] <= found.upto]  # beside a damaged one others may lie
            gaps: list[Gap] = []
            run = chunks.last_wins([*points_of(now, gaps), new])
            run = run.where((run.step > after) & (run.step <= found.upto) if found.goes_on else run.step > after)
            found.runs.append((one, run, gaps))
            room -= len(run)
            if room <= 0 or found.goes_on:
                break
            after = BEFORE_ALL
    return found
