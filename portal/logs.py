"""The logs of the portal's processes: kept small, and their warnings passed on to the terminal."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

LARGEST = 20 * 2**20
LINES_A_LOOK = 5  # of one process; the rest is counted
LOOK_EVERY = 0.5
QUIET = 60.0  # seconds for which the same words, but for their numbers, are not said again
# "2026-11-30 05:00:00,000 WARNING name: text", "[2026-11-30 05:00:00,000: ERROR/MainProcess] text", "ERROR:    text" and
# PostgreSQL's "2026-11-30 05:00:00.000 UTC [12] FATAL:  text"; Valkey marks as warnings what nobody needs to see
TROUBLE = re.compile(r"^(?:\[?\d{4}-\S+ \S+ )?(?:UTC \[\d+\] )?(WARNING|ERROR|CRITICAL|FATAL|PANIC)\b(?! py\.warnings)")

NUMBERS = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+")


@dataclass(slots=True)
class Followed:
    path: Path
    offset: int
    rest: bytes = b""


class Echo:
    """Reads what the processes add to their logs, and keeps the lines a person at the terminal should see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.followed: dict[str, Followed] = {}
        self.looked_at = 0.0
        self.said: dict[str, float] = {}

    def follow(self, name: str) -> None:
        path = self.folder / f"{name}.log"
        keep_small(path)
        self.followed[name] = Followed(path, path.stat().st_size if path.exists() else 0)

    def look(self) -> list[str]:
        now = time.monotonic()
        if now - self.looked_at < LOOK_EVERY:
            return []
        self.looked_at = now
        found: list[str] = []
        for name, log in self.followed.items():
            lines = [line for line in _new_lines(log) if TROUBLE.match(line) and self.is_news(name, line, now)]
            found += [f"[{name}] {line[:300]}" for line in lines[:LINES_A_LOOK]]
            if len(lines) > LINES_A_LOOK:
                found.append(f"[{name}] … and {len(lines) - LINES_A_LOOK} more in {log.path}")
            if log.offset > LARGEST:
                keep_small(log.path)
                log.offset = 0
        self.said = {words: at for words, at in self.said.items() if now - at < QUIET}
        return found

    def is_news(self, name: str, line: str, now: float) -> bool:
        words = f"{name} {NUMBERS.sub('#', line)}"
        if now - self.said.get(words, -QUIET) < QUIET:
            return False
        self.said[words] = now
        return True


def keep_small(path: Path) -> None:
    """Move a large log aside. The process goes on in the same file, which it writes by appending only."""
    if path.exists() and path.stat().st_size > LARGEST:
        shutil.copyfile(path, path.with_suffix(".log.1"))
        with path.open("r+b") as file:
            file.truncate(0)


def _new_lines(log: Followed) -> list[str]:
    try:
        with log.path.open("rb") as file:
            file.seek(log.offset)
            new = file.read(LARGEST)
    except FileNotFoundError:
        return []
    log.offset += len(new)
    *whole, log.rest = (log.rest + new).split(b"\n")
    return [line.decode(errors="replace").rstrip() for line in whole]
