"""Which checkpoint an attempt after the first goes on from: the newest complete one of its job (C12)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from jobs.cluster.port import RunFile
from jobs.cluster.registry import connect
from jobs.cluster.rendering import RUNS
from jobs.models import Attempt

FOLDER = "ckpt"
LOOKED_AT = 50_000  # files of a job
# how programs call what they are still writing: .new, step-7.tmp, tmp-checkpoint-500, 7.orbax-checkpoint-tmp-1
_UNFINISHED = re.compile(
    r"^[.~]|(?:^|[._-])(?:tmp|temp)(?:[._-]|$)|\.(?:new|part|partial|incomplete)$|~$", re.IGNORECASE
)
_NUMBER = re.compile(r"\d{1,15}")


def resume_from(attempt: Attempt) -> str:
    """Its path as a pod sees it, "" for a first attempt or where nothing was saved. Raise ClusterUnavailable.

    Asked once, before anything of the attempt exists: afterwards it writes checkpoints itself.
    """
    if attempt.number < 2:
        return ""
    found = newest(files_of(attempt))
    return f"{RUNS}/{attempt.job_id}/{FOLDER}/{found}" if found else ""


def files_of(attempt: Attempt) -> Sequence[RunFile]:
    """Of its job, which all attempts share. Raise ClusterUnavailable."""
    return connect(attempt.cluster_id).files(attempt.kubernetes_namespace, attempt.job_id, limit=LOOKED_AT)


def is_unfinished(path: str) -> bool:
    """Whether the name says that somebody is still writing it."""
    return any(_UNFINISHED.search(part) for part in path.split("/"))


def newest(files: Iterable[RunFile]) -> str:
    """The name in the checkpoint folder of the file or folder that was written last, of those that are complete."""
    found = newest_written(files)
    return found[1] if found else ""


def newest_written(files: Iterable[RunFile]) -> tuple[float, str] | None:
    """And when it was written (epoch seconds).

    A folder is one checkpoint, as old as the newest file in it, and complete if all its files are.
    """
    entries: dict[str, list[tuple[str, RunFile]]] = defaultdict(list)
    for file in files:
        folder, _slash, path = file.path.partition("/")
        if folder == FOLDER:
            entries[path.partition("/")[0]].append((path, file))
    best: tuple[float, int, str] | None = None
    for name, inside in entries.items():
        written = max(file.modified for _path, file in inside)
        if any(is_unfinished(path) for path, _file in inside):
            continue
        if not any(file.size for _path, file in inside):
            continue
        # of two written in the same moment the one of the later step
        step = max((int(number) for number in _NUMBER.findall(name)), default=0)
        best = max(best or (written, step, name), (written, step, name))
    return (best[0], best[2]) if best else None
