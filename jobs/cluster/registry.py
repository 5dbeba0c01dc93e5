"""Which cluster a name means."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from jobs.cluster.kubernetes.setting import KubernetesSetting
from jobs.cluster.local.cluster import LocalCluster
from jobs.cluster.port import Cluster
from jobs.exceptions import ClusterUnavailable, SpecError

LOCAL = "local"


@cache
def local_cluster(data: Path, *, gpus: int) -> LocalCluster:
    """The embedded cluster whose files lie in a data folder."""
    return LocalCluster(
        LOCAL,
        data / "cluster",
        gpus=gpus,
        python=sys.executable,
        sdk_path=str(settings.BASE_DIR / "sdk"),
        cpu_count=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )


@cache
def kubernetes_cluster(setting: KubernetesSetting) -> Cluster:
    # not at the top: who runs jobs on this machine alone need not pay 60 MiB for a client in every process
    from jobs.cluster.kubernetes.cluster import KubernetesCluster  # noqa: PLC0415

    return KubernetesCluster(setting)


def setting_of(name: str) -> KubernetesSetting | None:
    """What an admin said of a cluster; None for the local one."""
    return next((setting for setting in settings.KUBERNETES_CLUSTERS if setting.name == name), None)


def connect(name: str) -> Cluster:
    """The cluster of that name. Raise ClusterUnavailable if this portal has no way to it."""
    if name == LOCAL and settings.HAS_LOCAL_CLUSTER:
        return local_cluster(settings.TRAINHALL_DATA_DIR, gpus=settings.TRAINHALL_LOCAL_GPUS)
    if (setting := setting_of(name)) is not None:
        return kubernetes_cluster(setting)
    raise ClusterUnavailable(f"This portal is not connected to a cluster named {name!r} (TRAINHALL_CLUSTERS).")


def kinds() -> dict[str, str]:
    """The kind of every cluster of this portal, by its name."""
    local = {LOCAL: LOCAL} if settings.HAS_LOCAL_CLUSTER else {}
    return local | {setting.name: "kubernetes" for setting in settings.KUBERNETES_CLUSTERS}


def home_of(namespace: str) -> str:
    """The cluster that a namespace's jobs go to where they do not say: one that names it, else the first. "" without any."""
    named = (setting.name for setting in settings.KUBERNETES_CLUSTERS if namespace in setting.namespaces)
    return next(named, next(iter(kinds()), ""))


def chosen(wanted: str, namespace: str) -> str:
    """The cluster of a job that says `wanted`, or nothing. Raise SpecError for one that there is not."""
    if wanted and wanted not in kinds():
        text = _("there is no cluster %(name)s; there are %(names)s") % {
            "name": repr(wanted),
            "names": ", ".join(kinds()) or _("none"),
        }
        raise SpecError(f"cluster: {text}", fields={"cluster": [text]})
    return wanted or home_of(namespace)


def internal_url(cluster: str) -> str:
    """The portal, as pods of that cluster reach it."""
    setting = setting_of(cluster)
    return (setting.internal_url if setting else "") or str(settings.TRAINHALL_INTERNAL_URL)


def topology(cluster: str) -> tuple[str, ...]:
    """Labels of its nodes by which pods of one job are kept close, the closest first."""
    setting = setting_of(cluster)
    return setting.topology if setting else ()


def tolerations(cluster: str) -> tuple[dict[str, Any], ...]:
    """Of the pods that the portal starts there."""
    setting = setting_of(cluster)
    return setting.tolerations if setting else ()


def helper_image(cluster: str) -> str:
    """What `setup` and `agent` of a pod run in there."""
    setting = setting_of(cluster)
    return (setting.helper_image if setting else "") or str(settings.TRAINHALL_HELPER_IMAGE)
