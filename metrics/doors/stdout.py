"""The stdout door: one line of any program's output, read for its numbers (UX 5.4). Pure.

First what was written for machines, then progress bars, then names with numbers in free text; the rules of the runtime come
on top of each and win where both name the same metric.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from metrics.doors.bars import read_bar
from metrics.doors.objects import read_object
from metrics.doors.pairs import read_pairs
from metrics.doors.reading import Reading
from metrics.doors.rules import Rule

LONGEST_LINE = 4096  # characters that are read
LONGEST_OBJECT = 64 * 1024  # of a line that begins with {

_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_MAY_TELL = re.compile(r"[=:＝：|{%(]|(?<!\w)(?:epoch|step|iter|エポック|第)", re.IGNORECASE)
_DIGIT_OR_WORD = re.compile(r"\d|nan|inf", re.IGNORECASE)


def plain(text: str) -> str:
    """The line as it is left on a screen: without colours, after the last carriage return, not longer than is read."""
    text = text[: 2 * LONGEST_OBJECT].rstrip("\r\n")
    text = text.rpartition("\r")[2]
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = text.strip(" \t")
    return text[:LONGEST_OBJECT] if text.startswith("{") else text[:LONGEST_LINE]


def read_line(text: str, rules: Sequence[Rule] = ()) -> Reading:
    """What one line says; an empty reading where it says nothing."""
    text = plain(text)
    reading = _read(text)
    if rules:
        _apply(rules, text, reading)
    return reading


def _read(text: str) -> Reading:
    if not _DIGIT_OR_WORD.search(text) or not _MAY_TELL.search(text):
        return Reading()
    if text.endswith("}"):
        reading, message = read_object(text)
        if reading is not None:
            if message and not reading.metrics:
                return read_pairs(message[:LONGEST_LINE])
            return reading
    bar = read_bar(text)
    return read_pairs(text[:LONGEST_LINE]) if bar is None else bar


def _apply(rules: Sequence[Rule], text: str, reading: Reading) -> None:
    found = Reading(step=reading.step, epoch=reading.epoch, total=reading.total)
    for rule in rules:
        rule.read(text, found)
    if not found.says_so:
        return
    named = {one.key for one in found.metrics}
    reading.metrics = found.metrics + [one for one in reading.metrics if one.key not in named]
    if found.step is not None:
        reading.step, reading.fraction = found.step, None
    reading.epoch, reading.total, reading.says_so = found.epoch, found.total, True
