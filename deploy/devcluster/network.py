"""The node's network: an interface of its own, kube-proxy, pod DNS and the policy agent; and how it all goes away again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from deploy.devcluster import control, servers
from deploy.devcluster.programs import find
from deploy.devcluster.settings import CannotStart, Settings

# what CNI and kube-proxy change for the whole machine; `down` puts it back
SWITCHES = ("net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet")
POLICY_TABLE = "kube-network-policies"
# how a pod's process sees the API server; the policy agent looks nowhere else
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def up(settings: Settings) -> None:
    """What must be there before the first pod."""
    before = settings.folder / "node" / "before.json"
    if not before.exists():
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
        servers.stop(settings, "policies")
        _forget_policies()


def down(settings: Settings) -> None:
    """After the last container: chains, tables, interfaces and the machine's switches."""
    for name in ("policies", "dns", "proxy"):
        servers.stop(settings, name)
    _forget_policies()
    if (program := find(settings, "kube-proxy")).exists():
        subprocess.run([program, "--cleanup"], capture_output=True, check=False)
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


def _dns(settings: Settings) -> None:
    config = settings.folder / "node" / "Corefile"
    settings.fill("Corefile", config)
    servers.start(settings, "dns", [str(find(settings, "dns")), "-conf", str(config)], read=[config])


def _policies(settings: Settings) -> None:
    """The agent believes it is in a pod: a mount namespace of its own shows it the account where a pod has it."""
    account = settings.folder / "node" / "account"
    account.mkdir(mode=0o700, exist_ok=True)
    (account / "token").write_text(control.token(settings))
    (account / "ca.crt").write_bytes((settings.folder / "pki" / "ca.crt").read_bytes())
    pretend = 'mount -t tmpfs tmpfs /run && mkdir -p "$0" && cp "$1"/* "$0" && shift && exec "$@"'
    argv = ["unshare", "--mount", "sh", "-c", pretend, ACCOUNT, str(account), str(find(settings, "policies"))]
    argv += [
        "--hostname-override",
        settings.node,
        "--metrics-bind-address",
        f"127.0.0.1:{settings.port_of('policies')}",
    ]
    # names are asked of this machine itself, where the agent does not look; containerd 1.x has no NRI
    argv += ["--netfilter-bug-1766-fix=false", "--disable-nri"]
    address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(settings.port)}
    servers.start(settings, "policies", argv, read=[account / "token", account / "ca.crt"], environment=address)


def _forget_policies() -> None:
    """A table left behind would drop what it hands to an agent that is gone."""
    subprocess.run(["nft", "delete", "table", "inet", POLICY_TABLE], capture_output=True, check=False)


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
