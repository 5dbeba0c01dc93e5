"""The node's network: an interface of its own, kube-proxy, pod DNS and the policy agent; and how it all goes away again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import psutil

from deploy.devcluster import servers
from deploy.devcluster.programs import find
from deploy.devcluster.settings import CannotStart, Settings

# what CNI, kube-proxy and the kubelet change for the whole machine; `down` puts it back
SWITCHES = (
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/route_localnet",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
COMPANY = ("kubelet", "kube-proxy", "k3s", "k3s-server", "rke2", "kubelite")


def up(settings: Settings) -> None:
    """What must be there before the first pod."""
    before = settings.folder / "node" / "before.json"
    if not before.exists():
        _refuse_company()
        before.write_text(json.dumps({name: Path("/proc/sys", name).read_text().strip() for name in SWITCHES}))
    if not Path("/sys/class/net", settings.interface).exists():
        # nothing is plugged into it: not every kernel knows the kind of interface that is meant for this
        _ip("link", "add", settings.interface, "type", "bridge")
    _ip("address", "replace", f"{settings.node_address}/32", "dev", settings.interface)
    _ip("link", "set", settings.interface, "up")
    settings.fill("network.conflist", settings.folder / "node" / "net.d" / "10-pods.conflist")


def serve(settings: Settings) -> None:
    """What pods and Services need: names, cluster addresses, policies."""
    _proxy(settings)
    _dns(settings)
    if settings.policies:
        _policies(settings)
    else:
        # what it wrote stays until `down`, as on a node whose agent has died
        servers.stop(settings, "policies")


def down(settings: Settings) -> None:
    """After the last container: chains, tables, interfaces and the machine's switches."""
    for name in ("policies", "dns", "proxy"):
        servers.stop(settings, name)
    _forget_chains()
    for link in _links():
        if link["ifname"] == settings.interface or _is_a_pods(settings, link):
            # a pod's end may take its own away in the meantime
            subprocess.run(["ip", "link", "delete", link["ifname"]], capture_output=True, check=False)
    before = settings.folder / "node" / "before.json"
    if before.exists():
        for name, value in json.loads(before.read_text()).items():
            Path("/proc/sys", name).write_text(value)
        before.unlink()


def _proxy(settings: Settings) -> None:
    config = settings.folder / "node" / "proxy.yaml"
    ports = {"port": settings.port_of("proxy"), "health_port": settings.port_of("proxy-health")}
    settings.fill("proxy.yaml", config, **ports)
    servers.start(settings, "proxy", [str(find(settings, "kube-proxy")), "--config", str(config)], read=[config])
    servers.wait(settings, "proxy", lambda: servers.listens("127.0.0.1", ports["health_port"]))


def _dns(settings: Settings) -> None:
    config = settings.folder / "node" / "Corefile"
    settings.fill("Corefile", config)
    servers.start(settings, "dns", [str(find(settings, "dns")), "-conf", str(config)], read=[config])
    servers.wait(settings, "dns", lambda: servers.listens(settings.node_address, 53))


def _policies(settings: Settings) -> None:
    argv = [str(find(settings, "policies")), "-kubeconfig", str(settings.folder / "pki" / "policies.conf")]
    argv += ["-node", settings.node, "-services", settings.service_network]
    # names, and a portal that listens there, are on the node itself: policies are about pods and the world
    argv += ["-open", f"{settings.node_address}/32"]
    servers.start(settings, "policies", argv)


def _refuse_company() -> None:
    """Two Kubernetes nodes on one machine write the same chains."""
    for process in psutil.process_iter(["name"]):
        if process.info["name"] in COMPANY:
            raise CannotStart(
                f"{process.info['name']} (process {process.pid}) runs here already, and two nodes on one machine write the "
                "same iptables chains. Stop it, or bring up the control plane alone with CLUSTER_NODES=0."
            )


def _forget_chains() -> None:
    """kube-proxy and the policy agent name every chain and set KUBE-…; both leave them when they end, as nodes should."""
    for command in ("iptables", "ip6tables"):
        saved = subprocess.run([f"{command}-save"], capture_output=True, text=True, check=False).stdout
        undo = without_kube(saved)
        if undo:
            subprocess.run([f"{command}-restore", "--noflush"], input=undo, text=True, capture_output=True, check=True)
    listed = subprocess.run(["ipset", "list", "-name"], capture_output=True, text=True, check=False).stdout
    for name in listed.split():
        if name.removeprefix("inet6:").startswith("KUBE-"):
            subprocess.run(["ipset", "destroy", name], check=True)


def without_kube(saved: str) -> str:
    """What `iptables-restore --noflush` must be told so that nothing of KUBE-… is left in what `iptables-save` said."""
    undo: list[str] = []
    for table in saved.split("\n*")[0 if saved.startswith("*") else 1 :]:
        name, *lines = table.lstrip("*").splitlines()
        chains = [line[1:].split()[0] for line in lines if line.startswith(":KUBE-")]
        jumps = [
            line for line in lines if line.startswith("-A ") and " -j KUBE-" in line and not line.startswith("-A KUBE-")
        ]
        if chains:
            undo += [f"*{name}", *(f":{chain} - [0:0]" for chain in chains)]
            undo += [f"-D {line[3:]}" for line in jumps] + [f"-X {chain}" for chain in chains] + ["COMMIT", ""]
    return "\n".join(undo)


def _is_a_pods(settings: Settings, link: dict[str, Any]) -> bool:
    gateway = settings.pod_network.rpartition(".")[0] + ".1"
    return link["ifname"].startswith("veth") and any(a.get("local") == gateway for a in link.get("addr_info", []))


def _links() -> list[dict[str, Any]]:
    listed = subprocess.run(["ip", "-json", "address"], capture_output=True, text=True, check=True)
    links: list[dict[str, Any]] = json.loads(listed.stdout)
    return links


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotStart(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
