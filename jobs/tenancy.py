"""Namespaces on clusters: what each shall be by our own rows, brought there before its first job and kept so (KUBERNETES 3.2)."""

from __future__ import annotations

import hashlib
import ipaddress
import logging
from collections import defaultdict
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.utils import timezone

from accounts.models import GroupMapping, Membership, Namespace, User
from accounts.roles import RANK, Role
from jobs.cluster import tenancy
from jobs.cluster.kubernetes.setting import KubernetesSetting
from jobs.cluster.port import Cluster as Port
from jobs.cluster.port import Manifest, Person
from jobs.cluster.registry import connect, internal_url, setting_of
from jobs.cluster.tenancy import Tenancy
from jobs.exceptions import ClusterError
from jobs.models import Cluster, ClusterNamespace

FIRST_UID = 100_000_000  # of namespaces whose people have no number of the directory's: far from any that one gives
logger = logging.getLogger(__name__)


def objects_of(namespace: Namespace, setting: KubernetesSetting | None) -> list[Manifest]:
    """All that belongs into the namespace on that cluster."""
    rows = Membership.objects.filter(namespace=namespace, user__is_active=True).select_related("user")
    people = defaultdict(set)
    uids: dict[int, None] = {}
    gids: dict[int, None] = {}
    for row in rows.order_by("pk"):
        people[Role(row.role)].add(row.user)
        may_run = RANK[Role(row.role)] >= RANK[Role.MEMBER]
        if may_run and row.user.uid_number is not None and row.user.gid_number is not None:
            uids[row.user.uid_number] = None
            gids |= dict.fromkeys([row.user.gid_number, *row.user.supplementary_gids])
    members = people[Role.MEMBER] | people[Role.LEAD]
    named = setting.users.name if setting is not None else (lambda person: person.username)
    grouped = setting.users.group_prefix if setting is not None else ""
    mappings = (
        GroupMapping.objects.filter(namespace=namespace).exclude(group__contains="*").exclude(group__contains="=")
    )
    groups = [(f"{grouped}{mapping.group}", Role(mapping.role)) for mapping in mappings]
    number = FIRST_UID + namespace.pk
    address, port = _portal(internal_url(setting.name if setting is not None else ""))
    return tenancy.render(
        Tenancy(
            name=namespace.kubernetes_name,
            instance=settings.TRAINHALL_INSTANCE,
            kind=namespace.kind,
            subject=namespace.owner.subject if namespace.owner else f"project:{namespace.slug}",
            uids=tuple(uids) or (number,),
            gids=tuple(gids) or (number,),
            viewers=tuple(sorted({named(person_of(one)) for role in people for one in people[role]})),
            members=tuple(sorted({named(person_of(one)) for one in members})),
            viewer_groups=tuple(sorted({name for name, _role in groups})),
            member_groups=tuple(sorted({name for name, role in groups if RANK[role] >= RANK[Role.MEMBER]})),
            gpu_limit=namespace.gpu_limit,
            cpu_limit_millis=namespace.cpu_limit_millis,
            memory_limit_bytes=namespace.memory_limit_bytes,
            portal_port=port,
            portal_address=address,
            runs_class=setting.runs_class if setting is not None else "",
            storage=setting.storage if setting is not None else (),
        )
    )


def person_of(user: User) -> Person:
    return Person(username=user.username, groups=tuple(user.directory_groups), source=user.source)


def ensure(port: Port, cluster: Cluster, namespace: Namespace) -> None:
    """Before a launch: nothing to do where what we want was applied already."""
    objects = objects_of(namespace, setting_of(cluster.name))
    digest = _digest(objects)
    row, _is_new = ClusterNamespace.objects.get_or_create(cluster=cluster, namespace=namespace)
    if row.digest != digest:
        _apply(port, row, objects, digest)


def keep() -> int:
    """One pass over every namespace that was ever brought to a cluster; how many were not as they should be."""
    wrong = 0
    rows = ClusterNamespace.objects.filter(cluster__kind="kubernetes").select_related("cluster", "namespace__owner")
    for row in rows.order_by("pk"):
        objects = objects_of(row.namespace, setting_of(row.cluster_id))
        try:
            wrong += bool(_apply(connect(row.cluster_id), row, objects, _digest(objects)))
        except ClusterError as error:
            ClusterNamespace.objects.filter(pk=row.pk).update(error=str(error), looked_at=timezone.now())
            logger.warning("%s on %s is not kept: %s", row.namespace, row.cluster_id, error)
    return wrong


def _apply(port: Port, row: ClusterNamespace, objects: list[Manifest], digest: str) -> list[str]:
    drift = list(port.ensure_namespace(objects))
    row.digest, row.error, row.looked_at = digest, "", timezone.now()
    if drift:
        row.drift, row.drifted_at = drift, timezone.now()
    row.save()
    return drift


def _digest(objects: list[Manifest]) -> str:
    return hashlib.sha256(orjson.dumps(objects, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _portal(url: str) -> tuple[str, int]:
    """The address, where it is one and not a name, and the port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        host = ""
    return host, parts.port or (443 if parts.scheme == "https" else 80)
