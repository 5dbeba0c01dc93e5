"""Rows as comma-separated values that a spreadsheet reads as text and numbers, never as formulas (pure)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

MARK = "\ufeff".encode()  # by which spreadsheets know UTF-8
# A spreadsheet computes what begins like this, in any width; a quote before it makes it text.
FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def safe(value: Any) -> Any:
    """A number as it is, text as text: never as a formula."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value


def lines(rows: Iterable[Sequence[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([[safe(value) for value in row] for row in rows])
    return out.getvalue().encode()
