"""Namespaces on clusters: what each shall be by our own rows, brought there and kept so (KUBERNETES 3.2).

`ensure` before a launch, `follow_rights` a few seconds after somebody won or lost something, `keep` now and then against what
other hands changed. A namespace's row is locked while it is written, and what it shall be is read after that, so that an older
wish never comes after a newer one.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from datetime import timedelta

import orjson
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts import audit
from accounts.models import Namespace
from jobs.cluster.port import Cluster as Port
from jobs.cluster.port import Manifest
from jobs.cluster.registry import connect, home_of, kinds, setting_of
from jobs.exceptions import ClusterError, ClusterUnavailable, NotInLine
from jobs.models import Cluster, ClusterNamespace
from jobs.tenants import Rights, objects_of

CAUGHT_UP = timedelta(seconds=10)  # an API server decides by what it has read, which is a moment old
TRIED_AGAIN = timedelta(minutes=1)  # what could not be written is not tried with every look for changed rights
MOST_TOLD = 50  # sentences of one look that are kept
logger = logging.getLogger(__name__)


def ensure(port: Port, cluster: Cluster, namespace: Namespace) -> None:
    """Before a launch: nothing to do where what we want was applied already."""
    row, _is_new = ClusterNamespace.objects.get_or_create(cluster=cluster, namespace=namespace)
    if row.digest != _digest(objects_of(namespace, setting_of(cluster.name))):
        with transaction.atomic():
            locked = ClusterNamespace.objects.select_for_update(of=("self",)).get(pk=row.pk)
            _bring(port, locked, only_if_changed=True)


def is_fresh(cluster: Cluster, namespace: Namespace) -> bool:
    """Whether rights were written there a moment ago: a refusal may be of what was before."""
    since = timezone.now() - CAUGHT_UP
    return ClusterNamespace.objects.filter(cluster=cluster, namespace=namespace, applied_at__gte=since).exists()


def follow_rights() -> int:
    """Bring every namespace in line whose people, numbers or limits are not what was last written there; how many."""
    _make_rows()
    rights = Rights.now()
    tried = Q(error="") | Q(looked_at=None) | Q(looked_at__lt=timezone.now() - TRIED_AGAIN)
    changed = [
        row
        for row in _rows().filter(tried)
        if row.digest != _digest(objects_of(row.namespace, setting_of(row.cluster_id), rights))
    ]
    return _pass(changed, only_if_changed=True)


def keep() -> int:
    """Look at every namespace that was ever brought to a cluster; how many were not as they should be."""
    _make_rows()
    return _pass(_rows(), only_if_changed=False)


def _rows() -> QuerySet[ClusterNamespace]:
    rows = ClusterNamespace.objects.filter(cluster__in=_clusters())
    return rows.select_related("namespace__owner").order_by("looked_at", "pk")


def _clusters() -> list[str]:
    return [name for name, kind in kinds().items() if kind == "kubernetes"]


def _make_rows() -> None:
    """Whoever exists has a namespace where their jobs go, before the first job: it is theirs by kubectl, too."""
    clusters = Cluster.objects.filter(name__in=_clusters()).in_bulk()
    if not clusters:
        return
    there = set(ClusterNamespace.objects.filter(cluster__in=clusters).values_list("cluster_id", "namespace_id"))
    alive = Namespace.objects.filter(Q(owner=None) | Q(owner__is_active=True)).values_list("pk", "slug")
    homes = [(home_of(slug), pk) for pk, slug in alive]
    rows = [ClusterNamespace(cluster_id=home, namespace_id=pk) for home, pk in homes if home in clusters]
    missing = [row for row in rows if (row.cluster_id, row.namespace_id) not in there]
    ClusterNamespace.objects.bulk_create(missing, ignore_conflicts=True)


def _pass(rows: Iterable[ClusterNamespace], *, only_if_changed: bool) -> int:
    wrong = 0
    away: set[str] = set()
    for row in rows:
        if row.cluster_id in away:
            continue
        try:
            with transaction.atomic():
                # who else writes it at this moment does what we would
                locked = ClusterNamespace.objects.select_for_update(of=("self",), skip_locked=True).filter(pk=row.pk)
                for found in locked.select_related("namespace__owner"):
                    wrong += _bring(connect(row.cluster_id), found, only_if_changed=only_if_changed)
        except ClusterError as error:
            ClusterNamespace.objects.filter(pk=row.pk).update(error=str(error), looked_at=timezone.now())
            logger.warning("%s on %s is not kept: %s", row.namespace, row.cluster_id, error)
            if isinstance(error, ClusterUnavailable) and not isinstance(error, NotInLine):
                away.add(row.cluster_id)
    return wrong


def _bring(port: Port, row: ClusterNamespace, *, only_if_changed: bool) -> bool:
    """Whether something was written or found otherwise. The row is locked."""
    objects = objects_of(row.namespace, setting_of(row.cluster_id))
    digest = _digest(objects)
    is_changed = row.digest != digest
    if only_if_changed and not is_changed:
        return False
    found = list(port.ensure_namespace(objects))
    now = timezone.now()
    if is_changed:
        _tell(row, "namespace.apply", found)
    elif set(found) - set(row.drift if row.is_drift_there else ()):
        _tell(row, "namespace.drift", found)
        logger.warning("%s on %s was not as it shall be: %s", row.namespace, row.cluster_id, " ".join(found))
    if found:
        row.applied_at = now
    if not is_changed:
        row.is_drift_there = bool(found)
        if found:
            row.drift, row.drifted_at = found[:MOST_TOLD], now
    row.digest, row.error, row.looked_at = digest, "", now
    row.save()
    return bool(found)


def _tell(row: ClusterNamespace, action: str, found: list[str]) -> None:
    target = f"{row.cluster_id}/{row.namespace.kubernetes_name}"
    audit.record(None, action, target=target, namespace=row.namespace.slug, after={"found": found[:MOST_TOLD]})


def _digest(objects: list[Manifest]) -> str:
    return hashlib.sha256(orjson.dumps(objects, option=orjson.OPT_SORT_KEYS)).hexdigest()
