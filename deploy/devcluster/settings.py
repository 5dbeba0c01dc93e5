"""What a dev cluster is like: its folder, ports, sizes and addresses, read from the environment (README.md has the table)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

HERE = Path(__file__).parent
CHECKOUT = HERE.parent.parent
# a unix socket's path has room for 107 bytes; the longest name below the folder is node/containerd.sock.ttrpc
LONGEST_FOLDER = 107 - len("/node/containerd.sock.ttrpc")


class CannotStart(Exception):
    """The cluster cannot be had here; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One dev cluster. Every address is on loopback or, for pods, on an interface that only this machine has."""

    folder: Path
    cache: Path
    port: int
    nodes: int
    gpus: int
    fake_nodes: int
    fake_gpus: int
    policies: bool

    # the node's own address: the kubelet refuses a loopback one, and pods must reach their name server
    node_address = "10.88.0.1"
    pod_network = "10.88.7.0/24"
    service_network = "10.96.0.0/16"
    interface = "trainhall0"
    node = "node1"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.folder / "logs" / "audit.log"

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def containerd(self) -> Path:
        return self.folder / "node" / "containerd.sock"

    @property
    def cgroup(self) -> str:
        """A branch of its own: two kubelets on one branch clear each other's pods away."""
        return "trainhall-devcluster"

    def fill(self, name: str, target: Path, **values: object) -> None:
        """Write a configuration of config/ with this cluster's names in it."""
        known = {key: getattr(self, key) for key in ("folder", "cgroup", "node", "node_address", "pod_network")}
        text = Template((HERE / "config" / name).read_text()).substitute(known, **values)
        # kube-proxy ends when its file is written, also with what was in it
        if not target.exists() or target.read_text() != text:
            target.write_text(text)

    def port_of(self, name: str) -> int:
        """The ports next to the API server's, so that a second control plane needs one other number."""
        return self.port + 1 + PORTS.index(name)


PORTS = (
    "etcd",
    "etcd-peer",
    "controllers",
    "scheduler",
    "kubelet",
    "kubelet-health",
    "proxy",
    "proxy-health",
    "kwok",
    "policies",
)


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    caches = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(environment.get("CLUSTER_DIR") or CHECKOUT / "var" / "devcluster").resolve()
    if len(os.fsencode(folder)) > LONGEST_FOLDER:
        raise CannotStart(f"CLUSTER_DIR may have at most {LONGEST_FOLDER} bytes, because of its sockets: {folder}")
    return Settings(
        folder=folder,
        cache=Path(environment.get("CLUSTER_CACHE") or Path(caches) / "trainhall" / "devcluster").resolve(),
        port=_number(environment, "CLUSTER_PORT", 6443, most=65535 - len(PORTS) - 1),
        nodes=_number(environment, "CLUSTER_NODES", 1, most=1),
        gpus=_number(environment, "CLUSTER_GPUS", 4, most=1000),
        fake_nodes=_number(environment, "CLUSTER_FAKE_NODES", 0, most=5000),
        fake_gpus=_number(environment, "CLUSTER_FAKE_GPUS", 8, most=1000),
        policies=bool(_number(environment, "CLUSTER_POLICIES", 1, most=1)),
    )


def _number(environment: Mapping[str, str], name: str, default: int, *, most: int) -> int:
    text = environment.get(name) or str(default)
    if not text.isdecimal() or int(text) > most:
        raise CannotStart(f"{name} must be a whole number from 0 to {most}, not {text!r}.")
    return int(text)
