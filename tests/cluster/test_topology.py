"""The real scheduler keeps a gang in one rack where it can, on nodes without a kubelet that have racks of two."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.cluster.kubernetes.setting import TOPOLOGY
from jobs.cluster.manifests import render
from jobs.cluster.port import ObjectRef
from jobs.cluster.room import free_capacity
from jobs.placement import told
from tests.cluster.connected import ALICE, STORE, Hall, hall, person
from tests.cluster.control_plane import within
from tests.cluster.lacking import lacking
from tests.jobs.yard import rendering

pytestmark = pytest.mark.cluster
__all__ = ["hall"]

FAKE = ({"key": "kwok.x-k8s.io/node", "operator": "Exists"},)
KIND = "Tesla-V100-SXM2-32GB"


@pytest.fixture
def racks(hall: Hall) -> dict[str, dict[str, str]]:
    """What the labels of the nodes say, of those that take our pods."""
    capacity = free_capacity(hall.get("nodes")["items"], [], tolerations=FAKE)
    found = {node.name: node.domains for node in capacity if node.ready and node.gpu_type == KIND}
    if len({place[TOPOLOGY[0]] for place in found.values()}) < 2 or len(found) < 4:
        lacking("This cluster has no two racks of two nodes with GPUs.")
    return found


def start(hall: Hall, namespace: str, job_id: str, *, workers: int, **changes: Any) -> None:
    job = rendering(
        job_id=job_id,
        kubernetes_namespace=namespace,
        identity=(ALICE, 20000, (STORE,)),
        workers=workers,
        gpus=8,
        gpu_type=KIND,
        tolerations=FAKE,
        **changes,
    )
    objects = render(job)
    uid = hall.cluster.create(objects, person=person("alice"))
    hall.cluster.release(ObjectRef(namespace, objects.leader["metadata"]["name"], uid))


def nodes_of(hall: Hall, namespace: str, job_id: str) -> list[str]:
    found = hall.get("pods", "-n", namespace, "-l", f"trainhall.io/job={job_id}")["items"]
    return [node for pod in found if (node := pod["spec"].get("nodeName"))]


def test_two_pods_land_in_the_rack_that_has_room_for_both(hall: Hall, racks: dict[str, dict[str, str]]) -> None:
    vision = hall.namespace(runs_class="devcluster")
    start(hall, vision.name, "alone00001", workers=1)
    within(30, lambda: nodes_of(hall, vision.name, "alone00001"), what="the first pod has a node")
    (taken,) = nodes_of(hall, vision.name, "alone00001")
    half_full = racks[taken][TOPOLOGY[0]]
    other = next(place[TOPOLOGY[0]] for place in racks.values() if place[TOPOLOGY[0]] != half_full)

    start(hall, vision.name, "together01", workers=2, topology=TOPOLOGY, close_to=(TOPOLOGY[0], other))
    within(30, lambda: len(nodes_of(hall, vision.name, "together01")) == 2, what="both pods have a node")
    both = nodes_of(hall, vision.name, "together01")
    assert [racks[node][TOPOLOGY[0]] for node in both] == [other, other]
    assert told(both, racks, TOPOLOGY) == f"Both pods are in one rack, {other}."
