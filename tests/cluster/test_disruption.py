"""C15, C25: pods that somebody else takes away are told, save, and their job goes on from there by itself."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.devcluster.api import Api
from deploy.devcluster.fakes import FAKE
from deploy.devcluster.programs import find
from tests.cluster.story import ClusterPortal, portal_on_cluster
from tests.portal.running import until

pytestmark = pytest.mark.cluster

# every 50 steps, and when it is told to stop if SAVES says so; then it takes its time, as one does who writes gigabytes
TRAIN = """
import json, os, pathlib, signal, sys, time, trainhall
folder, rank = pathlib.Path(os.environ["TRAINHALL_CHECKPOINT_DIR"]), os.environ["RANK"]
told = []
def save(step):
    new = folder / f"step-{{step}}.json.tmp"
    new.write_text(json.dumps({{"step": step}}))
    os.replace(new, folder / f"step-{{step}}.json")
signal.signal(signal.SIGTERM, lambda *_: told.append(trainhall.notice()))
path = os.environ["TRAINHALL_RESUME_FROM"]
first = json.loads(pathlib.Path(path).read_text())["step"] + 1 if path else 1
print("first step", first, flush=True)
for step in range(first, {steps} + 1):
    trainhall.log(step=step, loss=1 / step)
    if rank == "0" and (step % 50 == 0 or (told and {saves})):
        save(step)
    if told:
        print("seconds left", round(told[0] - time.time(), 1), flush=True)
        time.sleep(3)
        sys.exit(75)
    time.sleep(0.1)
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def portal(containers: None) -> Iterator[ClusterPortal]:
    with portal_on_cluster() as portal:
        yield portal


def evict(portal: ClusterPortal, pod: Any) -> None:
    """As `kubectl drain` asks for it."""
    metadata = pod["metadata"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": metadata["name"]}}
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    Api(portal.cluster).send("POST", path, body)


def events(portal: ClusterPortal, job: str) -> list[Any]:
    return list(portal.rest(f"jobs/{job}/events/")["results"])


def reached(portal: ClusterPortal, job: str, step: int) -> bool:
    series = portal.rest(f"jobs/{job}/series/")["series"]
    return any(one["key"] == "loss" and one["last_step"] >= step for one in series)


@pytest.mark.parametrize(("workers", "saves"), [(1, False), (2, True)])
def test_an_evicted_job_goes_on_from_what_it_saved(portal: ClusterPortal, workers: int, saves: bool) -> None:
    job = portal.run(TRAIN.format(steps=150, saves=saves), resources={"workers": workers}, stop_grace="20s")
    until(lambda: reached(portal, job, 55), seconds=90, what=f"{job} has reached step 55")
    pods = sorted(portal.pods_of(job), key=lambda pod: str(pod["metadata"]["name"]))
    evict(portal, pods[-1])

    name = f"worker-{workers - 1}"
    told = until(
        lambda: [one for one in events(portal, job) if "has until" in one["reason"]["text"]],
        seconds=10,
        what="its owner is told",
    )
    assert [(one["reason"]["code"], one["attempt"]) for one in told] == [("Disruption", 1)]
    assert told[0]["reason"]["text"].startswith(f"{name} had to leave: its machine is being emptied for maintenance.")

    found = portal.over(job, "succeeded", seconds=120)
    first, second = found["attempts"]
    assert first["reason"]["code"] == "Disruption" and first["cause"]["owner"] == "platform", first
    assert found["retries"]["used"] == 0
    # the gang ended as one: each rank was told, in time, with the grace that the job has for every stop
    for rank in range(workers):
        said = portal.lines(job, f"worker-{rank}")
        left = [float(line.removeprefix("seconds left ")) for line in said if line.startswith("seconds left ")]
        assert len(left) == 1 and 15 < left[0] <= 20, said

    loss = first["interruption"]
    assert loss["outcome"] == ("saved" if saves else "earlier"), loss
    assert loss["checkpoint"] == f"step-{loss['step']}.json" and loss["step"] >= 50
    assert loss["reached"] >= 55 and loss["lost"] == max(0, loss["reached"] - loss["step"])
    assert saves or (loss["step"] == 50 and loss["lost"] >= 5)
    said = portal.lines(job, "worker-0")
    assert [line for line in said if line.startswith("first")] == ["first step 1", f"first step {loss['step'] + 1}"]
    assert second["interruption"] is None and second["exit_code"] == 0

    # in words, where its owner looks
    told = [one for one in events(portal, job) if one["reason"]["text"] == loss["text"]]
    assert [one["attempt"] for one in told] == [1]
    assert len([one for one in events(portal, job) if "has until" in one["reason"]["text"]]) == 1, "one message"
    alice = portal.visitor("alice")
    for page in ("", "workers/"):
        assert loss["text"] in alice.ask("GET", f"/jobs/{job}/{page}")[1]
    until(lambda: not portal.objects_of(job), seconds=30, what="nothing of the job is on the cluster")


def test_a_drained_machine_gets_its_job_back_when_it_is_open_again(portal: ClusterPortal) -> None:
    job = portal.run(TRAIN.format(steps=60, saves=True), stop_grace="20s")
    until(lambda: reached(portal, job, 10), seconds=90, what=f"{job} has reached step 10")
    (pod,) = portal.pods_of(job)
    node = pod["spec"]["nodeName"]
    kubectl = [str(find(portal.cluster, "kubectl")), "--kubeconfig", str(portal.cluster.kubeconfig)]
    words = ["--ignore-daemonsets", "--delete-emptydir-data", "--timeout=40s", f"--pod-selector=trainhall.io/job={job}"]
    try:
        done = subprocess.run(
            [*kubectl, "drain", node, *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        portal.wait_for(job, "queued", seconds=20)
        time.sleep(6)  # a pass of the dispatcher, and a look of the watcher at the nodes
        waits = portal.rest(f"jobs/{job}/")
        assert (waits["status"], waits["attempt"]) == ("queued", 1), waits["reason"]
        assert waits["interruption"]["outcome"] == "saved" and waits["interruption"]["lost"] == 0
    finally:
        subprocess.run([*kubectl, "uncordon", node], capture_output=True, timeout=60, check=True)
    found = portal.over(job, "succeeded", seconds=60)
    assert found["attempt"] == 2
    first = f"first step {waits['interruption']['step'] + 1}"
    assert [line for line in portal.lines(job) if line.startswith("first")][1:] == [first]


def test_a_lost_machine_is_told_from_one_that_is_drained(portal: ClusterPortal) -> None:
    api = Api(portal.cluster)
    name = f"lost-{int(time.time())}"
    size = {"cpu": "8", "memory": "32Gi", "pods": "20", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "16"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": FAKE, "labels": {"kubernetes.io/hostname": name, "type": "lost"}},
        # only who needs so many GPUs goes there
        "spec": {"taints": [{"key": "lost", "value": "soon", "effect": "PreferNoSchedule"}]},
        "status": {"allocatable": size, "capacity": size},
    }
    api.send("POST", "/api/v1/nodes", node)
    try:
        until(
            lambda: any(
                one["name"] == name and one["ready"] for one in portal.rest("clusters/")["results"][0]["nodes"]
            ),
            seconds=60,
            what=f"{name} is there",
        )
        job = portal.run("print(1)", resources={"gpus": 16})
        portal.wait_for(job, "running", seconds=60)
    finally:
        api.send("DELETE", f"/api/v1/nodes/{name}")
    # the cluster's garbage collector gives a machine 40 s to come back, and looks every 20 s
    portal.wait_for(job, "queued", seconds=120)
    found = portal.rest(f"jobs/{job}/")
    (first,) = found["attempts"]
    assert first["reason"]["code"] == "NodeLost" and "lost its machine" in first["reason"]["text"], first
    assert first["cause"]["owner"] == "hardware"
    loss = until(lambda: portal.rest(f"jobs/{job}/")["interruption"], seconds=15, what="its loss is told")
    assert (loss["outcome"], loss["lost"]) == ("nothing", None)
    assert not [one for one in events(portal, job) if "has until" in one["reason"]["text"]], "nobody was told"
    portal.rest(f"jobs/{job}/cancel/", {})
    portal.over(job, "cancelled")
