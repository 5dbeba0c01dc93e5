"""Sidecars of a pod: processes beside `main`, which a runner starts before it and ends after it. Standard library only."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from jobs.cluster.local import processes
from jobs.cluster.local.container import Container, failed_to_start
from jobs.cluster.local.layout import PodFolder

SINCE = "TRAINHALL_AGENT_SINCE"  # what lies in the folders from before belongs to an earlier attempt


def is_sidecar(spec: dict[str, Any]) -> bool:
    return spec.get("restartPolicy") == "Always"


class Sidecars:
    """Those of one pod. They do not count against its memory, and their output is not the job's. Dead ones stay dead."""

    def __init__(self, pod: PodFolder) -> None:
        self.pod = pod
        self._started: list[tuple[int, int | None]] = []

    def start(self, spec: dict[str, Any], *, job: dict[str, Any], release: dict[str, Any], index: int) -> None:
        spec = spec | {"env": [*spec.get("env", ()), {"name": SINCE, "value": repr(time.time())}]}
        container = Container(spec, pod=self.pod, job=job, release=release, index=index)
        output = os.open(self.pod.path / f"{spec['name']}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            pid = container.start(output, hold_sigterm=True)
        except failed_to_start as error:
            os.write(output, f"{error}\n".encode())  # a job runs without its sidecar, too
        else:
            self._started.append((pid, processes.start_ticks(pid)))
        finally:
            os.close(output)

    def family(self) -> set[int]:
        """Every process of theirs that lives."""
        pids = self._living()
        return {*pids, *(child for pid in pids for child in processes.descendants(pid))}

    def _living(self) -> list[int]:
        return [pid for pid, ticks in self._started if processes.is_alive(pid, ticks)]

    def ask_to_end(self) -> None:
        processes.signal_all(self._living(), signal.SIGTERM)

    def kill(self) -> None:
        processes.signal_all(sorted(self.family()), signal.SIGKILL)
