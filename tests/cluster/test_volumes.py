"""Claims that an admin made, in real containers: who may read and write there is said by uid and mode on the disk (A8).

The volume is of type `local`. NFS itself is not mounted here, which needs a client in the kernel: its objects are shown to the
real API server alone.
"""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Namespace, User
from deploy.devcluster import images, node
from deploy.devcluster.settings import read
from deploy.devcluster.volumes import CLASS
from jobs import dispatch, shared_volumes, submission, tenancy
from jobs.cluster.registry import connect
from jobs.exceptions import SpecError
from jobs.models import Cluster, Job, Runtime
from jobs.reading import document_of
from jobs.states import JobStatus, Reason
from tests.cluster.connected import ALICE, BOB, Asked, Hall, hall, person, pod
from tests.cluster.control_plane import within

pytestmark = [pytest.mark.cluster, pytest.mark.django_db, pytest.mark.usefixtures("containers")]
__all__ = ["hall"]
TRIES = """
exec 2>&1
id -u; id -g; echo home is $HOME
echo of alice > "$HOME/x" && echo written
ls /home/bob
cat /data/images
touch /data/x
cp /data/images /scratch/copy && echo copied
"""


@dataclass
class Storage:
    """What an admin of the cluster does for one namespace: folders on the node's disk, and a claim of each."""

    hall: Hall
    namespace: str
    folder: Path

    def offer(self, name: str, *, mode: str = "ReadWriteMany") -> Path:
        """A folder, its volume and the claim of it."""
        place = self.folder / name
        place.mkdir(parents=True)
        place.chmod(0o755)
        for body in claimed(self.namespace, name, {"local": {"path": str(place)}}, mode=mode):
            if body["kind"] == "PersistentVolume":
                body["spec"]["nodeAffinity"] = {
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "type", "operator": "In", "values": ["real"]}]}
                        ]
                    }
                }
            made = self.hall.kubectl("create", "-f", "-", body=body)
            assert made.ok, made.text
        return place


def claimed(namespace: str, name: str, source: dict[str, Any], *, mode: str = "ReadWriteMany") -> list[dict[str, Any]]:
    """A volume that is kept for one claim, and the claim: as docs/kubernetes.md says it."""
    volume = f"{namespace}-{name}"
    size = {"storage": "1Ti"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": size,
                "accessModes": [mode],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "claimRef": {"namespace": namespace, "name": name},
                **source,
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "accessModes": [mode],
                "storageClassName": "",
                "volumeName": volume,
                "resources": {"requests": size},
            },
        },
    ]


@pytest.fixture
def project(hall: Hall, world: None, vision: Namespace, alice: Any, settings: Any) -> Namespace:
    """Vision with alice as the directory knows her, in line on the cluster."""
    of_devcluster = read()
    if (of_devcluster.folder / "pki" / "done").exists():
        # the helpers of the checkout as it is now
        images.load(of_devcluster, node.ctr(of_devcluster), node._snapshotter(of_devcluster))
    setting = replace(hall.setting, runs_class=CLASS, helper_image=images.helper().name)
    settings.KUBERNETES_CLUSTERS, settings.HAS_LOCAL_CLUSTER = (setting,), False
    User.objects.filter(pk=alice.pk).update(
        source="ldap", directory_name="alice", uid_number=ALICE, gid_number=20000, supplementary_gids=[]
    )
    alice.refresh_from_db()
    Namespace.objects.filter(pk=vision.pk).update(kubernetes_name=f"p-volumes-{uuid.uuid4().hex[:6]}")
    vision.refresh_from_db()
    Runtime.objects.filter(slug="shell").update(image="localhost/python:1")
    nodes = [{"name": "n1", "gpus": 0, "gpu_type": "", "cpu_millis": 64000, "memory_bytes": 2**38, "ready": True}]
    Cluster.objects.all().delete()
    cluster = Cluster.objects.create(name=setting.name, kind="kubernetes", nodes=nodes, seen_at=timezone.now())
    hall.made.append(vision.kubernetes_name)
    tenancy.ensure(connect(setting.name), cluster, vision)
    return vision


@pytest.fixture
def storage(hall: Hall, project: Namespace) -> Iterator[Storage]:
    folder = read().folder / "volumes" / f"{project.kubernetes_name}-static"
    found = Storage(hall, project.kubernetes_name, folder)
    yield found
    hall.kubectl("delete", "namespace", project.kubernetes_name, "--wait=false")
    names = [f"{project.kubernetes_name}-{one.name}" for one in folder.iterdir()] if folder.exists() else []
    hall.kubectl("delete", "persistentvolume", "--wait=false", "--ignore-not-found", *names)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def submit(alice: User, script: str, **fields: Any) -> Job:
    document = {"namespace": "vision", "runtime": "shell", "command": script, **fields}
    document["resources"] = {"cpus": "100m", "memory": "64Mi"}
    return submission.submit(user=alice, document=document_of(document), request=None, origin="api").job


def launch(job: Job) -> Job:
    (attempt,) = dispatch.admit_waiting()
    dispatch.launch(attempt)
    return Job.objects.get(pk=job.pk)


def said(hall: Hall, project: Namespace, job: Job) -> list[str]:
    """What its program wrote, once it is over."""
    job = launch(job)
    assert job.reason_code == Reason.SETTING_UP, job.reason
    name = job.attempts.get().object_name

    def is_over() -> bool:
        status = hall.get("job", name, "-n", project.kubernetes_name)["status"]
        return bool(status.get("succeeded") or status.get("failed"))

    within(120, is_over, what=f"{name} is over")
    told = hall.kubectl("-n", project.kubernetes_name, "logs", "-c", "main", f"job/{name}")
    assert told.ok, told.text
    return told.text.splitlines()


def test_a_home_is_written_as_its_person_and_those_of_others_stay_shut(
    hall: Hall, project: Namespace, storage: Storage, alice: Any, admin: Any
) -> None:
    homes = storage.offer("homes")
    for name, uid in (("alice", ALICE), ("bob", BOB)):
        (homes / name).mkdir(mode=0o700)
        os.chown(homes / name, uid, 20000)
    data, scratch = storage.offer("datasets"), storage.offer("scratch")
    (data / "images").write_text("many images\n")
    for folder in (data, scratch):
        folder.chmod(0o777)  # so that nothing but the mount keeps anybody from writing
    for name, offer in (
        ("homes", {"path": "/home", "is_home": True}),
        ("datasets", {"path": "/data", "read_only": True}),
        ("scratch", {"path": "/scratch"}),
    ):
        shared_volumes.put(project, name, offer, by=admin, request=None)
    with pytest.raises(SpecError, match=r"volumes\[0\].read_only: datasets is offered read-only"):
        submit(alice, "true", volumes=[{"name": "datasets", "read_only": False}])

    lines = said(hall, project, submit(alice, TRIES, volumes=[{"name": "datasets"}, {"name": "scratch"}]))
    assert lines[:4] == [str(ALICE), "20000", "home is /home/alice", "written"]
    assert "ls: can't open '/home/bob': Permission denied" in lines
    assert "many images" in lines
    assert "touch: /data/x: Read-only file system" in lines
    assert lines[-1] == "copied"

    written = homes / "alice" / "x"
    assert (written.read_text(), written.stat().st_uid, written.stat().st_gid) == ("of alice\n", ALICE, 20000)
    assert stat.S_IMODE((homes / "alice").stat().st_mode) == 0o700
    assert (homes / "alice").stat().st_uid == ALICE, "nobody changes the owner of what is there"
    assert (scratch / "copy").stat().st_uid == ALICE
    assert sorted(one.name for one in data.iterdir()) == ["images"]


def test_what_is_offered_no_more_is_held_and_what_the_cluster_does_not_have_is_told(
    hall: Hall, project: Namespace, storage: Storage, alice: Any, admin: Any
) -> None:
    shared_volumes.put(project, "datasets", {"path": "/data"}, by=admin, request=None)
    job = submit(alice, "true", volumes=[{"name": "datasets"}])
    shared_volumes.remove(project, "datasets", by=admin, request=None)
    job = launch(job)
    assert (job.status, job.reason_code, job.held_by) == (JobStatus.QUEUED, Reason.VOLUME_GONE, alice)
    assert "is offered no volume datasets any more" in job.reason
    assert hall.get("jobs", "-n", project.kubernetes_name)["items"] == []


def test_the_shape_for_nfs_is_taken_by_the_api_server(
    hall: Hall, project: Namespace, storage: Storage, alice: Any, admin: Any
) -> None:
    """Nothing is mounted: that the server, its exports and its Kerberos are as they should be is seen on the site alone."""
    nfs: dict[str, Any] = {
        "nfs": {"server": "nfs.example.org", "path": "/export/home"},
        "mountOptions": ["nfsvers=4.2", "hard"],
    }
    for body in claimed(project.kubernetes_name, "homes", nfs):
        taken = hall.kubectl("create", "--dry-run=server", "-f", "-", "-o", "json", body=body)
        assert taken.ok, taken.text
        assert "Warning" not in taken.text
    shared_volumes.put(project, "homes", {"path": "/home", "is_home": True}, by=admin, request=None)
    job = submit(alice, "true")
    (attempt,) = dispatch.admit_waiting()
    objects = dispatch.objects_of(job.attempts.get(pk=attempt))
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "homes"}}
    assert home in objects.leader["spec"]["template"]["spec"]["volumes"]
    place = project.kubernetes_name
    within(30, lambda: hall.as_user("alice", "auth", "can-i", "create", "jobs", "-n", place).ok, what="her rights")
    assert hall.cluster.create(objects, person=person("alice")), "the Job itself is taken, and is not started here"

    assert hall.get("namespace", place)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    mine = {"runAsUser": ALICE, "runAsGroup": 20000}

    def dry(volume: dict[str, Any]) -> Asked:
        body = pod("dry", volumes=[volume], security=mine)
        return hall.as_user("alice", "-n", place, "create", "--dry-run=server", "-f", "-", body=body)

    taken = dry(home)
    assert taken.ok, taken.text
    refused = dry({"name": "home", "nfs": nfs["nfs"]})
    assert not refused.ok
    assert 'violates PodSecurity "restricted' in refused.text and "restricted volume types" in refused.text
