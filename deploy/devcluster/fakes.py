"""Fake GPU nodes, run by kwok: their pods have states, and no containers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deploy.devcluster import servers
from deploy.devcluster.api import Api, is_ready
from deploy.devcluster.programs import find
from deploy.devcluster.settings import HERE, Settings

# of kwok's own stages; without any it would leave pods as they are, and with its own end of a pod Jobs would be over at once
STAGES = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-delete",
)
FAKE = {"kwok.x-k8s.io/node": "fake"}
SELECTOR = "labelSelector=type%3Dkwok"


def up(settings: Settings, api: Api) -> None:
    if settings.fake_nodes:
        _kwok(settings)
    known = {node["metadata"]["name"] for node in api.send("GET", f"/api/v1/nodes?{SELECTOR}")["items"]}
    wanted = {f"gpu-{number}": number for number in range(settings.fake_nodes)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: api.send("DELETE", f"/api/v1/nodes/{name}"), known - set(wanted)))
        new = [name for name in wanted if name not in known]
        list(pool.map(lambda name: api.create("/api/v1/nodes", _node(settings, name, wanted[name])), new))
    if not settings.fake_nodes:
        servers.stop(settings, "kwok")
        return

    def ready() -> bool:
        return all(map(is_ready, api.send("GET", f"/api/v1/nodes?{SELECTOR}")["items"]))

    servers.wait(settings, "kwok", ready)


def _kwok(settings: Settings) -> None:
    config = settings.folder / "kwok.yaml"
    parts = [
        *(find(settings, "kwok").with_name("stages") / f"{stage}.yaml" for stage in STAGES),
        HERE / "config" / "pod-complete.yaml",
    ]
    config.write_text("\n---\n".join(part.read_text() for part in parts))
    argv = [
        str(find(settings, "kwok")),
        "--kubeconfig",
        str(settings.folder / "pki" / "kwok.conf"),
        "--config",
        str(config),
    ]
    argv += ["--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"]
    argv += ["--node-lease-duration-seconds=40", "--cidr=10.89.0.0/16", "--node-ip=10.89.0.1"]
    argv += ["--server-address", f"127.0.0.1:{settings.port_of('kwok')}"]
    servers.start(settings, "kwok", argv, read=[config])


def _node(settings: Settings, name: str, number: int) -> dict[str, Any]:
    size = {
        "cpu": "64",
        "memory": "512Gi",
        "pods": "110",
        "ephemeral-storage": "1Ti",
        "nvidia.com/gpu": str(settings.fake_gpus),
    }
    labels = {
        "kubernetes.io/hostname": name,
        "type": "kwok",
        "nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB",
        "topology.trainhall.io/rack": f"r{number // 2}",
        "topology.trainhall.io/block": f"b{number // 4}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": FAKE, "labels": labels},
        "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
        "status": {"allocatable": size, "capacity": size},
    }
