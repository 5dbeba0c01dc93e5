"""Sidecars of a pod: processes beside `main`, which a runner starts before it and ends after it. Standard library only."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jobs.cluster.local import processes
from jobs.cluster.local.container import Container, failed_to_start
from jobs.cluster.local.layout import PodFolder

SINCE = "TRAINHALL_AGENT_SINCE"  # what lies in the folders from before belongs to an earlier attempt
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # before one that died is started again; doubled each time
STEADY_AFTER = 60.0  # seconds of life after which a death counts as the first


def is_sidecar(spec: dict[str, Any]) -> bool:
    return spec.get("restartPolicy") == "Always"


@dataclass(slots=True)
class _Sidecar:
    name: str
    container: Container
    pid: int | None = None
    ticks: int | None = None
    began: float = 0.0  # monotonic
    pause: float = FIRST_PAUSE
    again_at: float | None = None  # monotonic, once it is seen to be dead

    @property
    def is_alive(self) -> bool:
        return self.pid is not None and processes.is_alive(self.pid, self.ticks)


class Sidecars:
    """Those of one pod. They do not count against its memory, and their output is not the job's."""

    def __init__(self, pod: PodFolder) -> None:
        self.pod = pod
        self._all: list[_Sidecar] = []

    def start(self, spec: dict[str, Any], *, job: dict[str, Any], release: dict[str, Any], index: int) -> None:
        # the time of the first start also for those that come after it
        spec = spec | {"env": [*spec.get("env", ()), {"name": SINCE, "value": repr(time.time())}]}
        sidecar = _Sidecar(spec["name"], Container(spec, pod=self.pod, job=job, release=release, index=index))
        self._all.append(sidecar)
        self._start(sidecar)

    def tend(self, *, at_once: bool = False) -> None:
        """Start again what died, as a kubelet does: soon the first time, then ever less often, or `at_once`."""
        now = time.monotonic()
        for sidecar in self._all:
            if sidecar.is_alive:
                continue
            if sidecar.again_at is None:
                sidecar.pause = FIRST_PAUSE if now - sidecar.began >= STEADY_AFTER else sidecar.pause
                sidecar.again_at = now + sidecar.pause
            if at_once or now >= sidecar.again_at:
                sidecar.pause = min(LONGEST_PAUSE, sidecar.pause * 2)
                self._start(sidecar, word="It had died and is started again.\n")

    def _start(self, sidecar: _Sidecar, *, word: str = "") -> None:
        sidecar.began, sidecar.again_at, sidecar.pid = time.monotonic(), None, None
        with suppress(OSError):  # a disk that is full must not end the job
            output = os.open(self.pod.path / f"{sidecar.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(output, word.encode())
                sidecar.pid = sidecar.container.start(output, hold_sigterm=True)
                sidecar.ticks = processes.start_ticks(sidecar.pid)
            except failed_to_start as error:
                os.write(output, f"{error}\n".encode())  # a job runs without its sidecar, too
            finally:
                os.close(output)

    def family(self) -> set[int]:
        """Every process of theirs that lives."""
        pids = self._living()
        return {*pids, *(child for pid in pids for child in processes.descendants(pid))}

    def _living(self) -> list[int]:
        return [sidecar.pid for sidecar in self._all if sidecar.is_alive and sidecar.pid is not None]

    def ask_to_end(self) -> None:
        processes.signal_all(self._living(), signal.SIGTERM)

    def kill(self) -> None:
        processes.signal_all(sorted(self.family()), signal.SIGKILL)
