"""The control plane: etcd, API server, controllers and scheduler, on loopback only."""

from __future__ import annotations

import shutil

from deploy.devcluster import servers
from deploy.devcluster.api import Api
from deploy.devcluster.programs import find
from deploy.devcluster.settings import HERE, CannotStart, Settings

# the order in which they stop: the API server waits for etcd while it ends
NAMES = ("scheduler", "controllers", "apiserver", "etcd")
AUDIT = HERE / "config" / "audit.yaml"


def up(settings: Settings, api: Api) -> None:
    _etcd(settings)
    _apiserver(settings)
    # the controllers end at once while there is nothing to connect to
    servers.wait(settings, "apiserver", api.ready)
    _controllers(settings)
    _scheduler(settings)


def down(settings: Settings) -> None:
    for name in NAMES:
        servers.stop(settings, name)


def _etcd(settings: Settings) -> None:
    client = f"http://127.0.0.1:{settings.port_of('etcd')}"
    peer = f"http://127.0.0.1:{settings.port_of('etcd-peer')}"
    argv = [str(find(settings, "etcd")), "--data-dir", str(settings.folder / "etcd")]
    argv += ["--listen-client-urls", client, "--advertise-client-urls", client]
    argv += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
    # what is in it is thrown away with the cluster, so nothing waits for the disk
    argv += ["--unsafe-no-fsync", "--log-level", "warn"]
    servers.start(settings, "etcd", argv)


def _apiserver(settings: Settings) -> None:
    pki = settings.folder / "pki"
    argv = [str(find(settings, "kube-apiserver")), "--etcd-servers", f"http://127.0.0.1:{settings.port_of('etcd')}"]
    argv += ["--bind-address", "127.0.0.1", "--secure-port", str(settings.port), "--advertise-address", "127.0.0.1"]
    argv += ["--service-cluster-ip-range", settings.service_network, "--endpoint-reconciler-type", "none"]
    argv += ["--tls-cert-file", f"{pki}/apiserver.crt", "--tls-private-key-file", f"{pki}/apiserver.key"]
    argv += ["--client-ca-file", f"{pki}/ca.crt"]
    argv += ["--kubelet-client-certificate", f"{pki}/to-kubelet.crt", "--kubelet-client-key", f"{pki}/to-kubelet.key"]
    argv += ["--kubelet-certificate-authority", f"{pki}/ca.crt"]
    argv += ["--kubelet-preferred-address-types", "Hostname,InternalIP"]
    argv += ["--service-account-issuer", "https://kubernetes.default.svc"]
    argv += [
        "--service-account-key-file",
        f"{pki}/tokens.pub",
        "--service-account-signing-key-file",
        f"{pki}/tokens.key",
    ]
    argv += ["--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction", "--allow-privileged"]
    argv += ["--audit-policy-file", str(AUDIT), "--audit-log-path", str(settings.audit_log)]
    argv += ["--audit-log-maxsize", "200", "--audit-log-maxbackup", "2"]
    if settings.nodes:
        argv = [*_knowing_the_node(settings), *argv]
    servers.start(settings, "apiserver", argv, read=[AUDIT, pki / "apiserver.crt"])


def _knowing_the_node(settings: Settings) -> list[str]:
    """Logs and exec reach the kubelet by the node's name, which no name server knows: a hosts file for this server alone."""
    if shutil.which("unshare") is None:
        raise CannotStart("unshare is missing (apt-get install util-linux).")
    hosts = settings.folder / "node" / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {settings.node}\n")
    return [
        "unshare",
        "--mount",
        "--propagation",
        "slave",
        "sh",
        "-c",
        'mount --bind "$0" /etc/hosts && exec "$@"',
        str(hosts),
    ]


def _controllers(settings: Settings) -> None:
    pki = settings.folder / "pki"
    argv = [str(find(settings, "kube-controller-manager")), *_as(settings, "controllers")]
    argv += ["--service-account-private-key-file", f"{pki}/tokens.key", "--root-ca-file", f"{pki}/ca.crt"]
    # policies tell the Job controller from people by its account
    argv += ["--use-service-account-credentials", "--controllers", "*,-cloud-node-lifecycle-controller"]
    argv += ["--node-monitor-grace-period", "50s", "--concurrent-job-syncs", "20"]
    servers.start(settings, "controllers", argv, read=[pki / "ca.crt"])


def _scheduler(settings: Settings) -> None:
    argv = [str(find(settings, "kube-scheduler")), *_as(settings, "scheduler")]
    servers.start(settings, "scheduler", argv, read=[settings.folder / "pki" / "ca.crt"])


def _as(settings: Settings, name: str) -> list[str]:
    config = str(settings.folder / "pki" / f"{name}.conf")
    argv = ["--kubeconfig", config, "--authentication-kubeconfig", config, "--authorization-kubeconfig", config]
    return [*argv, "--bind-address", "127.0.0.1", "--secure-port", str(settings.port_of(name)), "--leader-elect=false"]
