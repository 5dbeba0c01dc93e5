"""Jobs whose pods a real API server refuses, or a real scheduler places nowhere: told within seconds (RELIABILITY R32)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.cluster.events import by_object, heard
from jobs.cluster.kubernetes.client import Api
from jobs.cluster.kubernetes.mirror import ClusterMirror
from jobs.cluster.kubernetes.setting import Users
from jobs.cluster.observed import Observed, observe_attempt
from jobs.states import JobStatus, Reason
from tests.cluster.api_proxy import ApiProxy
from tests.cluster.control_plane import JSON_MERGE, ControlPlane, within

pytestmark = pytest.mark.cluster

TOLD = 15  # seconds
EVERYWHERE = {"tolerations": [{"operator": "Exists"}]}


@pytest.fixture
def mirror(plane: ControlPlane, tmp_path: Path) -> Iterator[ClusterMirror]:
    proxy = ApiProxy(plane.settings.port, plane.pki)
    mirror = ClusterMirror(Api.of(str(proxy.kubeconfig(tmp_path)), "proxied", Users()))
    within(20, lambda: all(reflector.is_complete for reflector in mirror._all), what="the first lists")
    yield mirror
    mirror.stop()
    proxy.close()


@pytest.fixture
def here(plane: ControlPlane) -> str:
    return plane.namespace(f"refused-{uuid.uuid4().hex[:6]}")


def submit(plane: ControlPlane, namespace: str, *, gpus: int = 0, memory: str = "64Mi", **pod: Any) -> str:
    """A Job that the real controller works on; its UID."""
    size = {"cpu": "100m", "memory": memory} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    container = {"name": "main", "image": "x:1", "resources": {"requests": size, "limits": size}}
    spec = {"restartPolicy": "Never", "containers": [container], **EVERYWHERE, **pod}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"job-{uuid.uuid4().hex[:6]}"},
        "spec": {"backoffLimit": 0, "template": {"spec": spec}},
    }
    return str(plane.send("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", body)["metadata"]["uid"])


def told(mirror: ClusterMirror, uid: str, *, stopped: bool = False) -> Observed:
    seen = mirror.observation([uid])
    job = next((job for job in seen.jobs if job["metadata"]["uid"] == uid), None)
    return observe_attempt(job, seen.pods, events=seen.events, stopped=stopped)


def expect(mirror: ClusterMirror, uid: str, reason: Reason, words: str) -> None:
    within(TOLD, lambda: told(mirror, uid).reason == reason, what=f"{reason}: {told(mirror, uid)}")
    seen = told(mirror, uid)
    assert seen.status == JobStatus.STARTING
    assert words in seen.text
    assert "Technical reason" not in seen.text


def test_a_quota_that_is_used_up_is_told_with_its_numbers(
    plane: ControlPlane, mirror: ClusterMirror, here: str
) -> None:
    quota = {"metadata": {"name": "trainhall"}, "spec": {"hard": {"requests.nvidia.com/gpu": "4"}}}
    plane.send(
        "POST", f"/api/v1/namespaces/{here}/resourcequotas", {"apiVersion": "v1", "kind": "ResourceQuota", **quota}
    )
    path = f"/api/v1/namespaces/{here}/resourcequotas/trainhall"
    within(10, lambda: plane.send("GET", path).get("status", {}).get("hard"), what="the quota in force")
    uid = submit(plane, here, gpus=8)
    expect(mirror, uid, Reason.QUOTA_EXCEEDED, "GPUs 0 of 4, one more worker needs 8.")
    within(20, lambda: sum(one.count for one in kept(mirror, uid)) >= 3, what="the controller tries again")
    [row] = kept(mirror, uid)
    assert "pods is forbidden: exceeded quota" in row.message


def kept(mirror: ClusterMirror, uid: str) -> list[Any]:
    seen = mirror.observation()
    return heard(by_object(seen.events).get(uid, ()), [])


def test_a_job_that_never_got_a_pod_ends_when_it_is_stopped(
    plane: ControlPlane, mirror: ClusterMirror, here: str
) -> None:
    uid = submit(plane, here, priorityClassName="trainhall-none")
    expect(mirror, uid, Reason.CLUSTER_NOT_SET_UP, "Priority trainhall-none does not exist on this cluster.")
    name = next(job for job in mirror.observation().jobs if job["metadata"]["uid"] == uid)["metadata"]["name"]
    plane.send("PATCH", f"/apis/batch/v1/namespaces/{here}/jobs/{name}", {"spec": {"suspend": True}}, kind=JSON_MERGE)
    within(TOLD, lambda: told(mirror, uid, stopped=True).ended, what="its end")
    assert told(mirror, uid, stopped=True).reason == Reason.STOPPED


def test_rules_of_the_cluster_are_told(plane: ControlPlane, mirror: ClusterMirror, here: str) -> None:
    limits = {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "trainhall"}, "spec": limits}
    plane.send("POST", f"/api/v1/namespaces/{here}/limitranges", body)
    expect(
        mirror, submit(plane, here, memory="2Gi"), Reason.NOT_ALLOWED, "may use at most 1Gi memory; 2Gi were requested"
    )
    strict = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    plane.send("PATCH", f"/api/v1/namespaces/{here}", strict, kind=JSON_MERGE)
    expect(
        mirror,
        submit(plane, here),
        Reason.NOT_ALLOWED,
        "The pod settings are not allowed here (Pod Security restricted",
    )


def test_the_scheduler_is_told_by_number(plane: ControlPlane, mirror: ClusterMirror, here: str) -> None:
    words = "Of 3 machines none can take it: 3 machines do not have enough free GPUs."
    expect(mirror, submit(plane, here, gpus=64), Reason.WAITING_FOR_CAPACITY, words)
    missing = {"volumes": [{"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}}]}
    expect(mirror, submit(plane, here, **missing), Reason.VOLUME_MISSING, "The volume runs does not exist")
    other = {"nodeSelector": {"nvidia.com/gpu.product": "none"}}
    expect(mirror, submit(plane, here, **other), Reason.WAITING_FOR_CAPACITY, "3 machines are not of the kind")
