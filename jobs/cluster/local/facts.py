"""What the files of one attempt say, read together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobs.cluster.local.layout import ROLE_LABEL, ObjectFolder, PodFolder, read_json

Record = dict[str, Any]
Read = Callable[[Path], Any]


@dataclass(frozen=True, slots=True)
class PodFacts:
    """One pod. `started` is None before its runner took it; `exited` before it ended."""

    folder: PodFolder
    record: Record  # uid, role, index, memory_bytes
    started: Record | None
    containers: dict[str, Record]  # by name: started_at, finished_at, code, signal
    exited: Record | None

    @property
    def is_live(self) -> bool:
        return self.started is not None and self.exited is None

    @property
    def ended_by(self) -> str:
        """Who ended it from outside: suspend, kill, disruption, gang, deadline; "" if it ended by itself."""
        return str(self.exited["ended_by"]) if self.exited else ""

    @property
    def has_failed(self) -> bool:
        """By itself, or taken by the platform: reason enough to end the gang."""
        if self.exited is None or self.ended_by not in ("", "disruption"):
            return False
        return self.ended_by == "disruption" or self.exited["code"] != 0


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """One attempt, or of an attempt with several roles the Job of one: the leader's has the others beside it."""

    folder: ObjectFolder
    job: Record
    released: Record | None
    stop: Record | None
    kill: Record | None
    failed: Record | None
    deleting: Record | None
    pods: tuple[PodFacts, ...]
    others: tuple[ObjectFacts, ...] = ()

    @property
    def jobs(self) -> tuple[ObjectFacts, ...]:
        return (self, *self.others)

    @property
    def all_pods(self) -> tuple[PodFacts, ...]:
        return tuple(pod for job in self.jobs for pod in job.pods)

    @property
    def all_existing_pods(self) -> tuple[PodFacts, ...]:
        return tuple(pod for job in self.jobs for pod in job.existing_pods)

    @property
    def is_stopping(self) -> bool:
        return self.stop is not None or self.kill is not None

    @property
    def existing_pods(self) -> tuple[PodFacts, ...]:
        """As a cluster would list them: all after the release, and of an attempt that is ending only those that began."""
        if self.released is None:
            return ()
        if self.is_stopping or self.failed is not None:
            return tuple(pod for pod in self.pods if pod.started is not None or pod.exited is not None)
        return self.pods

    @property
    def is_all_over(self) -> bool:
        return all(job.is_over for job in self.jobs)

    @property
    def is_over(self) -> bool:
        """Nothing of this Job runs and nothing will."""
        if self.released is None:
            return self.is_stopping
        return all(pod.exited is not None for pod in self.existing_pods)


def read_object(folder: ObjectFolder, *, fixed: Read = read_json) -> ObjectFacts | None:
    """Everything about an attempt, None if it is gone. `fixed` reads files that never change once they exist.

    Pods are read before the object's own files: a failure seen in a pod is then never older than what follows from it.
    """
    job = fixed(folder.job)
    if job is None:
        return None
    others = {other["metadata"]["labels"][ROLE_LABEL]: other for other in fixed(folder.others) or ()}
    pods = tuple(_read_pod(pod, fixed) for pod in folder.pods())
    facts = ObjectFacts(
        folder=folder,
        job=job,
        released=fixed(folder.released),
        stop=read_json(folder.stop),
        kill=read_json(folder.kill),
        failed=read_json(folder.path / "failed.json"),
        deleting=read_json(folder.deleting),
        pods=tuple(pod for pod in pods if pod.folder.role not in others),
    )
    beside = tuple(
        replace(
            facts,
            job=other,
            failed=read_json(folder.path / f"failed-{role}.json"),
            pods=tuple(pod for pod in pods if pod.folder.role == role),
        )
        for role, other in others.items()
    )
    facts = replace(facts, others=beside)
    return facts if folder.path.exists() else None  # moved away meanwhile, and `fixed` does not notice


def _read_pod(folder: PodFolder, fixed: Read) -> PodFacts:
    exited = fixed(folder.exit)
    return PodFacts(
        folder=folder,
        record=fixed(folder.path / "pod.json") or {},
        started=fixed(folder.start),
        containers=(read_json(folder.phase) or {}).get("containers", {}),
        exited=exited,
    )
