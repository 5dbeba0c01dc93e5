"""The real cluster as an admin connects it to the portal: accounts, roles, policies, and namespaces of people on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deploy.devcluster.programs import find
from deploy.devcluster.settings import read
from jobs.cluster.kubernetes.cluster import KubernetesCluster
from jobs.cluster.kubernetes.setting import KubernetesSetting
from jobs.cluster.port import Manifest, Person
from jobs.cluster.tenancy import Runner, Tenancy, render
from portal.settings.clusters import read_clusters
from tests.cluster.lacking import lacking

CONNECT = Path(__file__).parents[2] / "deploy" / "kubernetes" / "connect.py"
ALICE, BOB, DAVE, STORE = 20123, 20124, 20125, 30017


@dataclass(frozen=True)
class Asked:
    """What one command said."""

    ok: bool
    text: str


@dataclass
class Hall:
    """The connected cluster, and short ways to act on it as anybody."""

    setting: KubernetesSetting
    cluster: KubernetesCluster
    admin: Path  # kubeconfig
    argv: list[str]
    audit_log: Path
    made: list[str] = field(default_factory=list)

    def kubectl(self, *words: str, body: object = None, account: str = "") -> Asked:
        """As an admin, or with one of the portal's three accounts."""
        config = ["--kubeconfig", self.setting.portal.kubeconfig, "--context", account] if account else []
        config = config or ["--kubeconfig", str(self.admin)]
        text = json.dumps(body) if body is not None else None
        done = subprocess.run(
            [*self.argv, *config, *words], input=text, capture_output=True, text=True, timeout=60, check=False
        )
        return Asked(done.returncode == 0, done.stdout if done.returncode == 0 else done.stdout + done.stderr)

    def as_user(self, name: str, *words: str, body: object = None) -> Asked:
        """With kubectl and the rights of a person, as the cluster's authenticator calls them."""
        return self.kubectl("--as", f"ldap:{name}", *words, body=body)

    def get(self, *words: str) -> Any:
        said = self.kubectl("get", *words, "-o", "json")
        assert said.ok, said.text
        return json.loads(said.text)

    def namespace(self, **changes: Any) -> Tenancy:
        """The project of alice and bob, in line; dave has no role there."""
        name = f"p-vision-{uuid.uuid4().hex[:6]}"
        people = (Runner("ldap:alice", ALICE, (20000, STORE)), Runner("ldap:bob", BOB, (20001,)))
        fields: dict[str, Any] = {
            "name": name,
            "instance": "test",
            "kind": "project",
            "subject": f"project:{name}",
            "default": Runner("", 2_130_000_001, (2_130_000_001,)),
            "runners": people,
            "viewers": ("ldap:alice", "ldap:bob", "ldap:vera"),
            "members": ("ldap:alice", "ldap:bob"),
        }
        wanted = Tenancy(**(fields | changes))
        self.made.append(wanted.name)
        self.cluster.ensure_namespace(render(wanted))
        return wanted

    def audited(self, namespace: str) -> list[dict[str, Any]]:
        """What the API server itself wrote down of requests about a namespace."""
        if not self.audit_log.exists():
            lacking("This cluster keeps its audit log elsewhere.")
        lines = self.audit_log.read_text().splitlines()
        found = [json.loads(line) for line in lines if f'"{namespace}"' in line]
        return [one for one in found if (one.get("objectRef") or {}).get("namespace") == namespace]


def person(name: str) -> Person:
    return Person(username=name, groups=("vision",), source="ldap")


@pytest.fixture(scope="session")
def hall(devcluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """Connected by the script that admins use."""
    folder = tmp_path_factory.mktemp("connected")
    built = find(read(), "kubectl")
    kubectl = str(built) if built.exists() else "kubectl"
    told = {**os.environ, "KUBECONFIG": str(devcluster), "KUBECTL": kubectl}
    done = subprocess.run(
        [sys.executable, str(CONNECT), "gpu", str(folder)], env=told, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    _has_local, (setting,) = read_clusters(str(folder / "clusters.yaml"))
    hall = Hall(setting, KubernetesCluster(setting), devcluster, [kubectl], devcluster.parent / "logs" / "audit.log")
    yield hall
    for name in hall.made:
        hall.kubectl("delete", "namespace", name, "--wait=false")


def pod(name: str, **changes: Any) -> Manifest:
    """What Pod Security asks for is there; `changes` go into its spec, and those of `container` into its container."""
    container = {
        "name": "main",
        "image": "localhost/busybox:1",
        "command": ["id"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}},
    } | changes.pop("container", {})
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}} | changes.pop("security", {})
    spec = {"restartPolicy": "Never", "securityContext": security, "containers": [container]} | changes
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def job(name: str, *, metadata: Manifest | None = None, spec: Manifest | None = None, **changes: Any) -> Manifest:
    """A Job of that pod; `spec` goes into the Job's own."""
    template = {"metadata": changes.pop("labels", {}), "spec": pod(name, **changes)["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name} | (metadata or {}),
        "spec": {"suspend": True, "backoffLimit": 0, "template": template} | (spec or {}),
    }
