"""F01: kill -9 at every point of a journey; nothing is lost, doubled or left, and each job goes on by itself."""

from __future__ import annotations

import ast
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.hall import CHILD, PATIENCE, SMALL, WATCHER, WEB, WORKER, Hall
from tests.portal.running import CHECKOUT, until

pytestmark = [pytest.mark.chaos, pytest.mark.long]

ROUNDS = 3
STEADY = 10.5  # seconds that a process lives before it is killed again: the supervisor then starts it after one second
COMMAND = 'test "$CANARY" && sleep 0.3 && echo done'
# a role beside the one whose end is the job's: there is something left to end
OF_A_CHIEF = f'case "$TF_CONFIG" in *\'"type": "chief"\'*) {COMMAND};; *) sleep 60;; esac'
ROLES: dict[str, Any] = {
    "launcher": "tensorflow",
    "resources": {**SMALL["resources"], "parameter_servers": 1},  # type: ignore[dict-item]
    "stop_grace": "1s",
    "command": OF_A_CHIEF,
}
ALLOW_ROLES = "UPDATE jobs_runtime SET launchers = '[\"plain\", \"tensorflow\"]' WHERE slug = 'shell' RETURNING slug"

# in the order of a journey (RELIABILITY 3, S1 to S18): which process the point is met in
POINTS = {
    "submit.parsed": WEB,
    "submit.before_commit": WEB,
    "push.before_send": WEB,
    "wake.before_publish": WEB,
    "submit.after_commit": WEB,
    "dispatch.before_commit": CHILD,
    "move.before_commit": CHILD,
    "dispatch.after_commit": CHILD,
    "launch.before_create": CHILD,
    "local.create.before_rename": CHILD,
    "local.create.after_rename": CHILD,
    "launch.after_create": CHILD,
    "launch.after_uid": CHILD,
    "local.release.after_marker": CHILD,
    "local.release.after_first_runner": CHILD,
    "launch.after_release": CHILD,
    "launch.after_commit": CHILD,
    "watch.pods_seen": WATCHER,
    "watch.running_seen": WATCHER,
    "logs.before_commit": WATCHER,
    "conclude.before_end": WATCHER,
    "settle.before": WATCHER,
    "settle.after": WATCHER,
    "local.delete.after_marker": WATCHER,
    "local.delete.before_move": WATCHER,
    "remove.before_write": WATCHER,
}


def test_every_point_in_the_code_is_killed_at() -> None:
    found = set()
    for path in (CHECKOUT / "jobs").glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "faults.point":
                assert isinstance(node.args[0], ast.Constant)
                found.add(str(node.args[0].value))
    # those of Kubernetes, and of Jobs that kubectl makes, are met there only (tests/cluster/test_kill_points.py)
    assert {point for point in found if not point.startswith(("kubernetes.", "adopt."))} == set(POINTS)


class Lane(threading.Thread):
    """One kind of process, killed again and again; the three kinds go on side by side, and their jobs with them."""

    def __init__(self, hall: Hall, process: str) -> None:
        super().__init__(name=process)
        self.hall, self.process = hall, process
        self.jobs: list[str] = []
        self.wrong: list[str] = []
        self.killed = 0

    def run(self) -> None:
        points = [point for point, process in POINTS.items() if process == self.process]
        for number in range(ROUNDS):
            for point in points:
                try:
                    self.kill_at(point)
                except Exception as error:  # the other lanes go on, and the test shows all that went wrong
                    self.wrong.append(f"{point}, round {number + 1}: {type(error).__name__} {error}")

    def kill_at(self, point: str) -> None:
        hall = self.hall
        # only this kind dies there: another, met on the way by a job of another lane, would die before it was steady, and
        # the supervisor's growing pause before it is started again would be longer than a job has to go on
        if self.process == CHILD:  # the worker forks a new one by itself
            victim, words = 0, WORKER
        else:
            victim, words = hall.process_of(self.process), self.process
        hall.plant(point, words)
        job = hall.submit_surely(**(ROLES if point == "conclude.before_end" else {"command": COMMAND}))
        self.jobs.append(job)
        until(lambda: hall.was_hit(point), seconds=PATIENCE, what=f"{job} comes to {point}")
        self.killed += 1
        if victim:
            until(lambda: victim not in hall.processes(), seconds=5, what=f"{self.process} is dead")
            hall.until_back(self.process)
        back = time.monotonic()
        hall.until_over(job, seconds=PATIENCE)
        if victim:
            time.sleep(max(0.0, back + STEADY - time.monotonic()))


def test_a_killed_process_loses_and_doubles_nothing(hall: Hall) -> None:
    assert hall.rows(ALLOW_ROLES) == [("shell",)]
    lanes = [Lane(hall, process) for process in (WEB, CHILD, WATCHER)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    assert [wrong for lane in lanes for wrong in lane.wrong] == []
    assert sum(lane.killed for lane in lanes) == ROUNDS * len(POINTS)
    # no process was killed before it was steady: a job would have waited for the supervisor's pause
    assert set(re.findall(r"is started again in (\d+) s", hall.output)) == {"1"}
    hall.assert_all_true([job for lane in lanes for job in lane.jobs])
    assert hall.rows("SELECT count(*) FROM jobs_attempt WHERE number > 1") == [(0,)]
    for log in (hall.data / "logs").glob("*.log"):
        assert "Traceback" not in _without_deaths(log), log


def _without_deaths(log: Path) -> str:
    """A log without what Celery says when a child of it was killed: that is the test's own doing."""
    return "\n\n".join(
        entry for entry in log.read_text(errors="replace").split("\n[") if "WorkerLostError" not in entry
    )
