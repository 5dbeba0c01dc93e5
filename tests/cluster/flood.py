"""B20: very many submissions at once, from careful clients, while a worker is killed; and what Kubernetes has made of them.

On a control plane with fake nodes, so that the portal and the API server are all that works. Their pods wait for a volume
that nobody makes: what is counted are Jobs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from deploy.devcluster.programs import find
from tests.chaos.hall import WORKER, Hall
from tests.cluster.connected import CONNECT
from tests.cluster.control_plane import ControlPlane
from tests.portal.running import until

CLUSTER = "flood"
CLIENTS = 24
TWICE = 10  # each so many-th is sent a second time at the same moment, as by somebody who got no answer
PODS = 100  # of a fake node


@dataclass
class FloodHall(Hall):
    """A whole portal whose only cluster is that control plane."""

    plane: ControlPlane = field(kw_only=True)

    def connect(self) -> None:
        settings = self.plane.settings
        folder = settings.folder / "portal"
        fields = [
            "helper_image: localhost/helper:1",
            "internal_url: http://portal.invalid",
            "tolerations: [{key: kwok.x-k8s.io/node, operator: Exists}]",
        ]
        told = os.environ | {"KUBECTL": str(find(settings, "kubectl")), "KUBECONFIG": str(settings.kubeconfig)}
        argv = [sys.executable, str(CONNECT), CLUSTER, str(folder), *fields]
        subprocess.run(argv, env=told, capture_output=True, check=True)
        self.settings |= {"TRAINHALL_CLUSTERS": str(folder / "clusters.yaml")}

    def jobs_there(self) -> list[str]:
        """The names of the Jobs that a fresh list has."""
        found = self.plane.send("GET", "/apis/batch/v1/namespaces/p-vision/jobs")["items"]
        return [str(item["metadata"]["name"]) for item in found]

    def created(self) -> dict[str, list[float]]:
        """When the API server answered that a Job was made (epoch seconds), as often as it did, by name."""
        found = defaultdict(list)
        for line in self.plane.settings.audit_log.read_text().splitlines():
            if '"create"' not in line or '"jobs"' not in line:
                continue
            entry = json.loads(line)
            done = entry.get("responseStatus", {}).get("code") == 201 and entry["stage"] == "ResponseComplete"
            if done and entry["verb"] == "create" and entry["objectRef"]["resource"] == "jobs":
                found[str(entry["objectRef"]["name"])].append(
                    datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
                )
        return found


@contextmanager
def flooded_portal(folder: Path, plane: ControlPlane) -> Iterator[FloodHall]:
    hall = FloodHall(folder / "data", plane=plane)
    hall.connect()
    try:
        hall.start()
        hall.submit_surely("true")  # the namespace is made on the cluster for the first of its jobs
        until(lambda: len(hall.jobs_there()) == 1, seconds=60, what="a first Job is there")
        yield hall
    finally:
        hall.kill_all()


@dataclass
class Flood:
    """What clients sent and were told."""

    sent: dict[str, float] = field(default_factory=dict)  # by job: when it was sent first (epoch seconds)
    answered: dict[str, float] = field(default_factory=dict)  # seconds until the answer
    twice: list[tuple[str, str]] = field(default_factory=list)  # both answers to what was sent twice
    killed_at: float = 0.0


def send(hall: FloodHall, *, jobs: int, seconds: float) -> Flood:
    """Evenly over the time; the worker is killed in its middle."""
    flood = Flood()

    def one(number: int) -> str:
        key, began = uuid.uuid4().hex, time.time()
        again = others.submit(hall.submit_surely, f"echo {number}", key=key) if number % TWICE == 0 else None
        job = hall.submit_surely(f"echo {number}", key=key)
        flood.sent[job], flood.answered[job] = began, time.time() - began
        if again is not None:
            flood.twice.append((job, again.result()))
        return job

    def kill() -> None:
        flood.killed_at = time.time()
        hall.kill(WORKER)

    began = time.monotonic()
    timer = threading.Timer(seconds / 2, kill)
    timer.start()
    with ThreadPoolExecutor(CLIENTS) as clients, ThreadPoolExecutor(CLIENTS) as others:
        asked: list[Future[str]] = []
        for number in range(jobs):
            time.sleep(max(0.0, began + number * seconds / jobs - time.monotonic()))
            asked.append(clients.submit(one, number))
        for answer in asked:
            answer.result()
    timer.join()
    return flood


def lies(hall: FloodHall, flood: Flood, *, jobs: int, first: int = 1) -> list[str]:
    """Where the witnesses disagree with "one Job for each submission"; `first` were there before."""
    wrong = []
    if len(flood.sent) != jobs:
        wrong.append(f"{len(flood.sent)} jobs for {jobs} submissions")
    wrong += [f"{one} and {other} for one key" for one, other in flood.twice if one != other]
    (stored,) = hall.rows("SELECT count(*), count(DISTINCT id), max(attempt_number) FROM jobs_job")
    if stored != (jobs + first, jobs + first, 1):
        wrong.append(f"the database has {stored}")
    there, made = hall.jobs_there(), hall.created()
    names = {f"j-{job}-1" for job in flood.sent}
    if missing := names - set(there):
        wrong.append(f"{len(missing)} have no Job")
    if len(there) != jobs + first or set(made) != set(there):
        wrong.append(f"{len(there)} Jobs, and {len(made)} were made")
    wrong += [f"{name} was made {len(times)} times" for name, times in made.items() if len(times) != 1]
    return wrong


def lateness(hall: FloodHall, flood: Flood) -> dict[str, float]:
    """Seconds from sending to the Job, by job."""
    made: dict[str, Any] = hall.created()
    return {job: made[f"j-{job}-1"][0] - at for job, at in flood.sent.items()}
