"""F05: the broker is killed, emptied, restarted and stalled under three submissions a second; no job notices."""

from __future__ import annotations

import http.client
import os
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis

from portal.embedded.home import find_home, make_home
from portal.embedded.valkey import Valkey
from tests.chaos.hall import SMALL, Hall
from tests.portal.running import until

pytestmark = pytest.mark.chaos

A_SECOND = 3  # submissions
STARTED_WITHIN = 60.0  # seconds after the broker is back


class Broker:
    """A Valkey of the test's own, without any persistence, which the supervisor does not start again."""

    def __init__(self, folder: Path) -> None:
        home = find_home(folder, {"TRAINHALL_DATA_DIR": str(folder)}, uid=os.geteuid())
        make_home(home)
        self.valkey = Valkey(home)
        self.start()

    @property
    def url(self) -> str:
        return self.valkey.url

    def start(self) -> None:
        self.valkey.start(durable=False)
        self.valkey.wait_ready()

    def signal(self, number: signal.Signals) -> None:
        assert self.valkey.process is not None
        self.valkey.process.send_signal(number)
        if number == signal.SIGKILL:
            self.valkey.process.wait()

    def killed_for_three_seconds(self) -> None:
        self.signal(signal.SIGKILL)
        time.sleep(3)
        self.start()

    def restarted_three_times_in_three_seconds(self) -> None:
        began = time.monotonic()
        for number in range(3):
            self.signal(signal.SIGKILL)
            self.start()
            time.sleep(max(0.0, began + number + 1 - time.monotonic()))

    def emptied_and_stalled(self) -> None:
        for _time in range(5):
            with redis.Redis.from_url(self.url) as client:
                client.flushall()
            time.sleep(0.3)
        self.signal(signal.SIGSTOP)
        time.sleep(8)
        self.signal(signal.SIGCONT)


@dataclass
class Crowd:
    """Sends a submission every third of a second, each from a client of its own, and keeps what it was told."""

    hall: Hall
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    clients: list[threading.Thread] = field(default_factory=list)

    def go(self) -> None:
        while not self.over.wait(1 / A_SECOND):
            client = threading.Thread(target=self.submit)
            client.start()
            self.clients.append(client)

    def submit(self) -> None:
        key, began = uuid.uuid4().hex, time.monotonic()
        try:
            self.answers[key] = self.hall.call("POST", "jobs/", {**SMALL, "command": "true"}, key=key)
        except (OSError, http.client.HTTPException) as error:
            self.answers[key] = (0, error)
        self.took.append(time.monotonic() - began)


@pytest.fixture
def broker(folder: Path) -> Iterator[Broker]:
    with tempfile.TemporaryDirectory(prefix="trainhall-broker-") as own:
        broker = Broker(Path(own))
        yield broker
        broker.signal(signal.SIGKILL)


@pytest.fixture
def hall(folder: Path, broker: Broker) -> Iterator[Hall]:
    hall = Hall(folder / "data", extra={"REDIS_URL": broker.url})
    try:
        hall.start()
        yield hall
    finally:
        hall.kill_all()


def test_no_job_is_lost_doubled_or_late_whatever_happens_to_the_broker(hall: Hall, broker: Broker) -> None:
    crowd = Crowd(hall)
    submitter = threading.Thread(target=crowd.go)
    submitter.start()
    back: list[tuple[str, float]] = []
    faults: list[Callable[[], None]] = [
        broker.killed_for_three_seconds,
        broker.restarted_three_times_in_three_seconds,
        broker.emptied_and_stalled,
    ]
    try:
        for fault in faults:
            time.sleep(3)
            fault()
            back.append((fault.__name__, time.time()))
            # the portal is well again by itself before the next blow
            until(lambda: hall.is_ready, seconds=STARTED_WITHIN, what=f"ready again after {fault.__name__}")
    finally:
        crowd.over.set()
        submitter.join()
        for client in crowd.clients:
            client.join()
    # a broker that is away is nobody's reason to refuse: what is asked for is in the database
    assert {status for status, _answer in crowd.answers.values()} == {201}, crowd.answers
    jobs = [answer["id"] for _status, answer in crowd.answers.values()]
    assert len(jobs) == len(set(jobs)) == len(crowd.answers)
    print(f"{len(jobs)} submissions, the slowest answer after {max(crowd.took):.1f} s")
    hall.assert_all_true(jobs, seconds=STARTED_WITHIN)
    for fault, at in back:
        query = (
            "SELECT job.id FROM jobs_job job JOIN jobs_attempt attempt ON attempt.job_id = job.id"
            " WHERE job.created_at < to_timestamp(%s) AND coalesce(attempt.released_at, now()) > to_timestamp(%s)"
        )
        assert hall.rows(query, at, at + STARTED_WITHIN) == [], fault


def test_the_health_page_says_that_the_broker_is_away(hall: Hall, broker: Broker) -> None:
    broker.signal(signal.SIGKILL)
    until(lambda: not hall.is_ready, seconds=10, what="red")
    broker.start()
    until(lambda: hall.is_ready, seconds=STARTED_WITHIN, what="green again")
