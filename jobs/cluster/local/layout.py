"""The folders of the local cluster, and how a file appears in them: whole or not at all (DESIGN 11.7).

    <root>/<namespace>/<object>/               one attempt
        job.json others.json                   the Job whose end decides, and those of other roles
        service.json secret.json               what else was created; the secret is readable by the portal alone
        journal.jsonl                          what was done to it, the tests' witness
        released.json stop.json kill.json deleting.json     each written once
        failed.json failed-<role>.json         the same, for the Job of each role
        pods/<role>-<index>/                   one pod; its runner holds a lock on this folder for life
            pod.json start.json phase.json exit.json  log.jsonl log.index  volumes/
    <root>/<namespace>/deleted/<object>/       what is left of it; the name stays taken
    <root>/<namespace>/volumes/<claim>/        outlives attempts

Standard library only, and little of it: every pod's runner imports this.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DELETED = "deleted"
VOLUMES = "volumes"
UNFINISHED = ".new-"
JOURNAL = "journal.jsonl"

ROLE_LABEL = "trainhall.io/role"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class PodFolder:
    """One pod's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = path / "start.json"
        self.phase = path / "phase.json"
        self.exit = path / "exit.json"
        self.log = path / "log.jsonl"
        self.log_index = path / "log.index"
        self.runner_log = path / "runner.log"
        self.volumes = path / "volumes"

    @property
    def worker(self) -> str:
        return self.path.name

    @property
    def object(self) -> ObjectFolder:
        return ObjectFolder(self.path.parent.parent)

    @property
    def role(self) -> str:
        return self.worker.rpartition("-")[0]

    @property
    def failed(self) -> Path:
        """What tells the other pods of its Job that they end, too."""
        return self.object.failed_of(self.role)

    def record(self) -> dict[str, Any]:
        """What was fixed at the creation: uid, role, index."""
        return read_json(self.path / "pod.json") or {}


class ObjectFolder:
    """One attempt's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.job = path / "job.json"
        self.others = path / "others.json"
        self.secret = path / "secret.json"
        self.journal = path / JOURNAL
        self.released = path / "released.json"
        self.stop = path / "stop.json"
        self.kill = path / "kill.json"
        self.deleting = path / "deleting.json"

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def namespace(self) -> Path:
        return self.path.parent

    @property
    def root(self) -> Path:
        return self.path.parent.parent

    def job_of(self, role: str) -> Any:
        """The Job that a pod of this role belongs to."""
        return self._others().get(role) or read_json(self.job)

    def failed_of(self, role: str) -> Path:
        return self.path / (f"failed-{role}.json" if role in self._others() else "failed.json")

    def _others(self) -> dict[str, Any]:
        return {job["metadata"]["labels"][ROLE_LABEL]: job for job in read_json(self.others) or ()}

    def pod(self, worker: str) -> PodFolder:
        return PodFolder(self.path / "pods" / check_name(worker))

    def pods(self) -> list[PodFolder]:
        """In order of role and index."""
        try:
            names = os.listdir(self.path / "pods")
        except FileNotFoundError:  # deleted while we looked
            return []
        return [PodFolder(self.path / "pods" / name) for name in sorted(names, key=_role_and_index)]


def _role_and_index(worker: str) -> tuple[str, int]:
    role, _dash, index = worker.rpartition("-")
    return role, int(index)


def check_name(name: str) -> str:
    """The name, if it can be a folder of ours: nothing that climbs, nothing reserved."""
    if not _NAME.fullmatch(name) or name in (DELETED, VOLUMES):
        raise ValueError(f"{name!r} is not a name that the local cluster can use.")
    return name


def write_atomically(path: Path, value: Any, *, mode: int = 0o644) -> None:
    """Replace a JSON file: readers see the old one or the new one."""
    temporary = _write_beside(path, value, mode)
    os.replace(temporary, path)


def write_once(path: Path, value: Any) -> bool:
    """Write a JSON file unless it exists: the compare-and-set. Return whether it was us."""
    temporary = _write_beside(path, value, 0o644)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def _write_beside(path: Path, value: Any, mode: int) -> str:
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "w") as file:
        json.dump(value, file)
    return temporary


def read_json(path: Path) -> Any:
    """The value, or None where the file does not exist. Files appear whole, so a broken one is an error."""
    try:
        with open(path) as file:
            return json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, waiting for it; the kernel gives it back if we die."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def try_lock(folder: Path) -> int | None:
    """A handle that holds the folder's lock until it is closed, or None if someone else holds it, or it is gone."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


BELL_LIMIT = 2**20


def ring(root: Path) -> None:
    """Tell every process that waits for changes: the file's size moves. Time stamps are too coarse for that."""
    with open(root / "bell", "ab", buffering=0) as file:
        if file.tell() >= BELL_LIMIT:
            file.truncate(1)
        file.write(b".")


def bell(root: Path) -> int:
    try:
        return os.stat(root / "bell").st_size
    except FileNotFoundError:
        return 0


def boot_id() -> str:
    """Another value after every start of the machine."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
