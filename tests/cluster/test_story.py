"""The first story of the portal on a real cluster with real containers: what people see is what Kubernetes has."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.devcluster import __main__ as program
from tests.cluster.story import ClusterPortal, portal_on_cluster
from tests.portal.running import until

pytestmark = pytest.mark.cluster

TRAIN = """
import os, socket, trainhall
print("I am", os.getuid(), os.getgid(), sorted(os.getgroups()), "of rank", os.environ["RANK"])
for step in range(200):
    trainhall.log(step=step, loss=1 / (step + 1))
    print("line", step, flush=True)
open(os.environ["TRAINHALL_OUTPUT_DIR"] + f"/model-{os.environ['RANK']}.txt", "w").write("weights")
print("rank 0 is at", socket.gethostbyname(os.environ["MASTER_ADDR"]))
"""
SLOW = """
import time, trainhall
for step in range({steps}):
    trainhall.log(step=step, loss=1 / (step + 1))
    print("line", step, flush=True)
    time.sleep(0.1)
"""
SAVES = """
import os, signal, sys, time
def save(*_):
    time.sleep(1)
    open(os.environ["TRAINHALL_CHECKPOINT_DIR"] + "/last", "w").write("saved")
    print("saved", flush=True)
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def portal(containers: None) -> Iterator[ClusterPortal]:
    with portal_on_cluster() as portal:
        yield portal


def test_two_ranks_train_and_nothing_is_left_but_what_they_made(portal: ClusterPortal) -> None:
    job = portal.run(TRAIN, resources={"workers": 2, "gpus": 1})
    portal.over(job, "succeeded")

    for rank in (0, 1):
        said = portal.lines(job, f"worker-{rank}")
        assert [line for line in said if line.startswith("line")] == [f"line {step}" for step in range(200)]
        assert said[0].startswith("I am ") and said[0].endswith(f"of rank {rank}")
        assert said[-1].startswith("rank 0 is at 10."), said[-1]
    series = portal.rest(f"jobs/{job}/series/")["series"]
    assert {(one["rank"], one["count"]) for one in series if one["key"] == "loss"} == {(0, 200), (1, 200)}
    files = portal.rest(f"jobs/{job}/files/")["results"]
    assert [file["path"] for file in files] == ["out/model-0.txt", "out/model-1.txt"]
    # the account of the program is that of the namespace, and never root's
    owner = Path(portal.run_folder(job), "out", "model-0.txt").stat()
    assert str(owner.st_uid) == portal.lines(job, "worker-0")[0].split()[2] != "0"
    until(lambda: not portal.objects_of(job), seconds=30, what="nothing of the job is on the cluster")


def test_kubernetes_knows_who_asked_and_dave_sees_nothing(portal: ClusterPortal) -> None:
    job = portal.run("print(1)")
    portal.over(job, "succeeded")

    (made,) = [
        entry for entry in portal.audited(job) if entry["verb"] == "create" and entry["objectRef"]["resource"] == "jobs"
    ]
    assert made["user"]["username"] == "system:serviceaccount:trainhall-system:trainhall"
    assert made["impersonatedUser"]["username"] == "trainhall:local:alice"
    (released,) = [
        entry
        for entry in portal.audited(job)
        if entry["verb"] == "patch" and entry["user"]["username"].startswith("system:serviceaccount:trainhall-system")
    ]
    assert "impersonatedUser" not in released
    dave = portal.visitor("dave")
    for path in (f"/jobs/{job}/", f"/api/v1/jobs/{job}/", f"/api/v1/jobs/{job}/logs/", f"/api/v1/jobs/{job}/files/"):
        assert dave.ask("GET", path)[0] == 404


@pytest.mark.parametrize(
    ("program", "fields", "code", "words"),
    [
        ("import sys; sys.exit(3)", {}, "NonZeroExit", "exit code 3"),
        ("import torch_that_is_not_there", {}, "NonZeroExit", "module torch_that_is_not_there is not there"),
        ("x = bytearray(500 * 2**20)", {}, "OutOfMemory", "128 MiB"),
        ("print(1)", {"command": "no-such-program"}, "CommandNotFound", "no-such-program"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", {}, "KilledBySignal", "SIGSEGV"),
        ("import time; time.sleep(60)", {"time_limit": "5s"}, "TimeLimit", "5 s"),
    ],
)
def test_a_failure_is_told_in_words(
    portal: ClusterPortal, program: str, fields: dict[str, str], code: str, words: str
) -> None:
    found = portal.over(portal.run(program, **fields), "failed")
    assert found["reason"]["code"] == code, found["reason"]
    assert words in found["reason"]["text"], found["reason"]


def test_a_registry_that_does_not_answer_is_said_while_it_waits(portal: ClusterPortal) -> None:
    job = portal.run("print(1)", image="localhost/no-such-image:1")
    found = until(
        lambda: (one := portal.rest(f"jobs/{job}/"))["reason"]["code"] == "RegistryUnavailable" and one,
        seconds=60,
        what=f"the image of {job} is missed",
    )
    assert "no-such-image" in found["reason"]["text"]
    portal.rest(f"jobs/{job}/cancel/", {})
    portal.over(job, "cancelled")


def test_a_stopped_job_saves_first_and_is_cancelled_once_it_is_gone(portal: ClusterPortal) -> None:
    job = portal.run(SAVES, stop_grace="20s")
    until(lambda: "ready" in portal.lines(job), seconds=60, what="it runs")
    portal.rest(f"jobs/{job}/cancel/", {})
    portal.over(job, "cancelled")
    assert not portal.pods_of(job)
    assert Path(portal.run_folder(job), "ckpt", "last").read_text() == "saved"
    assert portal.lines(job)[-1] == "saved"


def test_stop_now_does_not_wait_for_the_grace(portal: ClusterPortal) -> None:
    job = portal.run(
        "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)"
    )
    until(lambda: "ready" in portal.lines(job), seconds=60, what="it runs")
    began = time.monotonic()
    portal.rest(f"jobs/{job}/cancel/", {"now": True})
    portal.over(job, "cancelled", seconds=25)
    assert time.monotonic() - began < 25 and not portal.pods_of(job)


@pytest.mark.parametrize("server", ["apiserver", "kubelet", "controllers"])
def test_a_server_of_the_cluster_may_die_while_a_job_runs(portal: ClusterPortal, server: str) -> None:
    job = portal.run(SLOW.format(steps=200))
    until(lambda: "line 5" in portal.lines(job), seconds=60, what="it runs")
    with portal.without(server):
        time.sleep(5)
        program.up(portal.cluster)
    portal.over(job, "succeeded", seconds=120)
    assert portal.lines(job) == [f"line {step}" for step in range(200)]
    (series,) = [one for one in portal.rest(f"jobs/{job}/series/")["series"] if one["key"] == "loss"]
    assert series["count"] == 200
    until(lambda: not portal.objects_of(job), seconds=30, what="nothing of the job is on the cluster")


@pytest.mark.parametrize(
    "words", ["watch_cluster", "celery -A portal worker", "uvicorn", "valkey-server", "postgres -D"]
)
def test_a_process_of_the_portal_may_die_while_a_job_runs(portal: ClusterPortal, words: str) -> None:
    job = portal.run(SLOW.format(steps=150))
    until(lambda: "line 5" in portal.lines(job), seconds=60, what="it runs")
    os.kill(portal.process_of(words), signal.SIGKILL)
    until(lambda: portal.is_ready, seconds=60, what=f"the portal is ready without its {words}")
    portal.over(job, "succeeded", seconds=120)
    assert portal.lines(job) == [f"line {step}" for step in range(150)]
    (series,) = [one for one in portal.rest(f"jobs/{job}/series/")["series"] if one["key"] == "loss"]
    assert series["count"] == 150
    until(lambda: not portal.objects_of(job), seconds=30, what="nothing of the job is on the cluster")
