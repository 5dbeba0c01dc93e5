"""Exceptions as Python prints them, found in lines of a log (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.causes.scene import Line

HEAD = "Traceback (most recent call last):"
MORE_LINES = 8  # of a message that goes on after the line that names the exception
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<number>\d+)(?:, in (?P<place>.+))?')
_RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?$")
_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError)\b")
# what launchers raise because a process they started had failed: never the cause where that process left its own words
_OF_LAUNCHERS = re.compile(
    r"(?:^|\.)(?:ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException)$"
)
_NOT_OURS = ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen ")
_GROUP = re.compile(r"^[\s|+]*\|\s?")  # the frame drawn around an exception group


@dataclass(slots=True)
class Raised:
    """One exception that was printed. `line` names it, `place` is where the person's own code stood."""

    line: Line
    index: int
    type: str
    message: str
    rank: str = ""
    frames: list[tuple[str, int]] = field(default_factory=list)
    more: list[Line] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(
            [f"{self.type}: {self.message}" if self.message else self.type, *(one.words.strip() for one in self.more)]
        )

    def line_at(self, position: int) -> Line:
        """The line that holds this place of the text."""
        row = self.text.count("\n", 0, position)
        return self.more[row - 1] if row else self.line

    @property
    def name(self) -> str:
        return self.type.rpartition(".")[2]

    @property
    def is_of_a_launcher(self) -> bool:
        return bool(_OF_LAUNCHERS.search(self.type))

    @property
    def place(self) -> str:
        """file:line of the deepest frame in the person's own code."""
        own = [frame for frame in self.frames if not any(part in frame[0] for part in _NOT_OURS)]
        if not own:
            return ""
        file, number = own[-1]
        return f"{file.rpartition('/')[2]}:{number}"


def exceptions_in(lines: Sequence[Line]) -> list[Raised]:
    """Every exception printed in these lines, in the order in which they were named; ranks may be mixed."""
    found: list[Raised] = []
    open_frames: dict[str, list[tuple[str, int]]] = {}
    ended: dict[str, Raised] = {}
    loose: dict[str, list[tuple[str, int]]] = {}
    for index, line in enumerate(lines):
        rank, words = line.rank, _GROUP.sub("", line.words)
        if words.strip().endswith(HEAD):
            open_frames[rank] = []
            ended.pop(rank, None)
        elif frame := _FRAME.match(words):
            open_frames.get(rank, loose.setdefault(rank, [])).append((frame["file"], int(frame["number"])))
        elif rank in open_frames and words and not words[0].isspace():
            if match := _RAISED.match(words):
                frames = open_frames.pop(rank)
                ended[rank] = Raised(line, index, match["type"], (match["message"] or "").strip(), rank, frames)
                found.append(ended[rank])
        elif _SYNTAX.match(words):
            # the main script could not even be read: Python prints no head then
            match = _RAISED.match(words)
            frames = loose.pop(rank, [])
            found.append(
                Raised(
                    line,
                    index,
                    match["type"] if match else words,
                    match["message"] or "" if match else "",
                    rank,
                    frames,
                )
            )
        elif rank in ended and words.strip() and len(ended[rank].more) < MORE_LINES:
            ended[rank].more.append(line)
    return found


def last_of_each_rank(raised: Sequence[Raised]) -> list[Raised]:
    """Of a chain the last one, of each rank; a launcher's own only where there is nothing else. Earliest first."""
    own = [one for one in raised if not one.is_of_a_launcher] or list(raised)
    last: dict[str, Raised] = {one.rank: one for one in own}
    return sorted(last.values(), key=lambda one: one.index)
