"""Numbers as programs print them: `0.51s` is 0.51, `1.2.3`, `10:30`, `0x1f` and `2026-01-02` are none (pure).

The longest number is taken first and what follows it is looked at afterwards. A look-ahead in the pattern would go back
instead, and find 0. in `0.51s`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = re.compile(r"[-+−]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"(?:,\d{3})+(?![\d.,])|(?:,\d{3})+(?=\.\d|,(?!\d)|\.(?!\d))")
_REST_OF_THOUSANDS = re.compile(r"\.\d+")
_WORD = re.compile(r"[-+]?(?:nan|inf(?:inity)?)(?![\w])", re.IGNORECASE)
_UNIT = re.compile(r"[^\W\d_]{1,10}(?:/[^\W\d_]{1,10})?")
_PER_CENT_OF = re.compile(r"\d+ {0,2}\(\s{0,3}(\d+(?:\.\d+)?) {0,2}%\s{0,3}\)")
_TIMES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
LONGEST_WORD = 40


class Numeral(NamedTuple):
    value: float
    end: int
    is_whole: bool  # written without a point or an exponent


def numeral_at(text: str, position: int) -> Numeral | None:
    """The number that begins here, if it is one and nothing else."""
    if word := _WORD.match(text, position):
        return Numeral(float(word.group()), word.end(), False)
    match = _NUMBER.match(text, position)
    if match is None:
        return None
    written, end = match.group().replace("−", "-"), match.end()
    is_whole = written.lstrip("+-").isdigit()
    if is_whole and (more := _THOUSANDS.match(text, end)):
        written, end = written + more.group().replace(",", ""), more.end()
        if rest := _REST_OF_THOUSANDS.match(text, end):
            written, end, is_whole = written + rest.group(), rest.end(), False
    value = float(written)
    after, next_one = text[end : end + 1], text[end + 1 : end + 2]
    if after in "%％":  # also the end of the text
        return Numeral(value, end + len(after), is_whole)
    if after == "/":
        # so many of so many: the share, where it stands beside
        share = _PER_CENT_OF.match(text, end + 1)
        return Numeral(float(share[1]), share.end(), False) if share else None
    if (after in ".:-" and next_one.isdigit()) or after == "_":
        return None
    if unit := _UNIT.match(text, end):
        if text[unit.end() : unit.end() + 1].isalnum():
            return None
        return Numeral(value * _TIMES.get(unit.group(), 1.0), unit.end(), is_whole)
    return Numeral(value, end, is_whole)


def number_of(value: object) -> float | None:
    """A number, or text that is one and nothing else; a truth value is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if not isinstance(value, str) or len(value) > LONGEST_WORD:
        return None
    text = value.strip().removesuffix("%").rstrip()
    match = _WORD.fullmatch(text) or _NUMBER.fullmatch(text)
    return float(text.replace("−", "-")) if match else None
