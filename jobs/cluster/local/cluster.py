"""The embedded cluster: this machine's files and processes behind the same port as a real one (DESIGN 11.7).

Nothing of it lives in memory alone: any process of the portal may die and another finds folders and runners as they are.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from jobs import faults
from jobs.cluster import manifests, runs
from jobs.cluster.local import journal, logfile, orphans, ports, processes, remains, spawn, state
from jobs.cluster.local.devices import Devices, assign
from jobs.cluster.local.facts import ObjectFacts, read_object
from jobs.cluster.local.layout import (
    DELETED,
    UNFINISHED,
    VOLUMES,
    ObjectFolder,
    PodFolder,
    bell,
    check_name,
    locked,
    read_json,
    ring,
    try_lock,
    write_atomically,
    write_once,
)
from jobs.cluster.local.shell import LocalTerminal, begin_shell
from jobs.cluster.port import LogPositions, Manifest, ObjectRef, Objects, Observation, Person, RawLine, RunFile
from jobs.cluster.quantities import parse_memory
from jobs.exceptions import ClusterRefuses, ClusterUnavailable, ObjectDiffers, ObjectGone

POLL = 0.03  # seconds between two looks at the bell
LAST_LINES = 2.0  # seconds that a runner may take from telling the exit to its own end
LIVENESS = 1.0  # seconds between two looks for runners that were killed: they cannot ring


class LocalCluster:
    """One per portal and root folder; any number of processes may hold one for the same root."""

    repair_every = 5.0  # a look costs little, and the age on the page stays small

    def __init__(
        self, name: str, root: Path, *, gpus: int = 0, python: str, sdk_path: str, cpu_count: int, memory_bytes: int
    ) -> None:
        self.name = name
        self.root = root.absolute()
        self.python = python
        self.sdk_path = sdk_path
        self.node = _node_name()
        self._devices = Devices.of_this_machine(asked_virtual=gpus)
        self._node = state.node_of(
            self.node,
            cpu_millis=cpu_count * 1000,
            memory_bytes=memory_bytes,
            gpus=self._devices.count,
            gpu_product=self._devices.product,
            is_virtual=self._devices.is_virtual,
        )
        self._fixed: dict[Path, Any] = {}  # files that never change once they exist
        self._heard = -1  # the bell when we last looked
        self._runners: list[tuple[PodFolder, int, int | None]] = []  # those alive when we last looked
        self._positions: dict[Path, tuple[int, int]] = {}  # per log: a number, and the offset behind it
        self.root.mkdir(parents=True, exist_ok=True, mode=0o711)

    # Namespaces and objects

    def ensure_namespace(self, objects: Sequence[Manifest]) -> Sequence[str]:
        """Of all that belongs into a namespace it has only the folder: it enforces nothing."""
        folder = self._namespace(objects[0]["metadata"]["name"])
        folder.mkdir(exist_ok=True)
        write_atomically(folder / "namespace.json", objects[0])
        return ()

    def create(self, objects: Objects, *, person: Person | None) -> str:
        leader = objects.leader
        folder = self._folder(leader["metadata"]["namespace"], leader["metadata"]["name"])
        try:
            folder.namespace.mkdir(exist_ok=True)
            # Held over look and rename: a deletion in between would free the name for a moment.
            with locked(folder.namespace):
                self._sweep(folder.namespace)
                if (found := read_json(folder.job)) is not None:
                    return self._adopt(folder, found, objects)
                if (folder.namespace / DELETED / folder.name).exists():
                    raise ObjectGone(f"The name {folder.name} was used and its object is deleted.")
                uid = self._create(folder, objects, person)
        except OSError as error:
            raise ClusterUnavailable(f"The local cluster cannot write its files: {error.strerror}.") from error
        ring(self.root)
        return uid

    def _create(self, folder: ObjectFolder, objects: Objects, person: Person | None) -> str:
        new = ObjectFolder(folder.namespace / f"{UNFINISHED}{folder.name}")
        new.path.mkdir(mode=0o700)
        uid = str(uuid.uuid4())
        now = time.time()
        leader = objects.leader
        metadata = leader["metadata"] | {"uid": uid, "creationTimestamp": state.timestamp(now)}
        write_atomically(new.job, leader | {"metadata": metadata})
        for name, child in (("service", objects.service), ("config_map", objects.config_map)):
            if child is not None:
                write_atomically(new.path / f"{name}.json", child)
        if objects.secret is not None:
            write_atomically(new.secret, objects.secret, mode=0o600)
        if len(objects.jobs) > 1:
            write_atomically(new.others, [self._follower(job, leader, uid, now) for job in objects.jobs[1:]])
        for job in objects.jobs:
            for index in range(job["spec"]["completions"]):
                self._create_pod(new, job, index)
        journal.append(new.path, "create", uid=uid, object=folder.name, person=person.username if person else "")
        faults.point("local.create.before_rename")
        os.rename(new.path, folder.path)
        faults.point("local.create.after_rename")
        return uid

    def _follower(self, job: Manifest, leader: Manifest, leader_uid: str, now: float) -> Manifest:
        """The Job of another role, as it is created: owned by the leader."""
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": leader["metadata"]["name"],
            "uid": leader_uid,
            "controller": False,
            "blockOwnerDeletion": False,
        }
        own = {"uid": str(uuid.uuid4()), "creationTimestamp": state.timestamp(now), "ownerReferences": [owner]}
        return job | {"metadata": job["metadata"] | own}

    def _create_pod(self, folder: ObjectFolder, job: Manifest, index: int) -> None:
        role = job["metadata"]["labels"].get(manifests.ROLE_LABEL, manifests.ROLE)
        pod = folder.pod(f"{role}-{index}")
        pod.path.mkdir(parents=True)
        limits = _limits(job)
        memory = parse_memory(limits["memory"]) if "memory" in limits else None
        record = {"uid": str(uuid.uuid4()), "role": role, "index": index, "memory_bytes": memory}
        write_atomically(pod.path / "pod.json", record)

    def _adopt(self, folder: ObjectFolder, found: Manifest, objects: Objects) -> str:
        """The name is taken: by us, if it is what we would have created."""
        if folder.deleting.exists():
            raise ObjectGone(f"The object {folder.name} is being deleted.")
        if not manifests.is_same(found, objects.leader):
            raise ObjectDiffers(f"There is another object named {folder.name}.")
        if objects.secret is not None and not folder.released.exists():
            write_atomically(folder.secret, objects.secret, mode=0o600)  # a repeated launch signs the code's URL anew
        return str(found["metadata"]["uid"])

    def _sweep(self, namespace: Path) -> None:
        """What a crash left half made. The caller holds the namespace's lock, so nobody is making it now."""
        for name in os.listdir(namespace):
            if name.startswith(UNFINISHED):
                shutil.rmtree(namespace / name, ignore_errors=True)

    def release(self, ref: ObjectRef, *, job_id: str = "", time_limit: int = 0) -> None:
        """Everything here was made by the portal, so it has its label and its limit."""
        folder, facts = self._find(ref)
        if facts is None or facts.deleting is not None:
            raise ObjectGone(f"There is no object {ref.name} to release.")
        if facts.is_stopping:
            return
        if facts.released is None:
            self._release(folder, facts)
        faults.point("local.release.after_marker")
        for pod in facts.all_pods:
            if pod.started is None and pod.exited is None:
                spawn.runner(pod.folder, python=self.python)
                faults.point("local.release.after_first_runner")

    def _release(self, folder: ObjectFolder, facts: ObjectFacts) -> None:
        asked = {
            pod.folder.worker: int(_limits(job.job).get(manifests.GPU, 0)) for job in facts.jobs for pod in job.pods
        }
        with locked(self.root):  # no two releases take the same device
            devices = assign(
                self._devices,
                asked=asked,
                others=self._objects() if self._devices.count and not self._devices.is_virtual else (),
            )
            if devices is None:
                raise ClusterUnavailable("The GPUs of this machine are not free yet.")
            try:
                found = ports.assign(facts)
            except OSError as error:
                raise ClusterUnavailable(f"This machine has no ports left: {error.strerror}.") from error
            marker = {
                "at": time.time(),
                "python": self.python,
                "sdk_path": self.sdk_path,
                "ports": found,
                "devices": devices,
            }
            if write_once(folder.released, marker):
                journal.append(folder.path, "release")
        ring(self.root)

    # Ends

    def suspend(self, ref: ObjectRef) -> None:
        folder, facts = self._find(ref)
        if facts is not None:
            self._stop(folder, facts, kind="suspend")

    def _stop(self, folder: ObjectFolder, facts: ObjectFacts, *, kind: str, at_most: float | None = None) -> None:
        grace = float(facts.job["spec"]["template"]["spec"].get("terminationGracePeriodSeconds", 30))
        if at_most is not None:
            grace = min(grace, at_most)
        now = time.time()
        if write_once(folder.stop, {"kind": kind, "at": now, "deadline": now + grace}):
            journal.append(folder.path, "stop", kind=kind, grace=grace)
            ring(self.root)

    def kill(self, ref: ObjectRef, *, person: Person | None) -> None:
        folder, facts = self._find(ref)
        if facts is None:
            return
        if write_once(folder.kill, {"at": time.time()}):
            journal.append(folder.path, "kill", person=person.username if person else "")
            ring(self.root)

    def delete(self, ref: ObjectRef, *, person: Person | None, dry_run: bool = False) -> None:
        folder, facts = self._find(ref)
        if facts is None or dry_run:
            return
        if write_once(folder.deleting, {"at": time.time(), "person": person.username if person else ""}):
            ring(self.root)
        faults.point("local.delete.after_marker")
        if not facts.is_all_over:
            self._stop(folder, facts, kind="suspend")
        self._finish_deletion(folder)

    def _finish_deletion(self, folder: ObjectFolder) -> bool:
        """Move it away, once no pod of it lives; until then `observe` tries again."""
        with ExitStack() as stack:
            stack.enter_context(locked(folder.namespace))
            if not folder.path.exists():
                return True
            for pod in folder.pods():
                # With the lock in our hand no runner can begin any more.
                lock = self._lock_of_ended(pod)
                if lock is None:
                    return False
                stack.callback(os.close, lock)
                if pod.start.exists() and not pod.exit.exists():
                    orphans.bury(pod)
                    if not pod.exit.exists():
                        return False
            self._remove_contents(folder)
            if journal.read(folder.path)[-1]["event"] != "delete":
                journal.append(folder.path, "delete", person=(read_json(folder.deleting) or {}).get("person", ""))
            faults.point("local.delete.before_move")
            (folder.namespace / DELETED).mkdir(exist_ok=True)
            os.rename(folder.path, folder.namespace / DELETED / folder.name)
        ring(self.root)
        return True

    def _lock_of_ended(self, pod: PodFolder) -> int | None:
        """The pod's lock, None while it lives. A runner that has told the exit still writes a line or two, so we wait."""
        end = time.monotonic() + LAST_LINES
        while (lock := try_lock(pod.path)) is None and pod.exit.exists() and time.monotonic() < end:
            time.sleep(0.005)
        return lock

    def _remove_contents(self, folder: ObjectFolder) -> None:
        """Keep what witnesses the attempt; drop what gives a secret away or fills the disk."""
        folder.secret.unlink(missing_ok=True)
        for pod in folder.pods():
            shutil.rmtree(pod.volumes, ignore_errors=True)
            pod.log.unlink(missing_ok=True)
            pod.log_index.unlink(missing_ok=True)
            self._positions.pop(pod.log, None)

    def remove_files(self, job_id: str, attempts: Sequence[ObjectRef]) -> None:
        try:
            remains.remove(self.root, job_id=job_id, attempts=attempts)
        except OSError as error:
            raise ClusterUnavailable(f"The files of {job_id} could not be removed: {error.strerror}.") from error

    def files(self, namespace: str, job_id: str, *, limit: int) -> Sequence[RunFile]:
        return runs.walk(self._run(namespace, job_id), limit=limit)

    def open_file(self, namespace: str, job_id: str, path: str) -> BinaryIO:
        return runs.open_file(self._run(namespace, job_id), path)

    def _run(self, namespace: str, job_id: str) -> Path:
        return self.root / check_name(namespace) / VOLUMES / remains.RUNS_CLAIM / check_name(job_id)

    def stop_everything(self, grace: float = 4.0) -> int:
        """The portal shuts down: end every pod within min(its own grace, `grace`), as a disruption; return how many lived.

        Their jobs are queued again and not charged. Nothing may create or release meanwhile.
        """
        stopped = [facts for facts in self._objects() if facts.released is not None and not facts.is_all_over]
        for facts in stopped:
            self._stop(facts.folder, facts, kind="disruption", at_most=grace)
        for facts in stopped:
            for pod in facts.all_pods:
                orphans.never_start(pod)
        end = time.monotonic() + grace + 2
        while time.monotonic() < end and any(self._lives(facts.folder) for facts in stopped):
            time.sleep(POLL)
        return len(stopped)

    def _lives(self, folder: ObjectFolder) -> bool:
        facts = read_object(folder)
        return facts is not None and any(pod.is_live for pod in facts.all_pods)

    # Looking

    def find(self, ref: ObjectRef) -> Manifest | None:
        _folder, facts = self._find(ref)
        return None if facts is None else state.job_of(facts)

    def observe(self, jobs: Collection[str] | None = None) -> Observation:
        self._heard = bell(self.root)
        seen = [facts for facts in self._objects() if not self._keep_house(facts)]
        # The second look sees what the house-keeping changed, in one piece per attempt.
        seen = [fresh for facts in seen if (fresh := read_object(facts.folder, fixed=self._read_fixed)) is not None]
        self._runners = [
            (pod.folder, pod.started["pid"], pod.started["ticks"])
            for facts in seen
            for pod in facts.all_pods
            if pod.started is not None and pod.exited is None
        ]
        self._forget({facts.folder.path for facts in seen})
        roles = [role for facts in seen for role in facts.jobs]
        return Observation(
            jobs=[state.job_of(role) for role in roles],
            pods=[state.pod_of(role, pod, node=self.node) for role in roles for pod in role.existing_pods],
            nodes=[self._node],
        )

    def changes(self, timeout: float) -> Collection[str] | None:
        """A full look costs little here, so what changed is not told apart."""
        return None if self._has_news(timeout) else ()

    def look_away(self) -> None:
        """Nothing is kept that would go on by itself."""

    def _has_news(self, timeout: float) -> bool:
        end = time.monotonic() + timeout
        next_check = time.monotonic() + LIVENESS
        while bell(self.root) == self._heard:
            now = time.monotonic()
            if now >= end:
                return False
            if now >= next_check:
                next_check = now + LIVENESS
                if any(
                    not pod.exit.exists() and not processes.is_alive(pid, ticks) for pod, pid, ticks in self._runners
                ):
                    return True
            time.sleep(min(POLL, end - now))
        return True

    def logs(
        self, ref: ObjectRef, worker: str, *, after: int, limit: int, positions: LogPositions | None = None
    ) -> Iterator[RawLine]:
        folder = self._folder(ref.namespace, ref.name)
        pod = folder.pod(worker)
        try:
            for number, (at, text, overwritten), offset in logfile.read(
                pod, after=after, limit=limit, hint=self._positions.get(pod.log)
            ):
                self._positions[pod.log] = (number, offset)
                yield RawLine(number=number, time=at, text=text, overwritten=overwritten)
        except FileNotFoundError:
            if not folder.path.exists():
                raise ObjectGone(f"The log of {ref.name} is gone with its object.") from None

    async def shell(
        self, ref: ObjectRef, worker: str, *, pod: str, person: Person, container: str = "main"
    ) -> LocalTerminal:
        """In the worker's folder, as the portal's own account: who it is for is not enforced here."""
        folder = self._folder(ref.namespace, ref.name)
        return await asyncio.to_thread(begin_shell, folder.pod(worker))

    def _keep_house(self, facts: ObjectFacts) -> bool:
        """What a controller would do; safe to do twice. True if the object is gone afterwards."""
        for role in facts.jobs:
            for pod in role.pods:
                if pod.is_live:
                    orphans.close_if_orphaned(pod.folder)
                elif pod.has_failed and role.failed is None and pod.exited is not None:
                    # its runner died between telling its exit and telling the siblings
                    at = pod.exited["finished_at"]
                    write_once(pod.folder.failed, {"kind": "pod", "pod": pod.folder.worker, "at": at})
        return facts.deleting is not None and self._finish_deletion(facts.folder)

    # Files

    def _namespace(self, name: str) -> Path:
        try:
            return self.root / check_name(name)
        except ValueError as error:
            raise ClusterRefuses(str(error)) from error

    def _folder(self, namespace: str, name: str) -> ObjectFolder:
        try:
            return ObjectFolder(self._namespace(namespace) / check_name(name))
        except ValueError as error:
            raise ClusterRefuses(str(error)) from error

    def _find(self, ref: ObjectRef) -> tuple[ObjectFolder, ObjectFacts | None]:
        folder = self._folder(ref.namespace, ref.name)
        facts = read_object(folder)
        if facts is not None and ref.uid and facts.job["metadata"]["uid"] != ref.uid:
            raise ObjectDiffers(f"The object {ref.name} is not the one that was created for this attempt.")
        return folder, facts

    def _objects(self) -> list[ObjectFacts]:
        found = []
        for namespace in sorted(self.root.iterdir()):
            if not namespace.is_dir():
                continue
            for name in sorted(os.listdir(namespace)):
                if name in (DELETED, VOLUMES) or name.startswith((".", "namespace.json")):
                    continue
                facts = read_object(ObjectFolder(namespace / name), fixed=self._read_fixed)
                if facts is not None:
                    found.append(facts)
        return found

    def _read_fixed(self, path: Path) -> Any:
        if path not in self._fixed:
            value = read_json(path)
            if value is None:
                return None
            self._fixed[path] = value
        return self._fixed[path]

    def _forget(self, present: set[Path]) -> None:
        """Drop what was read of objects that are gone. A fixed file lies in the object's folder or in one of its pods'."""
        gone = [path for path in self._fixed if path.parent not in present and path.parents[2] not in present]
        for path in gone:
            self._fixed.pop(path, None)


def _node_name() -> str:
    name = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in socket.gethostname().lower())
    return name.strip(".-") or "local"


def _limits(job: Manifest) -> Manifest:
    found: Manifest = job["spec"]["template"]["spec"]["containers"][0].get("resources", {}).get("limits", {})
    return found
