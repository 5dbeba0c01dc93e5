"""A control plane of a test's own, which it may kill: etcd, API server, controllers and kwok's nodes, without a kubelet."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deploy.devcluster import __main__ as program
from deploy.devcluster import control, servers
from deploy.devcluster.api import Api
from deploy.devcluster.settings import Settings, read
from tests.ports import free_port

JSON_MERGE = "application/merge-patch+json"


def of_this_checkout() -> Settings:
    """The dev cluster, as all tests want it: who mends it with other wishes would take the fake nodes away."""
    return read({"CLUSTER_FAKE_NODES": "4", **os.environ})


class ControlPlane:
    def __init__(self, folder: Path, *, fake_nodes: int = 0) -> None:
        self.settings: Settings = read(
            {"CLUSTER_DIR": str(folder), "CLUSTER_PORT": str(free_port(row=12)), "CLUSTER_NODES": "0"}
            | {"CLUSTER_FAKE_NODES": str(fake_nodes)}
        )
        self.api: Api | None = None

    def up(self) -> None:
        program.up(self.settings)
        self.api = Api(self.settings)

    def down(self) -> None:
        program.down(self.settings)

    @property
    def pki(self) -> Path:
        return self.settings.folder / "pki"

    def tls(self) -> ssl.SSLContext:
        """An admin's."""
        context = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
        context.load_cert_chain(self.pki / "admin.crt", self.pki / "admin.key")
        return context

    def kill(self) -> None:
        """The API server, as a machine's end would."""
        process = servers.running(self.settings, "apiserver")
        assert process is not None
        process.kill()
        process.wait(10)

    def restart(self) -> None:
        assert self.api is not None
        control.up(self.settings, self.api)

    # Objects, as an admin writes them

    def send(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> Any:
        assert self.api is not None
        return self.api.send(method, path, body, kind=kind)

    def listed(self, path: str) -> dict[str, str]:
        """What a fresh list says: versions by UID."""
        return {
            item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in self.send("GET", path)["items"]
        }

    def namespace(self, name: str) -> str:
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        within(30, lambda: self.send("GET", f"/api/v1/namespaces/{name}/serviceaccounts")["items"], what="its account")
        return name

    def job(self, namespace: str, name: str, **spec: Any) -> str:
        """A Job that no controller touches, so that its status can be written as a test wants it; its UID."""
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"managedBy": "trainhall.io/test", "backoffLimit": 0, "template": {"spec": SPEC}} | spec,
        }
        made = self.send("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", body)
        return str(made["metadata"]["uid"])

    def pod(self, namespace: str, name: str, *, job: tuple[str, str] | None = None, **metadata: Any) -> str:
        """A pod that no scheduler touches; its UID."""
        if job is not None:
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job[0], "uid": job[1], "controller": True}
            metadata["ownerReferences"] = [owner]
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": SPEC}
        return str(self.send("POST", f"/api/v1/namespaces/{namespace}/pods", body)["metadata"]["uid"])

    def set_pod(self, namespace: str, name: str, status: dict[str, Any]) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        self.send("PATCH", path, {"status": status}, kind=JSON_MERGE)

    def set_job(self, namespace: str, name: str, status: dict[str, Any]) -> None:
        path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status"
        self.send("PATCH", path, {"status": status}, kind=JSON_MERGE)

    def delete_pod(self, namespace: str, name: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        self.send("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})


SPEC = {
    "restartPolicy": "Never",
    "schedulerName": "nobody",
    "containers": [{"name": "main", "image": "localhost/busybox:1"}],
}


def within(seconds: float, question: Callable[[], Any], *, what: str = "") -> float:
    """How long it took to become true; fails where it takes longer."""
    began = time.monotonic()
    while not question():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - began
