"""What belongs into a namespace on a cluster: its labels, who may do what there, its limits, its walls (KUBERNETES 3). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jobs.cluster.manifests import GPU, INSTANCE_LABEL, label_value
from jobs.cluster.port import Manifest
from jobs.cluster.quantities import format_cpu, format_memory

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_LABEL = "trainhall.io/managed"  # what the admission policies select
SUBJECT = "trainhall.io/subject"
PEOPLE = "trainhall.io/people"  # who runs with which numbers; see Runner
SYSTEM = "trainhall-system"  # where the portal's own accounts live
POD_SECURITY = "v1.34"
ROLES = "rbac.authorization.k8s.io"
# Numbers of our own, for people and projects to whom no directory gives any: above what SSSD, FreeIPA and container runtimes
# give out (2,000,200,000), below what a pod may have (2^31 - 1). People first, then projects.
FIRST_UID, FIRST_PROJECT_UID = 2_100_000_000, 2_130_000_000
MOST_GROUPS = 32  # of one person: NFS looks at 16, and all people of a namespace must fit into 256 KiB
# of a container that asks for nothing, by the LimitRange
DEFAULT_REQUESTS = {"cpu": "1", "memory": "2Gi"}
UNUSUAL_PORTS = (2049, 443, 9000)  # NFS and S3


@dataclass(frozen=True, slots=True)
class Runner:
    """Somebody whose pods may run in a namespace, and the numbers they run with: nobody runs with another's.

    The admission policies read a line of it for each person. The one without a name is for pods that no person made.
    """

    name: str  # as RBAC calls the person
    uid: int
    gids: tuple[int, ...]  # the first is the person's own

    @property
    def line(self) -> str:
        return f"{self.uid} {','.join(map(str, self.gids))} {self.name}"


@dataclass(frozen=True, slots=True)
class Tenancy:
    """One namespace as it shall be."""

    name: str  # the Kubernetes name
    instance: str
    kind: str  # personal or project
    subject: str  # whose or which it is: one that bears another is not ours
    default: Runner  # of pods that nobody we know has made: the owner's numbers, or a project's own
    runners: tuple[Runner, ...] = ()
    viewers: tuple[str, ...] = ()  # subjects as RBAC calls them; everybody with a role
    members: tuple[str, ...] = ()  # who may run something
    viewer_groups: tuple[str, ...] = ()
    member_groups: tuple[str, ...] = ()
    is_archived: bool = False  # its owner has left: nothing new starts, nothing is lost
    gpu_limit: int | None = None
    cpu_limit_millis: int | None = None
    memory_limit_bytes: int | None = None
    portal_port: int = 8000
    portal_address: str = ""  # where pods reach the portal, if that is an address outside the cluster
    runs_class: str = ""  # StorageClass of the claim that keeps what jobs write; "": an admin makes it
    storage: tuple[str, ...] = ()  # CIDRs of the networks where NFS and S3 are
    extra_labels: Mapping[str, str] = field(default_factory=dict)


def render(wanted: Tenancy) -> list[Manifest]:
    """The Namespace first, then all that goes into it."""
    return [
        _namespace(wanted),
        _service_account(wanted),
        *_bindings(wanted),
        *_quotas(wanted),
        _limit_range(wanted),
        _network_policy(wanted),
        *([_runs(wanted)] if wanted.runs_class else []),
    ]


def _labels(wanted: Tenancy) -> dict[str, str]:
    return {MANAGED_BY: "trainhall", INSTANCE_LABEL: label_value(wanted.instance)}


def _namespace(wanted: Tenancy) -> Manifest:
    everybody = [replace(wanted.default, name=""), *wanted.runners]
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": wanted.name,
            "labels": {
                **wanted.extra_labels,
                **_labels(wanted),
                MANAGED_LABEL: "true",
                "trainhall.io/kind": wanted.kind,
                "trainhall.io/state": "archived" if wanted.is_archived else "active",
                "pod-security.kubernetes.io/enforce": "restricted",
                "pod-security.kubernetes.io/enforce-version": POD_SECURITY,
                "pod-security.kubernetes.io/audit": "restricted",
                "pod-security.kubernetes.io/warn": "restricted",
            },
            "annotations": {
                SUBJECT: wanted.subject,
                "trainhall.io/uids": ",".join(map(str, dict.fromkeys(one.uid for one in everybody))),
                "trainhall.io/gids": ",".join(map(str, dict.fromkeys(gid for one in everybody for gid in one.gids))),
                PEOPLE: "\n".join(one.line for one in everybody),
            },
        },
    }


def _inside(wanted: Tenancy, api: str, kind: str, name: str, **rest: object) -> Manifest:
    metadata = {"name": name, "namespace": wanted.name, "labels": _labels(wanted)}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def _service_account(wanted: Tenancy) -> Manifest:
    """Pods run as it and hold no token of it."""
    return _inside(wanted, "v1", "ServiceAccount", "trainhall-job", automountServiceAccountToken=False)


def _bindings(wanted: Tenancy) -> list[Manifest]:
    people = [
        ("trainhall-viewers", "trainhall-viewer", wanted.viewers, wanted.viewer_groups),
        ("trainhall-members", "trainhall-member", wanted.members, wanted.member_groups),
    ]
    ours = [
        ("trainhall-workloads", "trainhall-workloads", "trainhall"),
        ("trainhall-act-as", "trainhall-act-as", "trainhall"),
        ("trainhall-logs", "trainhall-logs", "trainhall-watcher"),
    ]
    bindings = [_binding(wanted, name, role, _subjects(users, groups)) for name, role, users, groups in people]
    for name, role, account in ours:
        subject = {"kind": "ServiceAccount", "name": account, "namespace": SYSTEM}
        bindings.append(_binding(wanted, name, role, [subject]))
    return bindings


def _subjects(users: tuple[str, ...], groups: tuple[str, ...]) -> list[Manifest]:
    return [
        {"apiGroup": ROLES, "kind": kind, "name": name}
        for kind, names in (("User", users), ("Group", groups))
        for name in sorted(names)
    ]


def _binding(wanted: Tenancy, name: str, role: str, subjects: list[Manifest]) -> Manifest:
    reference = {"apiGroup": ROLES, "kind": "ClusterRole", "name": role}
    return _inside(wanted, f"{ROLES}/v1", "RoleBinding", name, roleRef=reference, subjects=subjects)


def _quotas(wanted: Tenancy) -> list[Manifest]:
    """The second wall: the planner counts first, and a gang that a quota cuts in half would wait for ever."""
    hard = {
        "count/jobs.batch": "5k",
        "count/services": "5k",
        "count/configmaps": "5k",
        "count/secrets": "5k",
        "services.nodeports": "0",
        "services.loadbalancers": "0",
    }
    if wanted.is_archived:
        hard["pods"] = "0"
    if wanted.gpu_limit is not None:
        hard[f"requests.{GPU}"] = str(wanted.gpu_limit)
    if wanted.cpu_limit_millis is not None:
        hard["requests.cpu"] = format_cpu(wanted.cpu_limit_millis)
    if wanted.memory_limit_bytes is not None:
        hard["requests.memory"] = format_memory(wanted.memory_limit_bytes)
    above = ["trainhall-challenge", "system-cluster-critical", "system-node-critical"]
    scope = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": above}]}
    return [
        _inside(wanted, "v1", "ResourceQuota", "trainhall-total", spec={"hard": hard}),
        _inside(
            wanted,
            "v1",
            "ResourceQuota",
            "trainhall-no-challenge",
            spec={"hard": {"pods": "0"}, "scopeSelector": scope},
        ),
    ]


def _limit_range(wanted: Tenancy) -> Manifest:
    """Never GPUs in it: `max` would become the default, and a container without a GPU would get eight."""
    limits = {
        "type": "Container",
        "default": {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "20Gi"},
        "defaultRequest": {**DEFAULT_REQUESTS, "ephemeral-storage": "1Gi"},
    }
    return _inside(wanted, "v1", "LimitRange", "trainhall", spec={"limits": [limits]})


def _runs(wanted: Tenancy) -> Manifest:
    spec = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": wanted.runs_class,
        "resources": {"requests": {"storage": "100Gi"}},
    }
    return _inside(wanted, "v1", "PersistentVolumeClaim", "runs", spec=spec)


def _network_policy(wanted: Tenancy) -> Manifest:
    """Ranks reach one another, name service, the portal, and the storage; nobody else reaches them but the portal."""
    everything_here: Manifest = {"podSelector": {}}
    system: Manifest = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SYSTEM}}}
    names = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    egress: list[Manifest] = [
        {"to": [everything_here]},
        {"to": [names], "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
        {"to": [system], "ports": [{"protocol": "TCP", "port": wanted.portal_port}]},
    ]
    if wanted.portal_address:
        block = {"ipBlock": {"cidr": f"{wanted.portal_address}/{128 if ':' in wanted.portal_address else 32}"}}
        egress.append({"to": [block], "ports": [{"protocol": "TCP", "port": wanted.portal_port}]})
    for network in wanted.storage:
        ports = [{"protocol": "TCP", "port": port} for port in UNUSUAL_PORTS]
        egress.append({"to": [{"ipBlock": {"cidr": network}}], "ports": ports})
    spec = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [everything_here]}, {"from": [system]}],
        "egress": egress,
    }
    return _inside(wanted, "networking.k8s.io/v1", "NetworkPolicy", "trainhall-default", spec=spec)
