"""The files a job left, in the order people look for them: checkpoints, what it made, event files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

from jobs.cluster.port import RunFile
from jobs.cluster.registry import connect
from jobs.exceptions import ClusterUnavailable
from jobs.models import Job

LIMIT = 2000
KINDS = {"ckpt": "checkpoint", "out": "output", "tb": "events"}
_STEP = re.compile(r"(?:step|ckpt|checkpoint|epoch|iter)[-_=]?(\d{1,15})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Left:
    """One file as pages and REST show it."""

    path: str
    kind: str  # checkpoint, output, events
    name: str  # below the folder of its kind
    size: int  # bytes
    modified: datetime
    step: int | None  # as its name tells


@dataclass(frozen=True, slots=True)
class Listing:
    files: tuple[Left, ...] = ()
    is_cut: bool = False  # there are more
    problem: str = ""  # why they cannot be listed now

    @property
    def total(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def groups(self) -> list[tuple[str, list[Left]]]:
        return [(kind, found) for kind in KINDS.values() if (found := [f for f in self.files if f.kind == kind])]


def list_files(job: Job, *, limit: int = LIMIT) -> Listing:
    """Checkpoints first and the newest of them on top; a job that never ran has none."""
    if not job.attempt_number or job.cleaned_at or job.is_adopted:
        return Listing()
    try:
        found = connect(job.cluster_id).files(job.namespace.kubernetes_name, job.pk, limit=limit + 1)
    except ClusterUnavailable as error:
        return Listing(problem=error.message)
    files = [_left(file) for file in found[:limit] if file.path.partition("/")[0] in KINDS]
    order = list(KINDS.values())
    files.sort(
        key=lambda file: (order.index(file.kind), -file.modified.timestamp() if file.kind == "checkpoint" else 0)
    )
    return Listing(files=tuple(files), is_cut=len(found) > limit)


def open_file(job: Job, path: str) -> BinaryIO:
    """Raise FileNotFoundError for what is not a file of this job, also once its files were removed."""
    if job.cleaned_at or path.partition("/")[0] not in KINDS:
        raise FileNotFoundError(path)
    return connect(job.cluster_id).open_file(job.namespace.kubernetes_name, job.pk, path)


def _left(file: RunFile) -> Left:
    folder, _slash, name = file.path.partition("/")
    steps = _STEP.findall(name)
    return Left(
        path=file.path,
        kind=KINDS[folder],
        name=name,
        size=file.size,
        modified=datetime.fromtimestamp(file.modified, UTC),
        step=int(steps[-1]) if steps else None,
    )
