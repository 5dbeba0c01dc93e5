"""F01 on a real cluster: kill -9 at every point between the portal and Kubernetes; nothing is lost, doubled or left.

TRAINHALL_KILL_ROUNDS=25 is the bar; a CI run kills once at each point.
"""

from __future__ import annotations

import ast
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.chaos.hall import CHILD, PATIENCE, WATCHER, WORKER, Hall
from tests.chaos.test_kill_points import ALLOW_ROLES, COMMAND, ROLES, STEADY
from tests.cluster.connected import job as by_hand
from tests.cluster.story import OURS, ClusterPortal, portal_on_cluster
from tests.cluster.test_adoption import SAYS, VISION, kubectl, may_create
from tests.portal.running import CHECKOUT, until

pytestmark = pytest.mark.cluster

ROUNDS = int(os.environ.get("TRAINHALL_KILL_ROUNDS", "1"))
PLAIN: dict[str, Any] = {"command": COMMAND}
# it ends by a stop alone; two Jobs, so that there is a point between them
STAYS: dict[str, Any] = {**ROLES, "command": "echo done; trap 'exit 143' TERM; sleep 120 & wait", "stop_grace": "5s"}
STOP, STOP_NOW, KUBECTL = "stop", "stop now", "kubectl"  # what makes a process come to the point

# who meets it, with which job, and what is done besides submitting it; what needs a job that runs comes first, then a journey
POINTS: list[tuple[str, str, dict[str, Any], str]] = [
    ("kubernetes.suspend.after_one", CHILD, STAYS, STOP),
    ("kubernetes.kill.after_one", CHILD, STAYS, STOP_NOW),
    ("dispatch.before_commit", CHILD, PLAIN, ""),
    ("dispatch.after_commit", CHILD, PLAIN, ""),
    ("launch.before_create", CHILD, PLAIN, ""),
    ("kubernetes.create.after_leader", CHILD, PLAIN, ""),
    ("kubernetes.create.after_leader", CHILD, ROLES, ""),
    ("kubernetes.create.after_role", CHILD, ROLES, ""),
    ("kubernetes.create.after_child", CHILD, ROLES, ""),
    ("kubernetes.create.after_secret", CHILD, PLAIN, ""),
    ("launch.after_create", CHILD, PLAIN, ""),
    ("launch.after_uid", CHILD, ROLES, ""),
    ("kubernetes.release.after_one", CHILD, ROLES, ""),
    ("launch.after_release", CHILD, PLAIN, ""),
    ("launch.after_commit", CHILD, PLAIN, ""),
    ("adopt.before_commit", WATCHER, {}, KUBECTL),
    ("adopt.after_commit", WATCHER, {}, KUBECTL),
    ("watch.pods_seen", WATCHER, PLAIN, ""),
    ("watch.running_seen", WATCHER, ROLES, ""),
    ("logs.before_commit", WATCHER, PLAIN, ""),
    ("conclude.before_end", WATCHER, ROLES, ""),
    ("kubernetes.suspend.after_one", WATCHER, ROLES, ""),
    ("settle.before", WATCHER, PLAIN, ""),
    ("settle.after", WATCHER, PLAIN, ""),
    ("remove.before_write", WATCHER, PLAIN, ""),
]


def test_every_point_of_kubernetes_in_the_code_is_killed_at() -> None:
    found: set[str] = set()
    for path in (CHECKOUT / "jobs").glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "faults.point":
                found.add(ast.literal_eval(node.args[0]))
    # of the others those that stand between the portal and its cluster; the rest is in tests/chaos
    assert {point for point in found if point.startswith(("kubernetes.", "adopt."))} <= {point for point, *_ in POINTS}
    assert {point for point, *_ in POINTS} <= found


@dataclass
class ClusterHall(ClusterPortal, Hall):
    """A whole portal on the cluster, with a folder of faults."""

    def created(self, job: str) -> Counter[tuple[str, str]]:
        """What the API server wrote down as made by the portal, by kind and name."""
        return Counter(
            (entry["objectRef"]["resource"], entry["objectRef"]["name"])
            for entry in self.audited(job)
            if entry["verb"] == "create"
            and entry["responseStatus"]["code"] == 201
            and entry["objectRef"]["resource"] in ("jobs", "services", "configmaps", "secrets")
        )

    def left_on_cluster(self) -> list[str]:
        kinds = "jobs,pods,services,secrets,configmaps"
        found = self.kubectl("get", kinds, "-n", VISION, "-l", f"{OURS},trainhall.io/job")["items"]
        return [f"{item['kind']} {item['metadata']['name']}" for item in found]


@pytest.fixture(scope="module")
def hall(containers: None) -> Iterator[ClusterHall]:
    with portal_on_cluster(ClusterHall) as hall:
        assert hall.rows(ALLOW_ROLES) == [("shell",)]
        until(lambda: may_create(hall, "alice"), seconds=60, what="alice may make Jobs in her project")
        yield hall


class Lane(threading.Thread):
    """One kind of process, killed again and again; both kinds go on side by side, and their jobs with them."""

    def __init__(self, hall: ClusterHall, process: str) -> None:
        super().__init__(name=process)
        self.hall, self.process = hall, process
        self.ends: dict[str, str] = {}  # of each job: how it has to end
        self.roles: dict[str, int] = {}
        self.running: list[str] = []  # to be stopped
        self.wrong: list[str] = []
        self.killed = 0

    def prepare(self) -> None:
        """Before anybody is killed: with the watcher away half of the time nothing is seen to run."""
        for _point, process, document, way in POINTS * ROUNDS:
            if process == self.process and way in (STOP, STOP_NOW):
                self.running.append(self.submit(document, "cancelled"))
        for job in self.running:
            until(lambda job=job: self.hall.status_of(job) == "running", seconds=120, what=f"{job} runs")  # type: ignore[misc]

    def run(self) -> None:
        for number in range(ROUNDS):
            for point, process, document, way in POINTS:
                if process != self.process:
                    continue
                try:
                    self.kill_at(point, document, way)
                except Exception as error:  # the other lane goes on, and the test shows all that went wrong
                    self.wrong.append(f"{point}, round {number + 1}: {type(error).__name__} {error}")

    def kill_at(self, point: str, document: dict[str, Any], way: str) -> None:
        """A job may end later: what the killed process left is mended while the next one is killed."""
        hall = self.hall
        job = ""
        if way in (STOP, STOP_NOW):
            job = self.running.pop()
        victim, words = (0, WORKER) if self.process == CHILD else (hall.process_of(self.process), self.process)
        hall.plant(point, words)
        if way == KUBECTL:
            self.make_by_hand(f"by-hand-{time.monotonic_ns()}")
        elif job:
            hall.rest(f"jobs/{job}/cancel/", {"now": way == STOP_NOW})
        else:
            job = self.submit(document, "succeeded")
        until(lambda: hall.was_hit(point), seconds=60, what=f"{job or way} comes to {point}")
        self.killed += 1
        if victim:
            until(lambda: victim not in hall.processes(), seconds=5, what=f"{self.process} is dead")
            hall.until_back(self.process)
            time.sleep(STEADY)

    def submit(self, document: dict[str, Any], end: str) -> str:
        job = self.hall.submit_surely(**document)
        self.ends[job], self.roles[job] = end, 3 if "launcher" in document else 1
        return job

    def make_by_hand(self, name: str) -> None:
        resources = {"requests": {"cpu": "20m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}}
        body = by_hand(name, container={"name": "trainer", "command": SAYS, "resources": resources})
        kubectl(self.hall, "create", "-f", "-", body=body)


def test_a_killed_process_loses_and_doubles_nothing_on_the_cluster(hall: ClusterHall) -> None:
    lanes = [Lane(hall, process) for process in (CHILD, WATCHER)]
    for lane in lanes:
        lane.prepare()
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    assert [wrong for lane in lanes for wrong in lane.wrong] == []
    assert sum(lane.killed for lane in lanes) == ROUNDS * len(POINTS)
    # no process was killed before it was steady: a job would have waited for the supervisor's pause
    assert set(re.findall(r"is started again in (\d+) s", hall.output)) == {"1"}

    ends = {job: end for lane in lanes for job, end in lane.ends.items()}
    roles = {job: number for lane in lanes for job, number in lane.roles.items()}
    by_kubectl = ROUNDS * sum(way == KUBECTL for *_, way in POINTS)
    settled(lambda: not hall.left_over() and not hall.left_on_cluster(), hall)

    # nothing lost, nothing twice
    rows = hall.rows("SELECT id, status, origin FROM jobs_job")
    assert {job: status for job, status, origin in rows if origin != "kubectl"} == ends
    assert [status for _job, status, origin in rows if origin == "kubectl"] == ["succeeded"] * by_kubectl
    twice = "SELECT job_id FROM jobs_jobevent WHERE new IN ('succeeded', 'failed', 'cancelled')"
    assert hall.rows(f"{twice} GROUP BY job_id HAVING count(*) <> 1") == []
    assert hall.rows("SELECT object_name FROM jobs_attempt WHERE number > 1 OR uid = ''") == []
    for job, end in ends.items():
        made = hall.created(job)
        jobs = {name: times for (kind, name), times in made.items() if kind == "jobs"}
        assert len(jobs) == roles[job] and set(jobs.values()) == {1}, (job, made)
        # a Secret may be made anew before anything runs: the portal cannot read it
        assert all(times == 1 for (kind, _name), times in made.items() if kind != "secrets"), (job, made)
        uids = {
            entry["responseObject"]["metadata"]["uid"]
            for entry in hall.audited(job)
            if entry["verb"] == "create" and entry["objectRef"]["resource"] == "jobs" and entry.get("responseObject")
            if entry["responseStatus"]["code"] == 201
        }
        assert {uid for (uid,) in hall.rows("SELECT uid FROM jobs_attempt WHERE job_id = %s", job)} <= uids
        if end == "succeeded":
            # of the lines of the program: what is ended with a chief says so, and a kubelet may say that an agent's log is gone
            assert hall.lines(job).count("done") == 1, (job, hall.lines(job))


def settled(is_done: Callable[[], bool], hall: ClusterHall) -> None:
    """Each job goes on so many seconds after the last process is back; a minute is the time in which logs are waited for."""
    try:
        until(is_done, seconds=60 + PATIENCE, what="all jobs are over and nothing of them is left")
    except AssertionError as error:
        open_jobs = [job for (job,) in hall.rows("SELECT id FROM jobs_job WHERE finished_at IS NULL")]
        stories = {job: hall.story_of(job) for job in open_jobs}
        fields = "object_name, uid, stop_code, released_at, stop_requested_at, ended_at, deleted_at"
        attempts = hall.rows(f"SELECT {fields} FROM jobs_attempt WHERE deleted_at IS NULL")
        there = [
            (
                item["metadata"]["name"],
                item["metadata"].get("deletionTimestamp"),
                item["spec"]["suspend"],
                item["status"],
            )
            for item in hall.kubectl("get", "jobs", "-n", VISION)["items"]
        ]
        raise AssertionError(f"{error}: {hall.left_over()} {stories} {attempts} {json.dumps(there)}") from None
