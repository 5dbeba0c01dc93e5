"""F18: a training that reports every 10 ms step does not notice that the portal is gone, slow, busy or nameless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jobs.credentials import attempt_token
from metrics import store
from tests.chaos.fault_proxy import FAULTS, FaultProxy
from tests.metrics.makers import make_job
from tests.metrics.server import web_process
from tests.portal.running import CHECKOUT, until

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]

DOWN = 6.0  # seconds of each fault: more than one of the SDK's time-outs
NAME = "portal.test"
# Work that lets other threads run, as a framework's does, so much of it that a step takes 10 ms of an idle processor.
TRAINING = """
import hashlib, json, os, pathlib, socket, sys, time

look_up = socket.getaddrinfo
def resolver(host, *rest, **more):  # the machine's, as far as this process can tell
    if host != NAME:
        return look_up(host, *rest, **more)
    if os.path.exists("nameless"):
        time.sleep(0.5)
        raise socket.gaierror(-2, "Name or service not known")
    return look_up("127.0.0.1", *rest, **more)
socket.getaddrinfo = resolver

buffer = os.urandom(2**20)
began = time.thread_time()
for _ in range(30): hashlib.sha256(buffer).digest()
times = max(1, round(0.01 / ((time.thread_time() - began) / 30)))
def work():
    for _ in range(times): hashlib.sha256(buffer).digest()

def measured(steps, report):
    walls, calls, spent, raised, step = [], [], 0.0, [], 0
    while steps(step):
        began = time.perf_counter()
        work()
        called, cpu = time.perf_counter(), time.thread_time()
        try:
            report(step)
        except BaseException as error:
            raised.append(repr(error))
        spent += time.thread_time() - cpu
        ended = time.perf_counter()
        walls.append(ended - began)
        calls.append(ended - called)
        step += 1
    return {"steps": step, "walls": walls, "calls": calls, "spent": spent, "raised": raised}

bare = measured(lambda step: step < 200, lambda step: None)
import trainhall
def report(step):
    trainhall.log({"train/loss": 1 / (step + 1), "lr": 0.1}, step=step)
    trainhall.progress(step, 10**6)
told = measured(lambda step: not os.path.exists("stop"), report)
began = time.perf_counter()
trainhall.finish(30)
pathlib.Path("result").write_text(json.dumps({"bare": bare, "told": told, "finish": time.perf_counter() - began}))
""".replace("NAME", repr(NAME))


def middle(values: list[float], share: float = 0.5) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def test_a_training_is_never_harmed_and_its_points_arrive(alice: Any, vision: Any, tmp_path: Path) -> None:
    job = make_job(alice, vision)
    (tmp_path / "token").write_text(attempt_token(job.pk, 1))
    for folder in ("web", "out"):
        (tmp_path / folder).mkdir()
    with web_process(tmp_path / "web") as server, FaultProxy(server.port) as proxy:
        training = subprocess.Popen(
            [sys.executable, "-c", TRAINING],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(CHECKOUT / "sdk"),
                "TRAINHALL_URL": f"http://{NAME}:{proxy.port}",
                "TRAINHALL_JOB_ID": job.pk,
                "TRAINHALL_ATTEMPT": "1",
                "TRAINHALL_TOKEN_FILE": str(tmp_path / "token"),
                "TRAINHALL_OUTPUT_DIR": str(tmp_path / "out"),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            well(proxy)
            for fault in FAULTS:
                proxy.be(fault)
                time.sleep(DOWN)
                assert fault == "refused" or proxy.met[fault], f"nothing was sent while the portal was {fault}"
                proxy.be("pass")
                well(proxy)
            (tmp_path / "nameless").touch()
            proxy.be("pass")  # cuts the connection, so that the name is looked up
            time.sleep(DOWN)
            (tmp_path / "nameless").unlink()
            proxy.be("refused")  # and the portal is away when the training ends, but not for long
            (tmp_path / "stop").touch()
            time.sleep(2)
            proxy.be("pass")
            _out, said = training.communicate(timeout=60)
        finally:
            training.kill()
            training.wait()
        assert "Traceback" not in server.log.read_text()
    assert training.returncode == 0, said
    check(json.loads((tmp_path / "result").read_text()), said, job)


def well(proxy: FaultProxy) -> None:
    """Points arrive again: the last wait was at most twice as long as the fault."""
    before = proxy.answered
    until(lambda: proxy.answered > before + 1, seconds=40, what="points arrive")


def check(result: dict[str, Any], said: str, job: Any) -> None:
    told, bare = result["told"], result["bare"]
    logged = {series.id.key: series.total for series in store.read_series(job.pk, keys=["train/loss", "lr"])}
    lost = sum(int(line.split()[1]) for line in said.splitlines() if "points were lost" in line)
    share = told["spent"] / sum(told["walls"])
    print(
        f"{told['steps']} steps under {len(FAULTS) + 1} faults, {len(told['raised'])} errors raised;"
        f" a step took {middle(bare['walls']) * 1000:.2f} ms without the SDK and {middle(told['walls']) * 1000:.2f} ms with it,"
        f" of its thread's time the SDK took {share:.3%};"
        f" a call took {middle(told['calls']) * 1e6:.0f} µs, {middle(told['calls'], 0.999) * 1000:.2f} ms at p99.9,"
        f" {max(told['calls']) * 1000:.2f} ms at most; finish took {result['finish']:.1f} s;"
        f" {sum(logged.values())} of {2 * told['steps']} points arrived, {lost} told as lost"
    )
    assert told["raised"] == []
    assert told["steps"] > 500
    assert middle(told["calls"], 0.999) < 0.1
    assert sum(logged.values()) >= 0.999 * 2 * told["steps"]
    assert sum(logged.values()) + lost == 2 * told["steps"], said
    assert "Traceback" not in said
    assert "points wait and are sent later" in said, "who reads the log learns that the portal was away"
