"""F21: slow readers, cut connections and a broker that dies; every page has the right end within seconds, and nothing leaks."""

from __future__ import annotations

import json
import random
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.db import connection, connections
from websockets.exceptions import ConnectionClosed

from jobs import lifecycle
from jobs.models import Job, JobFeed
from metrics.announcer import WATCHED
from tests.chaos.test_broker import Broker
from tests.metrics.makers import make_job, report
from tests.metrics.server import Server, web_process
from tests.metrics.sockets import open_socket, session_of
from tests.portal.running import until

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]

CLIENTS = 20
MESSAGES = 5000
WRITERS = 4
RIGHT_WITHIN = 5.0  # seconds after the end of the job
RIGHT_AGAIN_WITHIN = 10.0  # seconds after the broker is back
DROPPED_WITHIN = 50.0  # 30 s that one frame may take, and the 15 s after which a mark of who watches vanishes
VISITS = 300
AT_ONCE = 8
SPARE = AT_ONCE  # of each kind: so many a pool may hold for visitors at once; one kept per visit would be hundreds


@pytest.fixture
def job(alice: Any, vision: Any) -> Any:
    return make_job(alice, vision)


@pytest.fixture
def server(db: None, tmp_path: Path) -> Iterator[Server]:
    with web_process(tmp_path) as running:
        yield running
        assert "Traceback" not in running.log.read_text(), running.log.read_text()


def narrow(server: Server) -> socket.socket:
    """A connection that holds little more than what its reader takes."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(("127.0.0.1", server.port))
    return line


class SlowPage(threading.Thread):
    """A page on a bad line in a busy browser: takes its time over each frame, stands still now and then, comes again if
    it is dropped, and asks for what it missed."""

    def __init__(self, server: Server, session: str, job: Any, *, pause: float, seed: int) -> None:
        super().__init__(daemon=True)
        self.server, self.session, self.pause, self.chance = server, session, pause, random.Random(seed)
        self.topics: dict[str, int | None] = {
            f"job/{job.pk}": None,
            f"points/{job.pk}": None,
            "jobs?status=running": None,
        }
        self.state, self.points = f"job/{job.pk}", f"points/{job.pk}"
        self.status = ""
        self.right_at = 0.0
        self.frames = self.dropped = 0
        self.over = threading.Event()

    @property
    def is_following(self) -> bool:
        return bool(self.status)

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.follow()
            except (ConnectionClosed, OSError):
                self.dropped += 1

    def follow(self) -> None:
        page = open_socket(self.server, self.session, sock=narrow(self.server), max_queue=1, compression=None)
        page.send(json.dumps({"subscribe": self.topics}))
        while not self.over.is_set():
            try:
                frame = json.loads(page.recv(timeout=0.5))
            except TimeoutError:
                continue
            self.take(frame)
            time.sleep(self.pause if self.chance.random() > 0.01 else 1.5)
        page.close()

    def take(self, frame: dict[str, Any]) -> None:
        self.frames += 1
        if frame["topic"] in (self.state, self.points) and frame["seq"] is not None:
            self.topics[frame["topic"]] = frame["seq"]
        if frame["topic"] == self.state and "job" in frame["data"]:
            self.status = frame["data"]["job"]["status"]
            if self.status == "succeeded" and not self.right_at:
                self.right_at = time.monotonic()


@pytest.fixture
def crowd(alice: Any, job: Any) -> Iterator[Any]:
    pages: list[SlowPage] = []

    def gather(server: Server, *, pause: float) -> list[SlowPage]:
        session = session_of(alice)
        pages.extend(SlowPage(server, session, job, pause=pause, seed=number) for number in range(CLIENTS))
        for page in pages:
            page.start()
        until(lambda: all(page.is_following for page in pages), seconds=30, what="all have their snapshots")
        return pages

    yield gather
    for page in pages:
        page.over.set()
    for page in pages:
        page.join(5)


def burst(job: Any, messages: int) -> None:
    """Points and changes of the job itself, as fast as four writers can store them."""

    def write(writer: int) -> None:
        for number in range(messages // WRITERS):
            if number % 10:
                report(job, {f"loss/{writer}": [(number, 1 / (number + 1))]}, rank=writer)
            else:
                lifecycle.write(Job.objects.for_rows().get(pk=job.pk), notes=f"{writer} {number}")
        connections.close_all()

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))


def test_the_end_of_a_burst_reaches_every_slow_page(server: Server, crowd: Any, job: Any) -> None:
    """R83: elsewhere the newest messages are the ones that are lost."""
    pages = crowd(server, pause=0.005)
    began = time.monotonic()
    burst(job, MESSAGES)
    wrote = time.monotonic() - began
    assert lifecycle.move(Job.objects.for_rows().get(pk=job.pk), "succeeded")
    ended = time.monotonic()
    until(lambda: all(page.right_at for page in pages), seconds=30, what="all know the end")
    late = max(page.right_at for page in pages) - ended
    print(f"{MESSAGES} messages in {wrote:.1f} s; {CLIENTS} slow pages knew the end after at most {late:.2f} s,")
    print(f"of {sum(page.frames for page in pages)} frames, dropped {sum(page.dropped for page in pages)} times")
    assert late <= RIGHT_WITHIN
    last = JobFeed.objects.get(pk=job.pk).points_seq
    right = [page for page in pages if page.topics[page.points] == last]
    until(
        lambda: all(page.topics[page.points] == last for page in pages),
        seconds=10,
        what=f"all {len(right)} have all points",
    )


def held(server: Server) -> dict[str, int]:
    """What connections could leave behind, counted by the machine, the broker and the database."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        broker = {
            "keys": client.dbsize(),
            "channels": len(client.pubsub_channels()),
            "patterns": client.pubsub_numpat(),
            "clients": len(client.client_list()),
        }
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        database = cursor.fetchone()[0]
    process = Path(f"/proc/{server.process.pid}")
    return {
        **broker,
        "database connections": database,
        "threads": len(list((process / "task").iterdir())),
        "files": len(list((process / "fd").iterdir())),
    }


def test_hundreds_of_visits_leave_nothing_behind(server: Server, alice: Any, job: Any) -> None:
    """R84: half of them are cut without a word."""
    session = session_of(alice)
    topics = {f"points/{job.pk}": None, "jobs": None, f"job/{job.pk}": None, f"logs/{job.pk}": None}

    def visit(number: int) -> None:
        with open_socket(server, session) as page:
            page.send(json.dumps({"subscribe": topics}))
            for _frame in topics:
                page.recv(timeout=20)
            if number % 2:
                page.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                page.socket.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(visit, range(60)))  # what the process keeps for good exists now
        time.sleep(7)  # marks that vanish by themselves, such as who watches a job's points
        before, rss = held(server), server.rss()
        list(pool.map(visit, range(VISITS)))
    end = time.monotonic() + 20
    after = held(server)
    while any(now > before[what] + SPARE for what, now in after.items()) and time.monotonic() < end:
        time.sleep(0.5)
        after = held(server)
    grown = server.rss() - rss
    print(f"{VISITS} visits: RSS {grown / 2**20:+.1f} MiB, {before} before, {after} after")
    assert grown < 20 * 2**20
    assert all(now <= before[what] + SPARE for what, now in after.items()), (before, after)


def test_who_takes_nothing_is_dropped_in_time(server: Server, alice: Any, job: Any) -> None:
    """A page that has stopped reading is no follower for long: nothing is read, encoded or kept for it any more."""
    deaf = open_socket(
        server, session_of(alice), sock=narrow(server), max_queue=1, compression=None, ping_interval=None
    )
    deaf.send(json.dumps({"subscribe": {f"points/{job.pk}": None}}))
    deaf.recv(timeout=10)
    stopped = time.monotonic()
    told = 0
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        until(lambda: client.exists(WATCHED + job.pk), seconds=10, what="the page counts as a follower")
        while client.exists(WATCHED + job.pk) and time.monotonic() - stopped < DROPPED_WITHIN + 15:
            report(job, {"loss": [(told * 1000 + step, step / 7) for step in range(1000)]})
            told += 1
            time.sleep(0.1)
    took = time.monotonic() - stopped
    print(f"nobody follows after {took:.1f} s and {told * 1000} points")
    assert took <= DROPPED_WITHIN


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    (tmp_path / "broker").mkdir(mode=0o711)
    broker = Broker(tmp_path / "broker")
    yield broker
    broker.signal(signal.SIGKILL)


def test_pages_are_right_soon_after_the_broker_is_back(crowd: Any, broker: Broker, job: Any, tmp_path: Path) -> None:
    """What was told while it was dead reached nobody, and is not told again."""
    (tmp_path / "web").mkdir()
    with web_process(tmp_path / "web", REDIS_URL=broker.url) as server:
        pages = crowd(server, pause=0.0)
        burst(job, 100)
        broker.signal(signal.SIGKILL)
        burst(job, 100)
        assert lifecycle.move(Job.objects.for_rows().get(pk=job.pk), "succeeded")
        broker.start()
        back = time.monotonic()
        last = JobFeed.objects.get(pk=job.pk).points_seq
        until(
            lambda: all(page.right_at and page.topics[page.points] == last for page in pages),
            seconds=RIGHT_AGAIN_WITHIN,
            what="all are right again",
        )
        print(f"{CLIENTS} pages were right {time.monotonic() - back:.1f} s after the broker was back")
        for page in pages:
            page.over.set()
        assert "Traceback" not in server.log.read_text(), server.log.read_text()
