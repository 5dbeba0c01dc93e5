"""A launch that crashed after its release and is repeated: what runs is left as it is."""

from __future__ import annotations

import pytest

from jobs.cluster.manifests import render
from jobs.cluster.port import ObjectRef
from tests.cluster.connected import ALICE, STORE, Hall, hall, person
from tests.jobs.yard import rendering

pytestmark = pytest.mark.cluster
__all__ = ["hall"]


def test_what_was_released_keeps_its_secret_and_its_service(hall: Hall) -> None:
    vision = hall.namespace()
    objects = render(
        rendering(job_id="relaunch01", kubernetes_namespace=vision.name, identity=(ALICE, 20000, (STORE,)))
    )
    uid = hall.cluster.create(objects, person=person("alice"))
    ref = ObjectRef(vision.name, objects.leader["metadata"]["name"], uid)

    def children() -> list[str]:
        found = hall.get("secrets,services", "-n", vision.name, "-l", "trainhall.io/job=relaunch01")["items"]
        return sorted(one["metadata"]["uid"] for one in found)

    first = children()
    assert len(first) == 2
    # not released yet: the Secret cannot be read, so it is made anew with what is signed now
    assert hall.cluster.create(objects, person=person("alice")) == uid
    assert len(set(children()) - set(first)) == 1

    before = children()
    hall.cluster.release(ref)
    assert hall.cluster.create(objects, person=person("alice")) == uid
    hall.cluster.release(ref)
    assert children() == before
