"""Search of a whole log with RE2, which no pattern can hang, over what people see of it.

Whole buffers are matched, not lines: `(?m)` lets ^ and $ mean a line, and never_nl keeps a match inside one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import re2
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from jobs.exceptions import SpecError
from jobs.log_stretches import Stretch, Wanted, backward, forward
from jobs.models import JobFeed

LONGEST_PATTERN = 1000
LARGEST_PROGRAM = 10_000  # instructions of RE2: what it may cost per byte where its quick way is too large
SLICE = 128 * 2**10  # bytes between two looks at the clock
SEQS_AT_MOST = 10_000
BUDGET = 2.0  # seconds a request

# these speak of the text and not of the line, or of bytes; so each line is a text of its own
_LINE_BY_LINE = re.compile(r"\\[AzC]|\(\?[A-Za-z]*-[A-Za-z]*m")


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


@dataclass(frozen=True, slots=True)
class Pattern:
    regex: Any
    line_by_line: bool

    @classmethod
    def parse(cls, text: str, *, ignore_case: bool = False, literal: bool = False) -> Pattern:
        """Raise SpecError saying what is wrong with it."""
        options = re2.Options()
        options.never_nl = True
        options.never_capture = True
        options.log_errors = False
        options.case_sensitive = not ignore_case
        options.literal = literal
        if len(text) > LONGEST_PATTERN:
            raise _refused(_("The pattern is longer than %(most)d characters.") % {"most": LONGEST_PATTERN})
        if "\n" in text or "\r" in text:
            raise _refused(_("The pattern holds a line end; a search looks at one line at a time."))
        try:
            # alone first: the words about an error must not show our prefix
            regex = re2.compile(text, options)
            if not literal:
                regex = re2.compile(f"(?m){text}", options)
        except (re2.error, UnicodeEncodeError) as error:
            said = error.args[0].decode(errors="replace") if isinstance(error, re2.error) else str(error)
            raise _refused(_("This is no regular expression of RE2: %(said)s.") % {"said": said}) from error
        if regex.programsize > LARGEST_PROGRAM:
            raise _refused(_("The pattern grows too large, by its repetitions; make them smaller."))
        return cls(regex, line_by_line=not literal and bool(_LINE_BY_LINE.search(text)))

    def hits(self, stretch: Stretch, *, newest_first: bool = False) -> Iterator[tuple[NDArray[np.intp], int]]:
        """Slice after slice: the numbers of the picked lines that match, and the number of the line it is searched up to."""
        picked = stretch.picked
        if not len(picked):
            return
        seen = stretch.seen()
        first, last = np.searchsorted(seen.numbers, (picked[0], picked[-1] + 1)).tolist()
        if first == last:
            return
        wanted = np.zeros(len(stretch.seqs), dtype=np.bool_)
        wanted[picked] = True
        ends = np.append(np.flatnonzero(np.frombuffer(seen.text, dtype=np.uint8) == ord("\n")), len(seen.text))
        for some in _slices(ends, first, last, newest_first=newest_first):
            rows = self._rows(
                seen.text, int(ends[some.start - 1]) + 1 if some.start else 0, int(ends[some.stop - 1]), ends
            )
            numbers = seen.numbers[rows]
            yield numbers[wanted[numbers]], int(seen.numbers[some.start if newest_first else some.stop - 1])

    def _rows(self, text: bytes, start: int, end: int, ends: NDArray[np.intp]) -> NDArray[np.intp]:
        """Which of the lines between two places of a text match."""
        search, at = self.regex.search, start
        places: list[int] = []
        if self.line_by_line:
            while at <= end:
                following = text.find(b"\n", at, end)
                following = end if following < 0 else following
                if search(text[at:following]):
                    places.append(at)
                at = following + 1
        else:
            while at <= end and (match := search(text, at, end)):
                places.append(match.start())
                following = text.find(b"\n", places[-1], end)
                if following < 0:
                    break
                at = following + 1
        return np.searchsorted(ends, np.array(places, dtype=np.intp))


def _slices(ends: NDArray[np.intp], first: int, last: int, *, newest_first: bool) -> Iterator[range]:
    """Lines `first` to `last` in pieces of about SLICE bytes; `ends` says where each line ends."""
    borders = [first]
    while borders[-1] < last:
        start = int(ends[borders[-1] - 1]) if borders[-1] else 0
        borders.append(min(last, max(borders[-1] + 1, int(np.searchsorted(ends, start + SLICE)))))
    pieces = list(map(range, borders, borders[1:]))
    return reversed(pieces) if newest_first else iter(pieces)


def find_after(job_id: str, pattern: Pattern, wanted: Wanted, *, limit: int, budget: float = BUDGET) -> Found:
    """The first `limit` lines that match."""
    end = time.monotonic() + budget
    newest = _last_seq(job_id)
    searched, lines = wanted.after, list[dict[str, Any]]()
    for stretch in forward(job_id, wanted):
        for numbers, upto in pattern.hits(stretch):
            lines += stretch.lines(numbers[: limit - len(lines)])
            if len(lines) >= limit:
                return Found(lines, lines[-1]["seq"], False)
            searched = int(stretch.seqs[upto])
            if time.monotonic() >= end:
                return Found(lines, searched, False)
        searched = max(searched, stretch.last_picked)
    return Found(lines, max(searched, min(newest, wanted.before - 1)), True)


def find_before(job_id: str, pattern: Pattern, wanted: Wanted, *, limit: int, budget: float = BUDGET) -> Found:
    """The last `limit` lines that match, in the order of the log."""
    end = time.monotonic() + budget
    lines: list[dict[str, Any]] = []
    for stretch in backward(job_id, wanted):
        for numbers, downto in pattern.hits(stretch, newest_first=True):
            lines = stretch.lines(numbers[-(limit - len(lines)) :]) + lines
            if len(lines) >= limit:
                return Found(lines, lines[0]["seq"], False)
            if time.monotonic() >= end:
                return Found(lines, int(stretch.seqs[downto]), False)
    return Found(lines, wanted.after, True)


def count(job_id: str, pattern: Pattern, wanted: Wanted, *, budget: float = BUDGET) -> Counted:
    """How many lines match, as far as the time allows."""
    end = time.monotonic() + budget
    newest = _last_seq(job_id)
    total, seqs, searched = 0, list[int](), wanted.after
    for stretch in forward(job_id, wanted):
        for numbers, upto in pattern.hits(stretch):
            total += len(numbers)
            seqs += stretch.seqs[numbers[: SEQS_AT_MOST - len(seqs)]].tolist()
            searched = int(stretch.seqs[upto])
            if time.monotonic() >= end:
                return Counted(total, seqs, searched, False)
        searched = max(searched, stretch.last_picked)
    return Counted(total, seqs, max(searched, min(newest, wanted.before - 1)), True)


def _last_seq(job_id: str) -> int:
    # asked before the lines: all up to this one are then met
    return JobFeed.objects.values_list("log_seq", flat=True).get(pk=job_id)


def _refused(words: str) -> SpecError:
    return SpecError(words, fields={"q": [words]})
