"""A whole portal on the real cluster of this machine, for stories with real containers."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.devcluster import portal as dev
from deploy.devcluster import servers
from deploy.devcluster.programs import find
from deploy.devcluster.settings import Settings
from tests.cluster.control_plane import of_this_checkout
from tests.cluster.lacking import lacking
from tests.portal.running import Portal, until
from tests.ports import free_port

OURS = "app.kubernetes.io/managed-by=trainhall"
SMALL = {"cpus": "100m", "memory": "128Mi"}


@dataclass
class ClusterPortal(Portal):
    """`make run` with the dev cluster and no other."""

    cluster: Settings = field(kw_only=True)

    def connect(self) -> None:
        clusters = dev.connect(self.cluster, port=self.port)
        self.settings |= {
            "TRAINHALL_CLUSTERS": str(clusters),
            "TRAINHALL_DEMO_IMAGE": "localhost/python:1",
            "TRAINHALL_DEMO_PASSWORD": "",
            "TRAINHALL_FAULT_DIR": str(self.data / "faults"),
        }

    def run(self, program: str, **fields: Any) -> str:
        """A job of alice's that runs this Python; its id."""
        resources = SMALL | fields.pop("resources", {})
        document = {
            "namespace": "vision",
            "runtime": "numpy",
            "command": "python3 train.py",
            "code": {"files": {"train.py": program}},
            "priority": "low",
            "resources": resources,
            **fields,
        }
        return str(self.rest("jobs/", document)["id"])

    def over(self, job: str, status: str, *, seconds: float = 90) -> Any:
        """The job, once it has ended, which must be in this way."""

        def ended() -> Any:
            found = self.rest(f"jobs/{job}/")
            return found if found["status"] in ("succeeded", "failed", "cancelled") else None

        found = until(ended, seconds=seconds, what=f"{job} has ended")
        assert found["status"] == status, (found["reason"], self.said(job))
        return found

    def lines(self, job: str, worker: str = "") -> list[str]:
        """What a worker, or all of them, wrote."""
        found: list[str] = []
        after = 0
        while page := self.rest(f"jobs/{job}/logs/?limit=5000&after={after}&worker={worker}")["lines"]:
            found += [line["text"] for line in page]
            after = page[-1]["seq"]
        return found

    def said(self, job: str) -> str:
        return "\n".join(self.lines(job)[-20:])

    def kubectl(self, *words: str) -> Any:
        """What an admin sees, as JSON."""
        argv = [str(find(self.cluster, "kubectl")), "--kubeconfig", str(self.cluster.kubeconfig), *words, "-o", "json"]
        return json.loads(subprocess.check_output(argv, text=True, timeout=60))

    def objects_of(self, job: str) -> list[str]:
        """What of a job is on the cluster."""
        items = self.kubectl("get", "jobs,pods,services,secrets,configmaps", "-A", "-l", f"trainhall.io/job={job}")[
            "items"
        ]
        return [f"{item['kind']} {item['metadata']['name']}" for item in items]

    def pods_of(self, job: str) -> list[Any]:
        return list(self.kubectl("get", "pods", "-A", "-l", f"trainhall.io/job={job}")["items"])

    def run_folder(self, job: str) -> Path:
        return self.cluster.folder / "volumes" / "p-vision" / "runs" / job

    def audited(self, job: str) -> list[dict[str, Any]]:
        """What the API server wrote down of requests about objects of a job."""
        found = (json.loads(line) for line in self.cluster.audit_log.read_text().splitlines() if f"j-{job}-" in line)
        return [entry for entry in found if entry["stage"] == "ResponseComplete"]

    @contextmanager
    def without(self, server: str) -> Iterator[None]:
        """While a server of the cluster is dead by kill -9; the caller starts it again."""
        process = servers.running(self.cluster, server)
        assert process is not None, server
        process.kill()
        process.wait(10)
        yield


@contextmanager
def portal_on_cluster(kind: type[ClusterPortal] = ClusterPortal) -> Iterator[Any]:
    """Started, with nothing of an earlier one on the cluster; killed afterwards."""
    cluster = of_this_checkout()
    required(cluster)
    clear(cluster)
    folder = Path(tempfile.mkdtemp(prefix="trainhall-story-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    portal = kind(folder / "data", port=free_port("127.0.0.1", cluster.node_address), cluster=cluster)
    portal.connect()
    try:
        portal.start()
        yield portal
    finally:
        portal.kill_all()
        shutil.rmtree(folder)


def clear(cluster: Settings) -> None:
    """What an earlier portal left: its namespaces are not this one's, and stay its own otherwise."""
    argv = [str(find(cluster, "kubectl")), "--kubeconfig", str(cluster.kubeconfig)]
    subprocess.run([*argv, "delete", "namespace", "-l", f"{OURS},trainhall.io/instance=main"], check=True, timeout=180)


def required(cluster: Settings) -> None:
    if not (cluster.folder / "pki" / "done").exists():
        lacking("This story needs the dev cluster of this checkout: it kills its servers.")
