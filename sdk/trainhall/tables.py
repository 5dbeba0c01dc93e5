"""Rows and times as a terminal shows them."""

from __future__ import annotations

import json
from typing import Any, List, Optional, Sequence


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
    text = "" if value is None else str(value)
    return " ".join(text.split())
