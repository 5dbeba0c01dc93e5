"""What was done to an object, one JSON line each, never rewritten: the witness that tests believe (RELIABILITY F01)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from jobs.cluster.local.layout import JOURNAL

Line = dict[str, Any]


def append(folder: Path, event: str, **facts: Any) -> None:
    """Add a line: create, release, start, stop, kill, exit or delete. One write, so lines of two processes never mix."""
    line = {"time": round(time.time(), 6), "event": event, "writer": os.getpid(), **facts}
    handle = os.open(folder / JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(handle, json.dumps(line).encode() + b"\n")
    finally:
        os.close(handle)


def read(folder: Path) -> list[Line]:
    with open(folder / JOURNAL) as file:
        return [json.loads(line) for line in file]
