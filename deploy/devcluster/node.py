"""The real node, as root: containerd, images and kubelet, with GPUs that are only a number."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from deploy.devcluster import images, network, servers
from deploy.devcluster.api import PATCH, Api, is_ready
from deploy.devcluster.programs import find
from deploy.devcluster.settings import CannotStart, Settings

# what a program stands for in Debian's archive
PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ipset": "ipset",
    "ip": "iproute2",
    "unshare": "util-linux",
}
PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")
# where a distribution keeps what an ordinary PATH may leave out
SCRATCH = "200Gi"
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def missing() -> list[str]:
    """Debian packages that the node needs and this machine lacks."""
    packages = {package for program, package in PACKAGES.items() if _which(program) is None}
    if not _plugins():
        packages.add("containernetworking-plugins")
    return sorted(packages | set(images.missing()))


def install() -> None:
    """Get what is missing, where this is a Debian and we are root; elsewhere `check` says what it is."""
    packages = missing()
    if not packages or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    print(f"Installing {', '.join(packages)}…", file=sys.stderr, flush=True)
    for words in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        argv = ["apt-get", "--quiet", *words]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotStart(f"{' '.join(argv)} failed: {done.stderr.strip()}")


def check() -> None:
    if os.geteuid() != 0:
        raise CannotStart(
            "Real containers need root. CLUSTER_NODES=0 brings up the control plane alone, with fake nodes if you like."
        )
    if packages := missing():
        raise CannotStart(f"Missing here: apt-get install --no-install-recommends {' '.join(packages)}")


def up(settings: Settings, api: Api) -> None:
    folder = settings.folder / "node"
    for name in ("net.d", "opt", "logs"):
        (folder / name).mkdir(exist_ok=True)
    network.up(settings)
    _cgroup(settings)
    snapshotter = _snapshotter(settings)
    _containerd(settings, snapshotter)
    images.load(settings, ctr(settings), snapshotter)
    _kubelet(settings)
    path = f"/api/v1/nodes/{settings.node}"

    def registered() -> bool:
        # after a crash the node is still called ready for a while, by what its last kubelet said
        node = api.find(path) if servers.listens("127.0.0.1", settings.port_of("kubelet")) else None
        return node is not None and is_ready(node)

    servers.wait(settings, "kubelet", registered)
    _give_gpus(settings, api, path)
    network.serve(settings)


def ctr(settings: Settings) -> list[str]:
    return [str(_which("ctr")), "--address", str(settings.containerd), "--namespace", "k8s.io"]


def _containerd(settings: Settings, snapshotter: str) -> None:
    program = _which("containerd")
    version = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True).stdout
    old = re.search(r"\bv?1\.\d+\.", version) is not None
    config = settings.folder / "node" / "containerd.toml"
    settings.fill(
        f"containerd-{1 if old else 2}.toml",
        config,
        cni=_plugins(),
        runc=_which("runc"),
        snapshotter=snapshotter,
    )
    # the shim is looked for on PATH, and must be the one beside this containerd
    path = f"{Path(str(program)).parent}:{os.environ.get('PATH', os.defpath)}:{SBIN}"
    servers.start(settings, "containerd", [str(program), "-c", str(config)], read=[config], environment={"PATH": path})
    asked = [*ctr(settings), "version"]
    servers.wait(
        settings, "containerd", lambda: subprocess.run(asked, capture_output=True, check=False).returncode == 0
    )


def _kubelet(settings: Settings) -> None:
    pki = settings.folder / "pki"
    config = settings.folder / "node" / "kubelet.yaml"
    settings.fill(
        "kubelet.yaml", config, port=settings.port_of("kubelet"), health_port=settings.port_of("kubelet-health")
    )
    argv = [str(find(settings, "kubelet")), "--config", str(config), "--kubeconfig", f"{pki}/kubelet.conf"]
    argv += ["--root-dir", str(settings.folder / "kubelet"), "--cert-dir", str(settings.folder / "kubelet" / "pki")]
    argv += [
        "--hostname-override",
        settings.node,
        "--node-ip",
        settings.node_address,
        "--node-labels",
        "type=real",
        "--v=2",
    ]
    path = f"{os.environ.get('PATH', os.defpath)}:{SBIN}"
    servers.start(settings, "kubelet", argv, read=[config, pki / "kubelet.crt"], environment={"PATH": path})


def _give_gpus(settings: Settings, api: Api, path: str) -> None:
    """As a device plugin would; the kubelet keeps the number, also over its own restart.

    Scratch space is a number too: this kubelet does not measure it, because it does not know every file system.
    """
    given_out = {"ephemeral-storage": SCRATCH}
    if settings.gpus:
        given_out["nvidia.com~1gpu"] = str(settings.gpus)
    changes = [{"op": "add", "path": f"/status/capacity/{name}", "value": value} for name, value in given_out.items()]
    api.send("PATCH", f"{path}/status", changes, kind=PATCH)

    def given() -> bool:
        node = api.find(path)
        return node is not None and node["status"]["allocatable"].get("nvidia.com/gpu", "0") == str(settings.gpus)

    servers.wait(settings, "kubelet", given)


def _cgroup(settings: Settings) -> None:
    """The kubelet wants its branch to exist. With cgroup v1 a new branch of cpuset has no processors until it is given some."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        (root / settings.cgroup).mkdir(exist_ok=True)
        return
    for hierarchy in root.iterdir():
        if hierarchy.is_symlink() or not hierarchy.is_dir():
            continue
        branch = hierarchy / settings.cgroup
        branch.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (branch / name).exists():
                (branch / name).write_text((hierarchy / name).read_text())


def _snapshotter(settings: Settings) -> str:
    """Layers as overlays, or as whole copies where this folder is itself on an overlay, as in a container."""
    with tempfile.TemporaryDirectory(dir=settings.folder / "node") as folder:
        for name in ("lower", "upper", "work", "merged"):
            (Path(folder) / name).mkdir()
        options = ",".join(f"{name}dir={folder}/{name}" for name in ("lower", "upper", "work"))
        mount = ["mount", "-t", "overlay", "overlay", "-o", options, f"{folder}/merged"]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            return "native"
        subprocess.run(["umount", f"{folder}/merged"], check=True)
    return "overlayfs"


def _plugins() -> str | None:
    needed = ("ptp", "host-local", "loopback")
    return next((folder for folder in PLUGINS if all((Path(folder) / name).exists() for name in needed)), None)


def _which(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}")
