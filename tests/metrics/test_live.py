"""The socket of a page: snapshot, then changes; nothing missing, nothing twice; nothing for strangers."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connections
from django.utils import timezone
from websockets.exceptions import ConnectionClosed, InvalidStatus

from accounts.models import Membership
from jobs import lifecycle
from jobs.cluster.port import RawLine
from jobs.credentials import attempt_token
from jobs.logs import lines as logs
from jobs.models import Job
from metrics import sealing, snapshot
from portal.embedded.home import Home, find_home, make_home
from portal.embedded.valkey import Valkey
from tests import factories
from tests.metrics.makers import make_job, report, wire
from tests.metrics.server import Server, post, web_process
from tests.metrics.sockets import Page, open_socket, session_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(db: None, tmp_path: Any) -> Iterator[Server]:
    with web_process(tmp_path) as running:
        yield running
        assert "Traceback" not in running.log.read_text(), running.log.read_text()


class Chart:
    """What a page makes of a snapshot and the changes after it: each series with its points by step."""

    def __init__(self) -> None:
        self.seq: int | None = None
        self.last: dict[tuple[str, int, int], tuple[int, Any]] = {}
        self.heard: list[tuple[str, int, int, int, Any]] = []
        self.progress: Any = None

    def take(self, frame: dict[str, Any]) -> None:
        assert frame["type"] in ("snapshot", "change")
        if frame["type"] == "snapshot":
            self.last.clear()
        for one in frame["data"]["series"]:
            name = (one["key"], one["rank"], one["attempt"])
            if frame["type"] == "snapshot":
                self.last[name] = (one["last"]["step"], one["last"]["value"])
            else:
                for step, value in zip(one["step"], one["value"], strict=True):
                    self.heard.append((*name, step, value))
                    if name not in self.last or step >= self.last[name][0]:
                        self.last[name] = (step, value)
        self.seq, self.progress = frame["seq"], frame["data"]["progress"]


def chart_of(job: Any) -> Chart:
    chart = Chart()
    seq, data = snapshot.points(job.pk)
    chart.take({"type": "snapshot", "seq": seq, "data": data})
    return chart


def follow_until(page: Page, topic: str, chart: Chart, seq: int) -> None:
    while chart.seq is None or chart.seq < seq:
        chart.take(page.next(topic))


def test_a_snapshot_and_its_changes_equal_a_new_snapshot(server: Server, alice: Any, job: Any) -> None:
    topic = f"points/{job.pk}"
    report(job, {"loss": [(1, 0.5)]})
    chart = Chart()
    with Page(server, alice) as page:
        chart.take(page.follow(topic))
        for step in range(2, 40):
            report(
                job, {"loss": [(step, "NaN" if step % 7 == 0 else 1 / step)], "acc": [(step // 2, step)]}, rank=step % 2
            )
            time.sleep(0.01)
        follow_until(page, topic, chart, 39)
    new = chart_of(job)
    assert (chart.seq, chart.last, chart.progress) == (new.seq, new.last, new.progress)
    assert len(chart.heard) == 38 * 2 == len(set(chart.heard))


def test_a_page_that_lost_its_connection_gets_exactly_what_it_missed(server: Server, alice: Any, job: Any) -> None:
    topic = f"points/{job.pk}"
    chart = Chart()
    with Page(server, alice) as page:
        chart.take(page.follow(topic))
        report(job, {"loss": [(1, 1.0)]})
        follow_until(page, topic, chart, 1)
    for step in range(2, 6):
        report(job, {"loss": [(step, 1.0)]})
    with Page(server, alice) as page:
        answer = page.follow(topic, since=chart.seq)
        assert answer["type"] == "change" and answer["seq"] == 5
        chart.take(answer)
        assert page.follow(topic, since=5)["data"]["series"] == []  # told that nothing is missing
        report(job, {"loss": [(6, 1.0)]})
        follow_until(page, topic, chart, 6)
    assert [step for _key, _rank, _attempt, step, _value in chart.heard] == [1, 2, 3, 4, 5, 6]


def test_a_number_that_is_sealed_away_or_foreign_gets_a_snapshot(server: Server, alice: Any, job: Any) -> None:
    topic = f"points/{job.pk}"
    for step in range(3):
        report(job, {"loss": [(step, 1.0)]})
    sealing.seal(job.pk, 1, leave=timedelta(0))
    with Page(server, alice) as page:
        for since in (0, 1, 99):
            answer = page.follow(topic, since=since)
            assert (answer["type"], answer["seq"], answer["data"]["series"][0]["count"]) == ("snapshot", 3, 3)


def test_pages_that_join_at_any_moment_hear_everything_once(server: Server, alice: Any, job: Any) -> None:
    topic = f"points/{job.pk}"
    stop = threading.Event()

    def write() -> None:
        step = 0
        while not stop.is_set():
            report(job, {"loss": [(step, 1.0)]})
            step += 1
            time.sleep(0.004)
        connections.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    pages: list[tuple[Page, Chart, int]] = []
    try:
        for _number in range(8):
            page, chart = Page(server, alice), Chart()
            chart.take(page.follow(topic))
            assert chart.seq is not None
            pages.append((page, chart, chart.seq))
            time.sleep(0.07)
    finally:
        stop.set()
        writer.join()
    seq, _data = snapshot.points(job.pk)
    for page, chart, first in pages:
        follow_until(page, topic, chart, seq)
        assert [heard[3] for heard in chart.heard] == list(range(first, seq))
        page.socket.close()


def test_the_first_change_leaves_at_once_and_the_next_are_gathered(server: Server, alice: Any, job: Any) -> None:
    with Page(server, alice) as page:
        page.follow(f"points/{job.pk}")
        for step in range(50):
            report(job, {"loss": [(step, 1.0)]})
        frames = []
        while not frames or frames[-1]["seq"] < 50:
            frames.append(page.next(f"points/{job.pk}"))
        assert len(frames[0]["data"]["series"][0]["step"]) < 50 and len(frames) <= 12


def test_lines_of_one_worker_and_of_all(server: Server, alice: Any, job: Any) -> None:
    attempt = job.attempts.get()
    attempt.workers.all().delete()
    attempt.delete()
    attempt = factories.make_attempt(job, workers=2)
    first, second = attempt.workers.order_by("index")

    def write(worker: Any, *texts: str) -> None:
        start = worker.log_number
        lines = [RawLine(number=start + n, time=1.0, text=text) for n, text in enumerate(texts, 1)]
        logs.store_lines(attempt, worker, lines)

    write(first, "a", "b")
    write(second, "c")
    with Page(server, alice) as page:
        answer = page.follow(f"logs/{job.pk}/0")
        assert answer["seq"] == 3 and [line["text"] for line in answer["data"]["lines"]] == ["a", "b"]
        assert [line["text"] for line in page.follow(f"logs/{job.pk}", since=1)["data"]["lines"]] == ["b", "c"]
        write(second, "d")
        change = page.next(f"logs/{job.pk}")
        assert change["seq"] == 4 and change["data"]["lines"][0]["worker"] == "worker-1"
        write(first, "e")
        change = page.next(f"logs/{job.pk}/0")
        assert [(line["seq"], line["text"]) for line in change["data"]["lines"]] == [(5, "e")]
    with Page(server, alice) as page:
        assert page.follow(f"logs/{job.pk}/worker-0", since=5)["data"]["lines"] == []
        assert page.follow(f"logs/{job.pk}/launcher-0")["data"]["lines"] == []
        assert page.follow(f"logs/{job.pk}/../0")["type"] == "refused"


def test_a_job_and_the_lists_it_is_in(server: Server, alice: Any, bob: Any, job: Any, vision: Any) -> None:
    running, everything, queued = "jobs?status=running", "jobs", "jobs?status=queued"
    with Page(server, alice) as page, Page(server, bob) as other:
        assert page.follow(f"job/{job.pk}")["data"]["job"]["status"] == "running"
        assert [row["id"] for row in other.follow(running)["data"]["jobs"]] == [job.pk]
        assert other.follow(queued)["data"]["jobs"] == []
        assert other.follow(everything)["seq"] is None
        fresh = Job.objects.get(pk=job.pk)
        lifecycle.move(fresh, "succeeded")
        change = page.next(f"job/{job.pk}")
        assert change["type"] == "change" and change["seq"] == fresh.version
        assert change["data"]["job"]["status"] == "succeeded"
        assert other.next(running) == {"topic": running, "seq": None, "type": "gone", "data": {"id": job.pk}}
        assert other.next(everything)["data"]["job"]["status"] == "succeeded"
        new = make_job(alice, vision, status="queued")
        lifecycle.write(new, notes="new")
        assert other.next(queued)["data"]["job"]["id"] == new.pk


def test_strangers_hear_what_a_made_up_id_hears(server: Server, dave: Any, job: Any) -> None:
    with Page(server, dave) as page:
        for kind in ("job/{}", "points/{}", "logs/{}", "logs/{}/0"):
            theirs = page.follow(kind.format(job.pk))
            made_up = page.follow(kind.format("zzzzzzzzzz"))
            assert theirs == {**made_up, "topic": kind.format(job.pk)}
            assert (made_up["type"], made_up["data"]) == ("refused", {"code": "not_found"})
        assert page.follow("namespace/vision")["data"] == page.follow("namespace/nowhere")["data"]
        assert page.follow("jobs")["data"]["jobs"] == []
        report(job, {"loss": [(1, 1.0)]})
        lifecycle.write(Job.objects.get(pk=job.pk), notes="x")
        assert page.silence(0.6) == []


def test_who_loses_the_namespace_loses_its_topics(server: Server, bob: Any, job: Any, vision: Any) -> None:
    with Page(server, bob) as page:
        assert page.follow(f"points/{job.pk}")["type"] == "snapshot"
        assert len(page.follow("jobs")["data"]["jobs"]) == 1
        Membership.objects.filter(user=bob, namespace=vision).delete()
        refused = page.next(f"points/{job.pk}", within=11)
        assert refused["type"] == "refused" and refused["data"] == {"code": "not_found"}
        assert page.next("jobs")["data"]["jobs"] == []
        report(job, {"loss": [(1, 1.0)]})
        assert page.silence(0.5) == []
        assert page.follow(f"points/{job.pk}")["type"] == "refused"


def test_a_session_that_is_over_closes_the_socket_with_the_reason(
    server: Server, alice: Any, bob: Any, job: Any
) -> None:
    pages = [Page(server, alice), Page(server, bob)]
    for page in pages:
        page.follow("inbox")
    Session.objects.filter(pk=pages[0].session).delete()
    bob.is_active = False
    bob.save()
    for page in pages:
        with pytest.raises(ConnectionClosed) as caught:
            page.next("nothing", within=12)
        assert caught.value.rcvd is not None
        assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (4401, "session_over")


def test_only_our_pages_and_only_people_get_a_socket(server: Server, alice: Any) -> None:
    session = session_of(alice)
    for origin in ("https://evil.example", "null", server.origin + "1", server.origin.replace("http", "https")):
        with pytest.raises(InvalidStatus) as caught:
            open_socket(server, session, origin=origin)
        assert caught.value.response.status_code == 403
    expired = session_of(alice)
    Session.objects.filter(pk=expired).update(expire_date=timezone.now() - timedelta(seconds=1))
    for nobody in ("", "madeup", expired):
        with pytest.raises(InvalidStatus) as caught:
            open_socket(server, nobody)
        assert caught.value.response.status_code == 403


UNREADABLE = [
    *("", "{", "[]", "7", "null", '"x"', "{}", "[" * 5000, '{"a": "\\ud800"}'),
    *('{"subscribe": []}', '{"subscribe": {"inbox": "1"}}', '{"subscribe": {"inbox": -1}}'),
    *('{"unsubscribe": {}}', '{"unsubscribe": [1]}'),
]


def test_frames_nobody_can_read_are_answered(server: Server, alice: Any) -> None:
    with Page(server, alice) as page:
        for text in UNREADABLE:
            page.say(text)
            assert page.next("")["type"] == "error", text
        assert page.follow("inbox") == {"topic": "inbox", "seq": None, "type": "snapshot", "data": {}}


def test_odd_topics_are_refused_and_there_is_a_limit(server: Server, alice: Any) -> None:
    with Page(server, alice) as page:
        for name in (
            "",
            "job/",
            "job/../x",
            "points/\x00",
            "logs/zzzzzzzzzz/x-y",
            "jobs?status=odd",
            "x" * 5000,
            "job/é",
        ):
            assert page.follow(name)["type"] == "refused", name
        page.say({"subscribe": {f"jobs?q={number}": None for number in range(201)}})
        for number in range(200):
            assert page.next(f"jobs?q={number}")["type"] == "snapshot"
        assert page.next("jobs?q=200")["data"]["code"] == "too_many"
        page.say({"unsubscribe": ["jobs?q=0"]})
        assert page.follow("jobs?q=200")["type"] == "snapshot"
        page.say("x" * 70_000)
        with pytest.raises(ConnectionClosed) as caught:
            page.next("nothing")
        assert caught.value.rcvd is not None and caught.value.rcvd.code == 1009


def test_a_beat_comes_every_four_seconds_and_idle_sockets_live(server: Server, alice: Any, job: Any) -> None:
    with Page(server, alice) as page:
        page.follow(f"points/{job.pk}")
        began = time.monotonic()
        beats = []
        while len(beats) < 2:
            frame = json.loads(page.socket.recv(timeout=6))
            assert frame["type"] == "beat" and frame["topic"] == "" and frame["data"]["at"].endswith("+00:00")
            beats.append(time.monotonic() - began)
        assert beats[1] - beats[0] == pytest.approx(4.0, abs=1.0)
        report(job, {"loss": [(1, 1.0)]})
        assert page.next(f"points/{job.pk}")["seq"] == 1


def test_without_valkey_pages_are_right_all_the_same(alice: Any, job: Any, tmp_path: Any) -> None:
    with web_process(tmp_path, REDIS_URL="redis://127.0.0.1:9/0") as server, Page(server, alice) as page:
        page.follow(f"points/{job.pk}")
        page.follow(f"job/{job.pk}")
        page.follow("jobs?status=succeeded")
        report(job, {"loss": [(1, 1.0)]})
        lifecycle.move(Job.objects.get(pk=job.pk), "succeeded")
        page.until(lambda frame: frame["topic"] == f"points/{job.pk}" and frame["seq"] == 1)
        page.until(lambda frame: frame["data"].get("job", {}).get("status") == "succeeded")
        page.until(lambda frame: bool(frame["topic"] == "jobs?status=succeeded" and frame["data"]["jobs"]))


def test_a_worker_that_moves_without_a_new_version_is_told(server: Server, alice: Any, job: Any) -> None:
    with Page(server, alice) as page:
        page.follow(f"job/{job.pk}")
        job.attempts.get().workers.update(phase="Running")
        frame = page.next(f"job/{job.pk}")
        assert frame["type"] == "snapshot" and frame["data"]["job"]["workers"][0]["phase"] == "Running"


def test_valkey_restarts_and_pages_are_right_again(alice: Any, job: Any, tmp_path: Any) -> None:
    """F21: hints of the gap are lost, nothing else is."""
    home = make_home_of(tmp_path)
    valkey = Valkey(home)
    valkey.start(durable=False)
    valkey.wait_ready()
    topic = f"points/{job.pk}"
    chart = Chart()
    try:
        with web_process(tmp_path, REDIS_URL=valkey.url) as server, Page(server, alice) as page:
            chart.take(page.follow(topic))
            for step in range(6):
                if step == 2:
                    valkey.stop()
                if step == 4:
                    valkey = Valkey(home)
                    valkey.start(durable=False)
                    valkey.wait_ready()
                body = json.dumps(wire({"loss": [(step, 1.0)]})).encode()
                assert post(server, job.pk, body, token=attempt_token(job.pk, 1))[0] == 200
                follow_until(page, topic, chart, step + 1)
    finally:
        valkey.stop()
    assert [step for _key, _rank, _attempt, step, _value in chart.heard] == list(range(6))


def make_home_of(folder: Path) -> Home:
    home = find_home(folder, {"TRAINHALL_DATA_DIR": str(folder / "data")}, uid=os.geteuid())
    make_home(home)
    return home


def test_many_visits_leave_nothing_behind(server: Server, alice: Any, job: Any) -> None:
    """R84, F21 at CI size: half of them cut without a word."""
    session = session_of(alice)

    def visit(number: int) -> None:
        with open_socket(server, session) as page:
            page.send(json.dumps({"subscribe": {f"points/{job.pk}": None, "jobs": None, f"job/{job.pk}": None}}))
            for _frame in range(3):
                page.recv(timeout=10)
            if number % 2:
                page.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                page.socket.close()

    def files() -> int:
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(visit, range(100)))  # threads and connections of the hub exist now
        time.sleep(0.5)
        rss, open_files = server.rss(), files()
        list(pool.map(visit, range(500)))
    time.sleep(1)
    assert server.rss() - rss < 20 * 2**20 and files() <= open_files + 2


def test_who_reads_nothing_is_dropped_and_others_go_on(server: Server, alice: Any, job: Any) -> None:
    """F21: two megabytes waiting and the connection is over; a reader beside it hears everything."""
    topic = f"points/{job.pk}"
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    narrow.connect(("127.0.0.1", server.port))
    deaf = Page(server, alice, sock=narrow, max_queue=1, compression=None)
    deaf.follow(topic)
    chart = Chart()
    with Page(server, alice) as page:
        chart.take(page.follow(topic))
        for batch in range(100):
            report(job, {"loss": [(batch * 5000 + step, step / 7) for step in range(5000)]})
            follow_until(page, topic, chart, batch + 1)
    assert len(chart.heard) == 500_000
    with pytest.raises(ConnectionClosed):
        deaf.until(lambda frame: bool(frame["seq"] == 100), within=20)
