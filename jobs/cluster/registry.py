"""Which cluster a name means."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from django.conf import settings

from jobs.cluster.local.cluster import LocalCluster
from jobs.cluster.port import Cluster
from jobs.exceptions import ClusterUnavailable

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


def connect(name: str) -> Cluster:
    """The cluster of that name. Raise ClusterUnavailable if this portal has no way to it."""
    if name == LOCAL and settings.TRAINHALL_CLUSTERS == LOCAL:
        return local_cluster(settings.TRAINHALL_DATA_DIR, gpus=settings.TRAINHALL_LOCAL_GPUS)
    raise ClusterUnavailable(f"This portal is not connected to a cluster named {name!r} (TRAINHALL_CLUSTERS).")
