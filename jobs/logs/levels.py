"""How serious a line says it is, from its text alone (pure). docs/researcher.md has these rules in words.

A line that says nothing of itself is plain. A traceback is of the level of the error it tells, from its first line to the
exception; several ranks may write theirs through one worker, each behind a prefix of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np
import re2
from numpy.typing import NDArray


class Level(IntEnum):
    PLAIN = 0
    DEBUG = 1
    INFO = 2
    WARNING = 3
    ERROR = 4


NAMES = {level.name.lower(): level for level in reversed(Level)}
KIND = 7  # the bits of the level
CONTINUES = 8  # beside them: the line only goes on with what began above

_LOOKED_AT = 1000  # characters of a line
_FAR = 160  # characters before a level in brackets that is still one of the line
_MOST_OPEN = 16  # tracebacks of one worker at a time
_LONGEST_PREFIX = 40
_GROUP = " "  # the prefix of an exception group, which is indented as a whole

_WORDS = {
    **dict.fromkeys(("trace", "debug"), Level.DEBUG),
    **dict.fromkeys(("info", "notice", "success"), Level.INFO),
    **dict.fromkeys(("warn", "warning"), Level.WARNING),
    **dict.fromkeys(("error", "fatal", "critical", "severe"), Level.ERROR),
}
_LETTERS = {"I": Level.INFO, "W": Level.WARNING, "E": Level.ERROR, "F": Level.ERROR}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_PREFIX = r"(?:\[[^\]\n]{1,30}\]:?\s*)?"  # such as torchrun's "[rank0]: "
_STAMP = r"[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[T ,]+)?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?"
# Each ends with the word that says the level, or is an error. The first that fits counts, all begin with the line.
_RULES = (
    rf'\s*\{{.*?"(?:level|levelname|severity|lvl|log_level|log\.level)"\s*:\s*"(?i:{_WORD})"',
    rf"{_PREFIX}\[?[IWEF](?:\d{{4}}|\d{{8}}) \d\d:\d\d:\d\d",  # glog, absl, and c10 in brackets
    # after a moment, behind at most four names
    rf"{_PREFIX}{_STAMP}(?:[\s|:,\-\[(<]+[\w.\-/@#]+[\])>]?){{0,4}}?[\s|:,\-\[(<]+(?:{_WORD.upper()})\b",
    rf"{_PREFIX}(?:{_WORD.upper()})\b",
    rf"{_PREFIX}(?i:{_WORD})\s*[:!]",
    rf".*?\[\s*(?i:{_WORD})\s*\]",
    rf"(?:.*?\s)?(?:level|lvl|severity)=[\"']?(?i:{_WORD})\b",
    r"(?:.*?[\s:])?[\w.]*Warning: ",
    r"\[\d+ lines dropped by the rate limit\]$",  # our own word
    r".*?Traceback \(most recent call last\)",
    rf"{_PREFIX}(?:During handling of the above exception, another|The above exception was the direct cause)",
    rf"{_PREFIX}(?:Exception raised from .*\(most recent call first\)|frame #\d+: )",
    rf"{_PREFIX}(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|ExceptionGroup)(?::|$)",
    rf"{_PREFIX}(?:Segmentation fault|Bus error|Aborted|Killed|Illegal instruction|terminate called|Fatal Python error)\b",
)
_GOES_ON = re.compile(r"above exception|most recent call first|frame #\d+: $")
_LAST_WORD = re.compile(r"([A-Za-z]+)[^A-Za-z]*$")
_LETTER = re.compile(r"[IWEF](?=\d{4})")
_BEGINS = re.compile(r"(\s*(?:\+ )?)(Exception Group )?Traceback \(most")


def _compiled() -> re2._Regexp:
    options = re2.Options()
    options.never_nl = True
    options.never_capture = True
    return re2.compile("(?m)^(?:" + "|".join(_RULES) + ")", options)


_REGEX = _compiled()


class LevelReader:
    """Reads the lines of one worker in order; `opened` is what it has to remember for the next of them."""

    def __init__(self, opened: Iterable[str] = ()) -> None:
        self.opened = list(opened)  # prefixes behind which a traceback goes on

    def read(self, texts: Sequence[str]) -> list[int]:
        """The level of each, and CONTINUES where it only goes on with the line above; as people see them, no escapes."""
        found = _matches(texts)
        levels = [int(Level.PLAIN)] * len(texts)
        for number in range(len(texts)) if self.opened or any(map(_opens, found.values())) else found:
            if number in found or self.opened:
                levels[number] = self._read(texts[number], found.get(number, ""))
        return levels

    def _read(self, text: str, match: str) -> int:
        if _opens(match):
            self._open(match)
            return Level.ERROR
        for prefix in self.opened:
            if text.startswith(prefix):
                if prefix == _GROUP:
                    return Level.ERROR | CONTINUES
                rest = text[len(prefix) :]
                if not rest.strip() or rest[0] in " \t":
                    return Level.ERROR | CONTINUES
                self.opened.remove(prefix)
                return _stated(match) or Level.ERROR  # the exception, unless something else came between
        if _GROUP in self.opened:
            self.opened.remove(_GROUP)
        return _stated(match)

    def _open(self, match: str) -> None:
        before = match[: match.rindex("Traceback")]
        prefix = before if before.strip() and len(before) <= _LONGEST_PREFIX else ""
        if begins := _BEGINS.match(match):
            prefix = _GROUP if begins[2] or begins[1].endswith("+ ") else ""
        if prefix not in self.opened and len(self.opened) < _MOST_OPEN:
            self.opened.append(prefix)
            self.opened.sort(key=len, reverse=True)  # the empty one fits every line


def _opens(match: str) -> bool:
    return match.endswith("(most recent call last)")


def _stated(match: str) -> int:
    """What a line says of itself, by the part of it that a rule fits."""
    if not match:
        return Level.PLAIN
    if letter := match[-1].isdecimal() and _LETTER.search(match):
        return _LETTERS[letter[0]]
    if _GOES_ON.search(match):
        return Level.ERROR | CONTINUES
    if match.endswith("rate limit]"):
        return Level.WARNING
    last = _LAST_WORD.search(match)
    word = last[1] if last else ""
    if word.endswith("Warning"):
        return Level.WARNING
    if match.endswith("]") and len(match) > _FAR:
        return Level.PLAIN
    return _WORDS.get(word.lower(), Level.ERROR)


def _matches(texts: Sequence[str]) -> dict[int, str]:
    """By number of the line: the part of it that a rule fits. One look at all of them."""
    lines = [text[:_LOOKED_AT].replace("\n", " ").encode(errors="replace") for text in texts]
    buffer = b"\n".join(lines)
    found: dict[int, str] = {}
    number, end, at = -1, -1, 0
    while at <= len(buffer) and (match := _REGEX.search(buffer, at)):
        start, stop = match.span()
        while end < start:
            number += 1
            end += len(lines[number]) + 1
        found[number] = buffer[start:stop].decode(errors="replace")
        at = end + 1
    return found


def bits(levels: Iterable[Level]) -> NDArray[np.bool_]:
    """For each kind of level whether it is among these, to be indexed by a column of levels."""
    wanted = np.zeros(KIND + 1, dtype=np.bool_)
    wanted[list(levels)] = True
    return wanted
