"""What people see of a line: the words without colours and other escapes of a terminal. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

# the same as in static/js/ansi.js, so that what is found is what is shown
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;:]*[ -?]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*.)?"
    r"|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


def as_seen(texts: Sequence[str]) -> Sequence[str]:
    """Each text as it is shown; never with a line end inside."""
    joined = "".join(texts)
    if not _CONTROL.search(joined):
        return texts
    return [_shown(text) if _CONTROL.search(text) else text for text in texts]


def _shown(text: str) -> str:
    return _ESCAPE.sub("", text).replace("\n", " ")
