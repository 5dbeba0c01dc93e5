"""What is known of an attempt that ended, as the causes look at it (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.states import Reason

LONGEST = 2000  # characters of a line that are looked at: patterns stay cheap on a line of a megabyte
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# what PostgreSQL's jsonb refuses (NUL, half a character), and what only moves a cursor
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
# torch, torchrun and ray write whose line it is before the line
_WHOSE = re.compile(r"^\s*(?:\[(?:rank|default)(?P<rank>\d+)\]:?\s?|\(\w+ pid=\d+(?:, ip=[\d.]+)?\)\s?)")


# where the local cluster keeps a pod's volumes; a program of it prints such a path where a container has /workspace/main.py
# (its folder may hold blanks, which only quotes or the beginning of a value tell from the blanks between words)
_POD = r"/pods/[\w.-]+/volumes"
_OF_POD = rf"(?:(?:^|(?<=['\"]))/[^'\"\n]*?{_POD}|(?<![\w./-])/[^\s'\"`:,()]*{_POD})"
_WORKSPACE = re.compile(rf"(?:{_OF_POD}|(?<![\w./-]))/workspace/(?=[^\s/])")
_VOLUME = re.compile(rf"{_OF_POD}(?=/[\w.-]+)")


def at_home(text: str) -> str:
    """Paths as whoever wrote the job knows them: a file of its code by its name, no folder of the machine."""
    return _VOLUME.sub("", _WORKSPACE.sub("", text))


def clean(text: str) -> str:
    """A line without colours and what cannot be shown."""
    return _UNSEEN.sub("", _ESCAPES.sub("", text[:LONGEST]))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log; `seq` is 0 for a line that only the cluster's own message has."""

    seq: int
    text: str
    time: float = 0.0

    @property
    def rank(self) -> str:
        """The rank that the line names as its writer, "" if none."""
        match = _WHOSE.match(self.text)
        return (match["rank"] or "") if match else ""

    @property
    def words(self) -> str:
        """The line without the name of its writer."""
        return _WHOSE.sub("", self.text)


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How one worker ended, and the last it wrote."""

    name: str
    node: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    finished_at: float | None = None
    lines: tuple[Line, ...] = ()

    @property
    def failed(self) -> bool:
        return self.exit_code != 0


@dataclass(frozen=True, slots=True)
class Scene:
    """An attempt and what it left. `headline` has the last values of its metrics, not finite ones as words."""

    code: Reason
    text: str = ""
    attempt: int = 1
    succeeded: bool = False
    exit_code: int | None = None
    workers: tuple[WorkerEnd, ...] = ()
    headline: Mapping[str, float | str] = field(default_factory=dict)
    step: int | None = None
    has_points: bool = False
    command: str = ""
    image: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    gpus: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    time_limit: int = 0
    ran_seconds: float | None = None  # of its program; None if it never ran


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that went wrong in one worker. A follow-up is what a worker says when another one is gone."""

    kind: str
    values: dict[str, str] = field(default_factory=dict)
    line: Line | None = None
    follow_up: bool = False
    went_on: bool = False  # the program wrote more after that line, so it may have been a warning only
