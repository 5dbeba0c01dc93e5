"""Jobs that people make with kubectl, on a real cluster: they wait in the portal's queue, and are its jobs from then on."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.devcluster.programs import find
from tests.cluster.connected import job
from tests.cluster.control_plane import of_this_checkout
from tests.cluster.story import ClusterPortal, clear, required
from tests.portal.running import until
from tests.ports import free_port

pytestmark = pytest.mark.cluster

VISION = "p-vision"
SAYS = ["sh", "-c", "echo loss=0.5; echo I am $(id -u); echo done"]
STAYS = ["sh", "-c", "trap 'echo saved; exit 0' TERM; echo ready; while true; do sleep 0.2; done"]


@pytest.fixture(scope="module")
def portal(containers: None) -> Iterator[ClusterPortal]:
    cluster = of_this_checkout()
    required(cluster)
    clear(cluster)
    folder = Path(tempfile.mkdtemp(prefix="trainhall-adoption-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    portal = ClusterPortal(folder / "data", port=free_port("127.0.0.1", cluster.node_address), cluster=cluster)
    portal.connect()
    try:
        portal.start()
        until(lambda: may_create(portal, "alice"), seconds=60, what="alice may make Jobs in her project")
        yield portal
    finally:
        portal.kill_all()
        shutil.rmtree(folder)


def kubectl(portal: ClusterPortal, *words: str, body: Any = None, name: str = "trainhall:local:alice") -> str:
    """What somebody types, with the name that the cluster knows them by; "" for an admin of the cluster."""
    argv = [str(find(portal.cluster, "kubectl")), "--kubeconfig", str(portal.cluster.kubeconfig), "-n", VISION]
    argv += ["--as", name] if name else []
    text = json.dumps(body) if body is not None else None
    done = subprocess.run([*argv, *words], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def may_create(portal: ClusterPortal, name: str) -> bool:
    try:
        return kubectl(portal, "auth", "can-i", "create", "jobs", name=f"trainhall:local:{name}").strip() == "yes"
    except AssertionError:
        return False


def make(
    portal: ClusterPortal, name: str, command: list[str], *, who: str = "trainhall:local:alice", **spec: Any
) -> Any:
    """A Job that somebody makes with kubectl, and the portal's job that it becomes."""
    gpus = spec.pop("gpus", 0)
    resources = {"requests": {"cpu": "50m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}}
    if gpus:
        resources["limits"]["nvidia.com/gpu"] = str(gpus)
    # a container that is called like nothing of the portal's
    body = job(name, container={"name": "trainer", "command": command, "resources": resources}, spec=spec)
    kubectl(portal, "create", "-f", "-", body=body, name=who)
    return taken_in(portal, name)


def taken_in(portal: ClusterPortal, name: str, *, but: str = "") -> Any:
    def found() -> Any:
        rows = portal.rest(f"jobs/?q={name}")["results"]
        return next((row for row in rows if row["name"] == name and row["id"] != but), None)

    row = until(found, seconds=15, what=f"{name} is in the portal's list")
    return portal.rest(f"jobs/{row['id']}/")


def uid_of(portal: ClusterPortal, name: str) -> str:
    return kubectl(portal, "get", "job", name, "-o", "jsonpath={.metadata.uid}")


def test_a_job_made_with_kubectl_waits_runs_and_is_charged_like_any_other(portal: ClusterPortal) -> None:
    made = make(portal, "by-hand", SAYS, parallelism=2, completions=2, gpus=1)
    assert (made["origin"], made["user"], made["namespace"]) == ("kubectl", "alice", "vision")
    assert made["resources"]["total_gpus"] == 2
    over = portal.over(made["id"], "succeeded")
    assert [worker["exit_code"] for worker in over["workers"]] == [0, 0], over["workers"]
    for worker in over["workers"]:
        said = portal.lines(made["id"], worker["name"])
        assert said[0] == "loss=0.5" and said[-1] == "done", said
