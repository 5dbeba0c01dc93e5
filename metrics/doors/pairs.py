"""Names with numbers in free text: `loss=0.5`, `lm loss: 9.4E+00 |`, `准确率：93.5%`, `epoch 3 loss 0.5` (pure).

From each separator the number is looked for to its right and the name to its left, at most so many characters away: the
cost of a line grows with its length and nothing is tried twice.
"""

from __future__ import annotations

import re

from metrics.doors.numerals import Numeral, numeral_at
from metrics.doors.reading import Found, Reading
from metrics.doors.words import FILLERS, LEVELS, PARTS, Kind, kind_of, of_part

LONGEST_NAME = 80  # characters of a name in free text
MOST_WORDS = 5
MOST_PAIRS = 200

_SEPARATOR = re.compile(r"[=:＝：]\s{0,8}")
_COUNT = r"\s{0,3}[:=：＝#]?\s{0,8}[\[(]?\s{0,8}(\d{1,18})(?:\s{0,8}(?:/|of)\s{0,8}(\d{1,18}))?(?!\d|\.\d|%)"
_STEP = re.compile(
    r"(?<![\w/])(?<!per )(?:global[ _-]?step|train(?:ing)?[ _-]step|step|iteration|iter|ステップ|步数|步|第)" + _COUNT,
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"(?<![\w/])(?:epoch|エポック)\s{0,3}[:=：＝#]?\s{0,8}[\[(]?\s{0,8}(\d{1,9}(?:\.\d{1,9})?)(?:\s{0,8}(?:/|of)\s{0,8}\d{1,9})?(?!\d)"
    r"|第\s{0,3}(\d{1,9})\s{0,3}(?:轮|个?epoch|エポック|周期)",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"[\[(]\s{0,8}(\d{1,18})\s{0,8}/\s{0,8}(\d{1,18})")
_DELIMITER = re.compile(r"[,;|、，；。()\[\]{}<>\"'“”`\t=:：＝]|\s-+\s|\s{2,}|→")
_WORD = re.compile(r"[^\W\d_][\w./@%+\-#^*&]*|_[\w./\-]+")
_UNIT_OF_NAME = re.compile(r"\s?\([^()]{0,12}\)\s*$")
_LABEL = re.compile(r"[\W_]*([^\W\d_]{2,12})(?=[\s\]):：|>-])")
_BETWEEN_COLUMNS = re.compile(r"[\s,;|:\-\[\]]*")
_ASIDE = re.compile(r"\s{0,8}\([\s\d.eE+\-%]{0,24}\)")


def read_pairs(text: str, *, by: str = "pairs", offset: int = 0, part: str | None = None) -> Reading:
    """Everything `text` says; `offset` is where it begins in its line."""
    reading = Reading()
    counted = _read_counts(reading, text)
    part = part_of(text) if part is None else part
    _read_separated(reading, text, counted, by=by, offset=offset, part=part)
    if not reading.metrics and (reading.step is not None or reading.epoch is not None or reading.fraction):
        _read_columns(reading, text, counted, by=by, offset=offset, part=part)
    return reading


def part_of(text: str) -> str:
    """The part of the data that the first word of a line names: train, val, eval, test, or nothing."""
    match = _LABEL.match(text)
    return PARTS.get(match[1].lower(), "") if match else ""


def _read_counts(reading: Reading, text: str) -> list[tuple[int, int]]:
    """Step, epoch and the place within a round; returns where they stand."""
    spans = []
    if epoch := _EPOCH.search(text):
        reading.set_epoch(float(epoch[1] or epoch[2]))
        spans.append(epoch.span())
    for step in _STEP.finditer(text):
        if epoch and step.start() == epoch.start():
            continue
        if step.group().startswith("第") and text[step.end() : step.end() + 1] not in ("步", "次"):
            continue
        if step[2] and int(step[2]) > 0:
            reading.fraction = int(step[1]), int(step[2])
        else:
            reading.set_step(float(int(step[1])))
        spans.append(step.span())
        break
    if reading.fraction is None and reading.step is None:
        for fraction in _FRACTION.finditer(text):
            if all(fraction.start() >= end or fraction.end() <= start for start, end in spans) and int(fraction[2]) > 0:
                reading.fraction = int(fraction[1]), int(fraction[2])
                spans.append(fraction.span())
                break
    return spans


def _read_separated(
    reading: Reading, text: str, counted: list[tuple[int, int]], *, by: str, offset: int, part: str
) -> None:
    before = 0  # the end of the pair before: a name does not reach further back
    for separator in _SEPARATOR.finditer(text):
        place = separator.start()
        if len(reading.metrics) >= MOST_PAIRS:
            return
        if text[place + 1 : place + 2] in ("=", ":") or text[place - 1 : place] in ("=", ":", "!", "<", ">"):
            continue
        if any(start <= place < end for start, end in counted):
            before = max(before, separator.end())
            continue
        number = numeral_at(text, separator.end())
        if number is None:
            continue
        is_tight = separator.end() == place + 1
        reach = max([before, *(end for _start, end in counted if end <= place)])
        name = _name_before(text, reach, place, one_word=is_tight and separator.group()[0] in "=＝")
        if not name:
            continue
        if is_tight and separator.group()[0] == ":" and number.is_whole and text[number.end - 1] not in "%％":
            continue  # host:8000, cuda:0, train.py:12
        before = number.end
        _add(reading, name, number, by=by, start=offset + place, part=part)


def _add(reading: Reading, name: str, number: Numeral, *, by: str, start: int, part: str) -> None:
    match kind_of(name):
        case Kind.STEP:
            if reading.step is None and reading.fraction is None:
                reading.set_step(number.value)
        case Kind.EPOCH:
            if reading.epoch is None:
                reading.set_epoch(number.value)
        case Kind.TOTAL:
            reading.total = int(number.value) if 0 < number.value < 2**63 else None
        case Kind.DENIED:
            reading.ignored.append((name, "denied"))
        case Kind.METRIC:
            reading.metrics.append(Found(of_part(name, part), number.value, by, start - len(name)))


def _name_before(text: str, start: int, end: int, *, one_word: bool) -> str:
    """The words before a separator that are its name: `train loss` of `[epoch 3] train loss: 0.5`."""
    piece = text[max(start, end - LONGEST_NAME) : end].rstrip().rstrip("\"'`”").rstrip()
    piece = _UNIT_OF_NAME.sub("", piece)
    piece = _DELIMITER.split(piece)[-1]
    words: list[str] = []
    for word in reversed(piece.split()):
        if not _WORD.fullmatch(word):
            break
        words.insert(0, word)
        if one_word or len(words) == MOST_WORDS:
            break
    while words and words[0].lower() in LEVELS | FILLERS:
        words.pop(0)
    while words and words[-1].lower() in FILLERS:
        words.pop()
    return " ".join(words)


def _read_columns(
    reading: Reading, text: str, counted: list[tuple[int, int]], *, by: str, offset: int, part: str
) -> None:
    """A line that names its step or epoch and is words and numbers in turn from end to end; else nothing."""
    found: list[tuple[str, Numeral, int]] = []
    position = 0
    while True:
        between = _BETWEEN_COLUMNS.match(text, position)
        position = between.end() if between else position
        span = next((end for start, end in counted if start <= position < end), None)
        if span is not None:
            position = span
            continue
        if position >= len(text):
            break
        if text[position] in ")]" and found == []:
            position += 1
            continue
        word = _WORD.match(text, position)
        if word is None:
            return
        gap = len(text[word.end() : word.end() + 9]) - len(text[word.end() : word.end() + 9].lstrip())
        number = numeral_at(text, word.end() + gap) if gap else None
        if number is None:
            if not found and word.group().lower() in PARTS | dict.fromkeys(LEVELS, ""):
                position = word.end()  # a label before the first column
                continue
            return
        found.append((word.group(), number, word.start()))
        aside = _ASIDE.match(text, number.end)
        position = aside.end() if aside else number.end
    for name, number, start in found:
        _add(reading, name, number, by=by, start=offset + start + len(name), part=part)
