"""What is left of a job that ended long ago, removed: only folders that prove to be ours (RELIABILITY, CLEAN).

An attempt's name stays taken: its folder in `deleted/` stays, empty.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from jobs.cluster import runs
from jobs.cluster.local.layout import DELETED, VOLUMES, ObjectFolder, check_name, read_json
from jobs.cluster.manifests import JOB_LABEL
from jobs.cluster.port import ObjectRef
from jobs.exceptions import ObjectDiffers

RUNS_CLAIM = "runs"


def remove(root: Path, *, job_id: str, attempts: Sequence[ObjectRef]) -> None:
    """Look at everything before anything is touched: one attempt that is not ours, and nothing of the job is removed."""
    records = [record for ref in attempts if (record := _record_of(root, job_id, ref)) is not None]
    folders = {root / check_name(ref.namespace) / VOLUMES / RUNS_CLAIM / check_name(job_id) for ref in attempts}
    for run in sorted(folders):
        runs.remove(run)
    for record in records:
        _empty(record)


def _record_of(root: Path, job_id: str, ref: ObjectRef) -> ObjectFolder | None:
    """What is left of the attempt, None where nothing is. Raise ObjectDiffers if the name has something else."""
    namespace = root / check_name(ref.namespace)
    if (namespace / check_name(ref.name)).exists():
        raise ObjectDiffers(f"There is a living object named {ref.name}; nothing of the job is removed.")
    folder = ObjectFolder(namespace / DELETED / ref.name)
    if not folder.path.is_dir() or folder.path.is_symlink() or not os.listdir(folder.path):
        return None
    metadata = (read_json(folder.job) or {}).get("metadata", {})
    # an attempt whose create crashed before its uid was stored is known by its name and job alone
    ours = metadata.get("uid") == ref.uid if ref.uid else metadata.get("labels", {}).get(JOB_LABEL) == job_id
    if not ours or metadata.get("name") != ref.name:
        raise ObjectDiffers(f"What lies under the name {ref.name} is not the object of this attempt.")
    return folder


def _empty(folder: ObjectFolder) -> None:
    """The proof of whose it is goes last, so that a removal that was cut off can go on."""
    for name in sorted(os.listdir(folder.path), key=lambda name: name == folder.job.name):
        runs.remove(folder.path / name)
