"""Worker and watcher are killed whole, at random moments, under ten jobs in flight."""

from __future__ import annotations

import random
import time

import pytest

from tests.chaos.hall import PATIENCE, WATCHER, WORKER, Hall
from tests.portal.running import until

pytestmark = pytest.mark.chaos

ROUNDS = 3
JOBS = 10


def test_ten_jobs_in_flight_outlive_the_worker_and_the_watcher(hall: Hall) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    jobs: list[str] = []
    for _round in range(ROUNDS):
        flight = [hall.submit_surely(f"sleep {rng.uniform(0, 2):.2f}; echo done") for _job in range(JOBS)]
        jobs += flight
        for words in rng.sample((WORKER, WATCHER), 2):
            time.sleep(rng.uniform(0, 1.5))
            killed = hall.kill(words)
            until(lambda killed=killed: killed not in hall.processes(), seconds=5, what="it is dead")
        for words in (WORKER, WATCHER):
            hall.until_back(words)
        end = time.monotonic() + PATIENCE
        for job in flight:
            hall.until_over(job, seconds=max(0.1, end - time.monotonic()))
    hall.assert_all_true(jobs)
    assert hall.rows("SELECT count(*) FROM jobs_attempt WHERE number > 1") == [(0,)]
