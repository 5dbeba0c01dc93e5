"""Rows and times as a terminal shows them."""

from __future__ import annotations

import json
import re
from typing import Any, List, Optional, Sequence

# what nobody sees and what a terminal would obey, so that no name looks like another one
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_ESCAPED = re.compile(r"[\x1b\t\r]")  # colours and bars are the program's own


def plain(value: Any) -> str:
    """As text of one line, with [U+202E] for what nobody sees."""
    return _HIDDEN.sub(_code, " ".join(str(value).split()))


def line_as_seen(text: str) -> str:
    """A line of a log for a terminal, which goes on to show its colours."""
    return _HIDDEN.sub(lambda found: found[0] if _ESCAPED.match(found[0]) else _code(found), text)


def _code(found: "re.Match[str]") -> str:
    return "[U+{:04X}]".format(ord(found[0]))


def show_json(document: Any) -> None:
    print(json.dumps(document, indent=2, ensure_ascii=False))


def show_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    texts: List[List[str]] = [list(head)] + [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(head))]
    for row in texts:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())  # noqa: B905 - Python 3.8


def age(moment: Optional[str]) -> str:
    """How long ago a time of the portal was: 5s, 3m, 2h, 4d."""
    if not moment:
        return ""
    import datetime

    then = datetime.datetime.fromisoformat(moment.replace("Z", "+00:00"))
    seconds = int((datetime.datetime.now(datetime.timezone.utc) - then).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return "{}{}".format(seconds // size, unit)
    return "{}s".format(max(0, seconds))


def _cell(value: Any) -> str:
    return "" if value is None else plain(value)
