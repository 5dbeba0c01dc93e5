"""Search of a whole log with RE2, which no pattern can hang, over what people see of it; and what is asked for without a
pattern, such as its errors, by the same steps of bounded time.

Whole buffers are matched, not lines: `(?m)` lets ^ and $ mean a line, and never_nl keeps a match inside one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from jobs.exceptions import SpecError
from jobs.logs.levels import KIND, NAMES
from jobs.logs.stretches import PAGE_BYTES, Stretch, Wanted, backward, forward
from jobs.models import JobFeed
from jobs.patterns import MAX_PATTERN, compile_pattern

LARGEST_PROGRAM = 10_000  # instructions of RE2: what it may cost per byte where its quick way is too large
SLICE = 128 * 2**10  # bytes between two looks at the clock
SEQS_AT_MOST = 10_000
BUDGET = 2.0  # seconds a request

# these speak of the text and not of the line, or of bytes; so each line is a text of its own
_LINE_BY_LINE = re.compile(r"\\[AzC]|\(\?[A-Za-z]*-[A-Za-z]*m")
_NONE: NDArray[np.intp] = np.array([], dtype=np.intp)


class Found(NamedTuple):
    """Lines that match, and the seq that was searched up to (down to, where the search went back)."""

    lines: list[dict[str, Any]]
    searched: int
    done: bool


class Counted(NamedTuple):
    total: int
    seqs: list[int]  # of the first SEQS_AT_MOST
    searched: int
    done: bool


class Levels(NamedTuple):
    """How many lines are of each level, by its name."""

    counts: dict[str, int]
    searched: int
    done: bool


class Reached(Protocol):
    @property
    def seq(self) -> int: ...


class Matcher(Protocol):
    """What lines are looked for."""

    def hits(self, stretch: Stretch, *, newest_first: bool = False) -> Iterator[tuple[NDArray[np.intp], Reached]]:
        """Piece after piece: the numbers of the picked lines that match, and the line it is searched up to."""


class Edge(NamedTuple):
    seq: int


class Anything:
    """Every line that is wanted; without the earlier states of progress bars where only what people see `counts`."""

    def __init__(self, *, seen_only: bool = False) -> None:
        self.seen_only = seen_only

    def hits(self, stretch: Stretch, *, newest_first: bool = False) -> Iterator[tuple[NDArray[np.intp], Reached]]:
        numbers = stretch.picked
        if len(numbers):
            edge = Edge(int(stretch.seqs[numbers[0 if newest_first else -1]]))
            yield numbers[~stretch.overwritten[numbers]] if self.seen_only else numbers, edge


@dataclass(frozen=True, slots=True)
class Pattern:
    regex: Any
    line_by_line: bool

    @classmethod
    def parse(cls, text: str, *, ignore_case: bool = False, literal: bool = False) -> Pattern:
        """Raise SpecError saying what is wrong with it."""
        if len(text) > MAX_PATTERN:
            raise _refused(_("The pattern is longer than %(most)d characters.") % {"most": MAX_PATTERN})
        if "\n" in text or "\r" in text:
            raise _refused(_("The pattern holds a line end; a search looks at one line at a time."))
        try:
            regex = compile_pattern(text, case_sensitive=not ignore_case, literal=literal, of_many_lines=True)
        except ValueError as error:
            raise _refused(_("This is no regular expression of RE2: %(said)s.") % {"said": error}) from error
        if regex.programsize > LARGEST_PROGRAM:
            raise _refused(_("The pattern grows too large, by its repetitions; make them smaller."))
        return cls(regex, line_by_line=not literal and bool(_LINE_BY_LINE.search(text)))

    def hits(self, stretch: Stretch, *, newest_first: bool = False) -> Iterator[tuple[NDArray[np.intp], Reached]]:
        if not len(stretch.picked):
            return
        index = _Index(stretch)
        for start, end in _slices(index.text, *index.span(), newest_first=newest_first):
            places = self._places(index.text, start, end)
            yield index.picked_at(places), Place(index, start if newest_first else end)

    def _places(self, text: bytes, start: int, end: int) -> list[int]:
        """A place in each of the lines between two places of a text that match."""
        search, at = self.regex.search, start
        places: list[int] = []
        if self.line_by_line:
            while at <= end:
                following = text.find(b"\n", at, end)
                following = end if following < 0 else following
                if search(text[at:following]):
                    places.append(at)
                at = following + 1
            return places
        while at <= end and (match := search(text, at, end)):
            places.append(match.start())
            following = text.find(b"\n", places[-1], end)
            if following < 0:
                break
            at = following + 1
        return places


class _Index:
    """From places in what is seen of a stretch to its lines; looked up only once something is found."""

    def __init__(self, stretch: Stretch) -> None:
        self.stretch = stretch
        self.text, self.numbers = stretch.seen()

    @cached_property
    def ends(self) -> NDArray[np.intp]:
        return np.append(np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == ord("\n")), len(self.text))

    @cached_property
    def wanted(self) -> NDArray[np.bool_]:
        wanted = np.zeros(len(self.stretch.seqs), dtype=np.bool_)
        wanted[self.stretch.picked] = True
        return wanted

    def span(self) -> tuple[int, int]:
        """Where the first picked line begins and the last one ends; the end before the start where none is seen."""
        picked = self.stretch.picked
        first, last = np.searchsorted(self.numbers, (picked[0], picked[-1] + 1)).tolist()
        if first == last:
            return 0, -1
        start = int(self.ends[first - 1]) + 1 if first else 0
        return start, len(self.text) if last == len(self.numbers) else int(self.ends[last - 1])

    def picked_at(self, places: list[int]) -> NDArray[np.intp]:
        if not places:
            return _NONE
        numbers = self.numbers[np.searchsorted(self.ends, places)]
        return numbers[self.wanted[numbers]]


class Place(NamedTuple):
    where: _Index
    at: int

    @property
    def seq(self) -> int:
        row = np.searchsorted(self.where.ends, self.at)
        return int(self.where.stretch.seqs[self.where.numbers[row]])


def _slices(text: bytes, start: int, end: int, *, newest_first: bool) -> list[tuple[int, int]]:
    """Whole lines in pieces of about SLICE bytes."""
    pieces = []
    while start <= end:
        cut = text.find(b"\n", start + SLICE, end)
        pieces.append((start, end if cut < 0 else cut))
        start = pieces[-1][1] + 1
    return pieces[::-1] if newest_first else pieces


def find_after(job_id: str, pattern: Matcher, wanted: Wanted, *, limit: int, budget: float = BUDGET) -> Found:
    """The first `limit` lines that match, or as many as the time allows and an answer holds."""
    end = time.monotonic() + budget
    newest = _last_seq(job_id)
    searched, lines, room = wanted.after, list[dict[str, Any]](), PAGE_BYTES
    for stretch in forward(job_id, wanted):
        for numbers, upto in pattern.hits(stretch):
            known = len(lines)
            lines += stretch.lines(numbers[: limit - known])
            if len(lines) >= limit:
                return Found(lines, lines[-1]["seq"], False)
            room -= sum(len(line["text"]) for line in lines[known:])
            if room <= 0 or time.monotonic() >= end:
                return Found(lines, upto.seq, False)
        searched = max(searched, _end_of(stretch, wanted))
        if time.monotonic() >= end:  # also where a stretch has nothing of it
            return Found(lines, searched, False)
    return Found(lines, max(searched, min(newest, wanted.before - 1)), True)


def find_before(job_id: str, pattern: Matcher, wanted: Wanted, *, limit: int, budget: float = BUDGET) -> Found:
    """The same from the end: the last `limit` lines that match, in the order of the log."""
    end = time.monotonic() + budget
    lines, room = list[dict[str, Any]](), PAGE_BYTES
    for stretch in backward(job_id, wanted):
        for numbers, downto in pattern.hits(stretch, newest_first=True):
            more = stretch.lines(numbers[-(limit - len(lines)) :])
            lines = more + lines
            if len(lines) >= limit:
                return Found(lines, lines[0]["seq"], False)
            room -= sum(len(line["text"]) for line in more)
            if room <= 0 or time.monotonic() >= end:
                return Found(lines, downto.seq, False)
        if time.monotonic() >= end:
            return Found(lines, max(int(stretch.seqs[0]), wanted.after), False)
    return Found(lines, wanted.after, True)


def count(job_id: str, pattern: Matcher, wanted: Wanted, *, budget: float = BUDGET) -> Counted:
    """How many lines match, as far as the time allows."""
    end = time.monotonic() + budget
    newest = _last_seq(job_id)
    total, seqs, searched = 0, list[int](), wanted.after
    for stretch in forward(job_id, wanted):
        for numbers, upto in pattern.hits(stretch):
            total += len(numbers)
            seqs += stretch.seqs[numbers[: SEQS_AT_MOST - len(seqs)]].tolist()
            if time.monotonic() >= end:
                return Counted(total, seqs, upto.seq, False)
        searched = max(searched, _end_of(stretch, wanted))
        if time.monotonic() >= end:  # also where a stretch has nothing of it
            return Counted(total, seqs, searched, False)
    return Counted(total, seqs, max(searched, min(newest, wanted.before - 1)), True)


def count_levels(job_id: str, pattern: Matcher, wanted: Wanted, *, budget: float = BUDGET) -> Levels:
    """How many of the lines are of each level, as far as the time allows."""
    end = time.monotonic() + budget
    newest = _last_seq(job_id)
    counts = np.zeros(KIND + 1, dtype=np.int64)
    searched = wanted.after

    def answer(upto: int, *, done: bool) -> Levels:
        return Levels({name: int(counts[level]) for name, level in NAMES.items()}, upto, done)

    for stretch in forward(job_id, wanted):
        for numbers, upto in pattern.hits(stretch):
            counts += np.bincount(stretch.levels[numbers] & KIND, minlength=KIND + 1)
            if time.monotonic() >= end:
                return answer(upto.seq, done=False)
        searched = max(searched, _end_of(stretch, wanted))
        if time.monotonic() >= end:  # also where a stretch has nothing of it
            return answer(searched, done=False)
    return answer(max(searched, min(newest, wanted.before - 1)), done=True)


def _end_of(stretch: Stretch, wanted: Wanted) -> int:
    return min(int(stretch.seqs[-1]), wanted.before - 1)


def _last_seq(job_id: str) -> int:
    # asked before the lines: all up to this one are then met
    return JobFeed.objects.values_list("log_seq", flat=True).get(pk=job_id)


def _refused(words: str) -> SpecError:
    return SpecError(words, fields={"q": [words]})
