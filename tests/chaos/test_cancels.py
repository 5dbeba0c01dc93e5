"""F12: fifty stops at random moments of the way from submission to a running process; none leaves anything alive."""

from __future__ import annotations

import random
import threading
import time

import pytest

from tests.chaos.hall import Hall

pytestmark = pytest.mark.chaos

CANCELS = 50
SIDE_BY_SIDE = 5
GONE_WITHIN = 60.0
LATEST = 1.0  # seconds after the answer to the submission; most are being created or have just begun


class Person(threading.Thread):
    """Submits a job that takes a while to end, and stops it again soon."""

    def __init__(self, hall: Hall, rng: random.Random) -> None:
        super().__init__()
        self.hall, self.rng = hall, rng
        self.jobs: list[str] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        for _cancel in range(CANCELS // SIDE_BY_SIDE):
            ends_after = self.rng.uniform(0, 1.5)
            job = self.hall.submit_surely(
                f"trap 'sleep {ends_after:.2f}; exit 1' TERM; while :; do sleep 0.05; done", stop_grace="20s"
            )
            self.jobs.append(job)
            time.sleep(self.rng.uniform(0, LATEST))
            status, answer = self.hall.call("POST", f"jobs/{job}/cancel/", {})
            if status not in (200, 202):
                self.wrong.append(f"{job}: {status} {answer}")


def test_a_stop_at_any_moment_ends_everything_and_says_so_only_then(hall: Hall) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    people = [Person(hall, random.Random(seed + number)) for number in range(SIDE_BY_SIDE)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert [wrong for person in people for wrong in person.wrong] == []
    jobs = [job for person in people for job in person.jobs]
    assert len(jobs) == CANCELS
    hall.assert_all_true(jobs, seconds=GONE_WITHIN)
    assert {hall.status_of(job) for job in jobs} == {"cancelled"}
    ends = dict(
        hall.rows(
            "SELECT attempt.object_name, extract(epoch FROM event.at)::float FROM jobs_jobevent event"
            " JOIN jobs_attempt attempt ON attempt.job_id = event.job_id WHERE event.new = 'cancelled'"
        )
    )
    returned = dict(
        hall.rows(
            "SELECT attempt.object_name, extract(epoch FROM min(held.ended_at))::float FROM jobs_usageinterval held"
            " JOIN jobs_worker worker ON worker.id = held.worker_id JOIN jobs_attempt attempt ON attempt.id = worker.attempt_id"
            " GROUP BY attempt.object_name"
        )
    )
    ran = 0
    for name, (journal,) in hall.journals().items():
        at = {line["event"]: line["time"] for line in journal}
        ran += "start" in at
        assert at["delete"] <= ends[name], f"{name} was called cancelled before its object was gone"
        assert at.get("exit", 0.0) <= returned[name], f"{name} gave its place back while it ran"
    assert ran > 0, "some were stopped while they ran"
    print(f"{len(ends)} were admitted, {ran} ran")
