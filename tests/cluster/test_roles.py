"""A job of several roles on real pods: names, ports and TF_CONFIG, and the chief's end, which is that of all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from deploy.devcluster import images, node, volumes
from deploy.devcluster.settings import read
from jobs.cluster.manifests import render as render_attempt
from jobs.cluster.observed import Observed, observe_attempt
from jobs.cluster.port import ObjectRef
from jobs.cluster.tenancy import Tenancy
from jobs.exceptions import ClusterUnavailable
from jobs.states import JobStatus, Reason
from tests.cluster.connected import ALICE, STORE, Hall, hall, person
from tests.jobs.yard import rendering

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("containers")]
__all__ = ["hall"]
PATIENCE = 120.0

# the chief asks every other task for its name, as TensorFlow would connect to them; the others answer for ever
PROGRAM = """
import json, os, socket, sys, time
config = json.loads(os.environ["TF_CONFIG"])
role, index = config["task"]["type"], config["task"]["index"]
if role != "chief":
    server = socket.create_server(("", 2222))
    while True:
        one, _address = server.accept()
        one.sendall(f"{role} {index}".encode())
        one.close()
for name in ("ps", "worker"):
    for address in config["cluster"][name]:
        host, port = address.split(":")
        while True:
            try:
                print(socket.create_connection((host, int(port)), 5).recv(100).decode(), flush=True)
                break
            except OSError:
                time.sleep(0.5)
sys.exit(int(os.environ.get("ENDS_WITH", "0")))
"""


@pytest.fixture(scope="module")
def vision(hall: Hall) -> Tenancy:
    settings = read()
    if (settings.folder / "pki" / "done").exists():
        images.load(
            settings, node.ctr(settings), node._snapshotter(settings)
        )  # the helpers of the checkout as it is now
    return hall.namespace(runs_class=volumes.CLASS)


def start(hall: Hall, vision: Tenancy, job_id: str, **env: str) -> ObjectRef:
    job = rendering(
        job_id=job_id,
        kubernetes_namespace=vision.name,
        identity=(ALICE, 20000, (STORE,)),
        launcher="tensorflow",
        workers=2,
        parameter_servers=1,
        cpu_millis=100,
        memory_bytes=128 * 2**20,
        stop_grace=5,
        env=env,
        argv=["python3", "-c", PROGRAM],
        helper_image=images.helper().name,
    )
    objects = render_attempt(replace(job, spec=replace(job.spec, image="localhost/python:1")))
    uid = hall.cluster.create(objects, person=person("alice"))
    ref = ObjectRef(vision.name, objects.leader["metadata"]["name"], uid)
    hall.cluster.release(ref)
    return ref


def look(hall: Hall, ref: ObjectRef) -> Observed:
    seen = hall.cluster.observe()
    owned = [job for job in seen.jobs if job["metadata"]["uid"] == ref.uid or _is_owned(job, ref.uid)]
    uids = {job["metadata"]["uid"] for job in owned}
    pods = [pod for pod in seen.pods if any(_is_owned(pod, uid) for uid in uids)]
    leader = next((job for job in owned if job["metadata"]["uid"] == ref.uid), None)
    others = [job for job in owned if job is not leader]
    return observe_attempt(leader, pods, others=others, role="chief", deleted=leader is None)


def _is_owned(item: Any, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences") or ())


def until(ask: Callable[[], Any], hall: Hall, ref: ObjectRef) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        # other tests kill this API server now and then
        with suppress(ClusterUnavailable):
            if answer := ask():
                return answer
        time.sleep(0.5)
    pytest.fail(f"waited in vain: {look(hall, ref)}")


def everything(hall: Hall, ref: ObjectRef) -> list[str]:
    kinds = "jobs,pods,services,secrets"
    found = hall.get(kinds, "-n", ref.namespace, "-l", f"trainhall.io/job={ref.name.split('-')[1]}")["items"]
    return [f"{one['kind']} {one['metadata']['name']}" for one in found]


def test_the_chief_finds_all_and_its_end_is_theirs(hall: Hall, vision: Tenancy) -> None:
    ref = start(hall, vision, "servers000")
    until(lambda: look(hall, ref).decided, hall, ref)
    said = hall.kubectl("-n", vision.name, "logs", "-c", "main", f"job/{ref.name}")
    assert said.text.splitlines() == ["ps 0", "worker 0", "worker 1"]
    seen = look(hall, ref)
    assert (seen.status, seen.ended, seen.pods_gone) == (JobStatus.SUCCEEDED, False, False)
    assert [worker.name for worker in seen.workers] == ["chief-0", "ps-0", "worker-0", "worker-1"]

    hall.cluster.suspend(ref)
    until(lambda: look(hall, ref).ended, hall, ref)
    assert look(hall, ref).status == JobStatus.SUCCEEDED
    assert [job["spec"]["suspend"] for job in hall.get("jobs", "-n", vision.name)["items"]].count(True) == 2

    hall.cluster.delete(ref, person=None)
    until(lambda: everything(hall, ref) == [], hall, ref)


def test_a_failure_of_the_chief_leaves_the_others_for_us_to_end(hall: Hall, vision: Tenancy) -> None:
    ref = start(hall, vision, "servers001", ENDS_WITH="7")
    until(lambda: look(hall, ref).decided, hall, ref)
    seen = look(hall, ref)
    assert (seen.status, seen.reason, seen.exit_code) == (None, Reason.NON_ZERO_EXIT, 7)
    assert seen.text.startswith("chief-0 ended with exit code 7")

    hall.cluster.suspend(ref)
    until(lambda: look(hall, ref).ended, hall, ref)
    seen = look(hall, ref)
    assert (seen.status, seen.exit_code) == (JobStatus.FAILED, 7)
    hall.cluster.delete(ref, person=None)
    until(lambda: everything(hall, ref) == [], hall, ref)


def test_every_task_has_the_same_cluster_and_a_place_of_its_own(hall: Hall, vision: Tenancy) -> None:
    ref = start(hall, vision, "servers002")
    until(lambda: look(hall, ref).decided, hall, ref)
    told = {}
    for pod in hall.get("pods", "-n", vision.name, "-l", "trainhall.io/job=servers002,trainhall.io/role!=chief")[
        "items"
    ]:
        script = "import os; print(os.environ['TF_CONFIG'])"
        said = hall.kubectl(
            "-n", vision.name, "exec", pod["metadata"]["name"], "-c", "main", "--", "python3", "-c", script
        )
        config = json.loads(said.text)
        told[config["task"]["type"], config["task"]["index"]] = config["cluster"]
    assert set(told) == {("ps", 0), ("worker", 0), ("worker", 1)}
    name = "j-servers002-1"
    for cluster in told.values():
        assert cluster == {
            "chief": [f"{name}-chief-0.{name}:2222"],
            "ps": [f"{name}-ps-0.{name}:2222"],
            "worker": [f"{name}-worker-{index}.{name}:2222" for index in (0, 1)],
        }
    hall.cluster.delete(ref, person=None)
    until(lambda: everything(hall, ref) == [], hall, ref)
