"""Watchers of a real cluster, as processes: one asks it, another goes on when it is killed; what is unseen changes no state."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs.models import Attempt, Cluster, Job, Worker
from tests.cluster.api_proxy import ApiProxy
from tests.cluster.control_plane import ControlPlane
from tests.cluster.scene import Scene, Stage
from tests.factories import make_attempt, make_job
from tests.portal.running import until
from tests.portal.test_watchers import START, TAKEN_OVER
from tests.portal.watchers import Watcher, watchers

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

NAME = "plane"


@pytest.fixture
def stage(plane: ControlPlane) -> Iterator[Stage]:
    with Stage(plane, f"turns-{uuid.uuid4().hex[:6]}").open() as stage:
        yield stage


class Way:
    """A proxy of its own for each watcher, so that it is seen who asks."""

    def __init__(self, plane: ControlPlane, folder: Path, name: str) -> None:
        self.proxy = ApiProxy(plane.settings.port, plane.pki)
        self.clusters = folder / f"{name}.yaml"
        self.clusters.write_text(f"- name: {NAME}\n  kubeconfig: {self.proxy.kubeconfig(folder)}\n")
        self.watcher = Watcher(folder, name, clusters=str(self.clusters))


def running(scene: Scene, owner: Any, namespace: Any) -> Job:
    """What the database knows of it: released, and seen to run."""
    Cluster.objects.get_or_create(name=NAME, kind="kubernetes")
    now = timezone.now()
    job = make_job(owner, namespace, status="running", attempt_number=1, started_at=now)
    Job.objects.filter(pk=job.pk).update(cluster=NAME)
    attempt = make_attempt(job, uid=scene.uid, released_at=now, started_at=now)
    where = {"cluster": NAME, "kubernetes_namespace": scene.namespace, "object_name": scene.name}
    Attempt.objects.filter(pk=attempt.pk).update(**where)
    return job


def test_another_goes_on_when_one_is_killed_and_asks_nothing_before(
    stage: Stage, plane: ControlPlane, tmp_path: Path, alice: Any, vision: Any
) -> None:
    scene = Scene(stage).started().run()
    job = running(scene, alice, vision)
    first = Way(plane, tmp_path, "first")
    with watchers(first.watcher) as all_of_them:
        until(
            lambda: Worker.objects.filter(attempt__job=job, phase="Running").exists(), seconds=START, what="it is seen"
        )
        second = Way(plane, tmp_path, "second")
        all_of_them.append(second.watcher)
        until(lambda: second.watcher.says("is watched elsewhere"), seconds=START, what="the second stands by")
        time.sleep(5)
        assert not second.proxy.asked, "who stands by asks the cluster nothing"
        first.watcher.kill()
        scene.end(0, 3)
        until(lambda: second.watcher.acts, seconds=TAKEN_OVER, what="the second takes over")
        until(lambda: Job.objects.get(pk=job.pk).status == "failed", seconds=30, what="the end is in the database")
    told = Job.objects.get(pk=job.pk)
    assert (told.reason_code, told.exit_code) == ("NonZeroExit", 3)


def test_a_cluster_that_cannot_be_seen_changes_no_state_and_its_age_is_told(
    stage: Stage, plane: ControlPlane, tmp_path: Path, alice: Any, vision: Any
) -> None:
    scene = Scene(stage).started().run()
    job = running(scene, alice, vision)
    way = Way(plane, tmp_path, "only")

    def age() -> float:
        seen = Cluster.objects.get(name=NAME).seen_at
        return (timezone.now() - seen).total_seconds() if seen else float("inf")

    with watchers(way.watcher):
        until(lambda: age() < 12, seconds=START, what="it is seen")
        way.proxy.be("silent")
        scene.end(0, 0)
        time.sleep(75)
        assert age() > 60, "the last word is as old as it is"
        assert Job.objects.get(pk=job.pk).status == "running"
        assert Cluster.objects.get(name=NAME).error
        way.proxy.be("pass")
        until(lambda: Job.objects.get(pk=job.pk).status == "succeeded", seconds=60, what="the end is in the database")
        until(lambda: age() < 12, seconds=30, what="it is seen again")
