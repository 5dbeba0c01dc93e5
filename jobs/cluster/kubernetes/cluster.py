"""Kubernetes behind the port: any kubeconfig context, or the account of the pod that the portal runs in.

Three accounts (DESIGN 11.1): the portal's acts for people and does what nobody asked for, the watcher's reads, the sync's keeps
namespaces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from jobs.cluster import runs
from jobs.cluster.kubernetes.client import Api
from jobs.cluster.kubernetes.container_logs import ContainerLogs
from jobs.cluster.kubernetes.mirror import ClusterMirror
from jobs.cluster.kubernetes.namespaces import Namespaces
from jobs.cluster.kubernetes.setting import Account, KubernetesSetting
from jobs.cluster.kubernetes.shell import PodTerminal, Way
from jobs.cluster.kubernetes.tails import Tails
from jobs.cluster.kubernetes.workloads import Workloads
from jobs.cluster.manifests import MAIN
from jobs.cluster.port import LogPositions, Manifest, ObjectRef, Objects, Observation, Person, RawLine, RunFile
from jobs.exceptions import ClusterUnavailable


class KubernetesCluster:
    """One per process and cluster. Only a process that calls `changes` watches; others ask when they need to know."""

    repair_every = 30.0

    def __init__(self, setting: KubernetesSetting) -> None:
        self.name = setting.name
        self._setting = setting
        self._mirror: ClusterMirror | None = None

    @cached_property
    def _workloads(self) -> Workloads:
        return Workloads(self._api(self._setting.portal))

    @cached_property
    def _watcher(self) -> Api:
        return self._api(self._setting.watcher)

    @cached_property
    def _follower(self) -> ContainerLogs:
        if self._mirror is None:
            raise ClusterUnavailable("Only the process that watches the cluster follows its logs.")
        return ContainerLogs(Tails(self._watcher, is_away=self._mirror.is_failing), self._mirror)

    @cached_property
    def _namespaces(self) -> Namespaces:
        return Namespaces(self._api(self._setting.sync))

    def _api(self, account: Account) -> Api:
        return Api.of(account.kubeconfig, account.context, self._setting.users)

    # Namespaces and objects

    def ensure_namespace(self, objects: Sequence[Manifest]) -> Sequence[str]:
        return self._namespaces.bring_in_line(objects)

    def create(self, objects: Objects, *, person: Person | None) -> str:
        return self._workloads.create(objects, person)

    def release(self, ref: ObjectRef, *, job_id: str = "", time_limit: int = 0) -> None:
        self._workloads.release(ref, job_id=job_id, time_limit=time_limit)

    def suspend(self, ref: ObjectRef) -> None:
        self._workloads.suspend(ref)

    def kill(self, ref: ObjectRef, *, person: Person | None) -> None:
        self._workloads.kill(ref, person)

    def delete(self, ref: ObjectRef, *, person: Person | None, dry_run: bool = False) -> None:
        self._workloads.delete(ref, person, dry_run=dry_run)

    def find(self, ref: ObjectRef) -> Manifest | None:
        return self._workloads.find(ref)

    # Looking

    def observe(self, jobs: Collection[str] | None = None) -> Observation:
        if self._mirror is not None:
            seen = self._mirror.observation(jobs)
            if jobs is None and "_follower" in self.__dict__:
                self._follower.forget()
            return seen
        listed, _version = self._watcher.list("/apis/batch/v1/jobs")
        pods, _version = self._watcher.list("/api/v1/pods")
        nodes, _version = self._watcher.list("/api/v1/nodes")
        return Observation(jobs=listed, pods=pods, nodes=nodes)

    def changes(self, timeout: float) -> Collection[str] | None:
        if self._mirror is None:
            self._mirror = ClusterMirror(self._watcher)
        return self._mirror.wait(timeout)

    def look_away(self) -> None:
        if self._mirror is None:
            return
        self._mirror.stop()
        self._mirror = None
        if (follower := self.__dict__.pop("_follower", None)) is not None:
            follower.stop()

    # Logs

    def logs(
        self, ref: ObjectRef, worker: str, *, after: int, limit: int, positions: LogPositions
    ) -> Iterator[RawLine]:
        return self._follower.read(ref, worker, after=after, limit=limit, positions=positions)

    # Shells

    async def shell(
        self, ref: ObjectRef, worker: str, *, pod: str, person: Person, container: str = MAIN
    ) -> PodTerminal:
        workloads = await asyncio.to_thread(lambda: self._workloads)
        return await Way(workloads.api, ref.namespace, pod, person, container=container).open()

    # Files

    def remove_files(self, job_id: str, attempts: Sequence[ObjectRef]) -> None:
        for namespace in sorted({attempt.namespace for attempt in attempts}):
            try:
                runs.remove(self._run(namespace, job_id))
            except OSError as error:
                raise ClusterUnavailable(f"The files of {job_id} could not be removed: {error.strerror}.") from error

    def files(self, namespace: str, job_id: str, *, limit: int) -> Sequence[RunFile]:
        return runs.walk(self._run(namespace, job_id), limit=limit)

    def open_file(self, namespace: str, job_id: str, path: str) -> BinaryIO:
        return runs.open_file(self._run(namespace, job_id), path)

    def _run(self, namespace: str, job_id: str) -> Path:
        if not self._setting.runs:
            raise ClusterUnavailable(
                f"The portal does not see the volumes of {self.name}; an admin sets `runs:` of it in TRAINHALL_CLUSTERS."
            )
        return Path(self._setting.runs.format(namespace=namespace)) / job_id
