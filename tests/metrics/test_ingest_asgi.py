"""The HTTP door of points, as a real server answers it: every body gets a clear answer, none a 5xx (R62-R71)."""

from __future__ import annotations

import gzip
import json
import socket
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.credentials import attempt_token
from jobs.models import Attempt, JobFeed
from metrics import store
from metrics.ingest_asgi import BARE_ROUTES, PATH
from metrics.models import PointBatch
from tests.metrics.makers import make_job, wire
from tests.metrics.server import Server, post, web_process

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(db: None, tmp_path: Any) -> Iterator[Server]:
    with web_process(tmp_path) as running:
        yield running
        assert running.process.poll() is None, running.log.read_text()
        assert "Traceback" not in running.log.read_text(), running.log.read_text()


def send(server: Server, job: Any, body: Any, **how: Any) -> tuple[int, dict[str, Any]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    how.setdefault("token", attempt_token(job.pk, 1))
    status, answer, _headers = post(server, job.pk, raw, **how)
    return status, answer


def raw_bytes(server: Server, data: bytes, *, wait: float = 12.0, half_close: bool = False) -> bytes:
    """What the server says to these bytes, whatever they are."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=wait) as line:
        line.sendall(data)
        if half_close:
            line.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while piece := line.recv(65536):
                answer += piece
                if b"\r\n\r\n" in answer and answer.endswith(b"}"):
                    break
        except (TimeoutError, ConnectionError):
            return answer
        return answer


def head(job: Any, *lines: str) -> bytes:
    token = attempt_token(job.pk, 1)
    start = [f"POST /api/v1/jobs/{job.pk}/ingest/ HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", *lines]
    return ("\r\n".join(start) + "\r\n\r\n").encode()


def values_of(job: Any) -> dict[str, dict[int, str]]:
    keys = [one["key"] for one in store.list_series(job.pk)]
    return {
        one.id.key: dict(zip(one.run.step.tolist(), map(str, one.run.value.tolist()), strict=True))  # type: ignore[union-attr]
        for one in store.read_series(job.pk, keys=keys)
    }


def test_a_batch_its_repeat_and_a_compressed_one(server: Server, job: Any) -> None:
    body = wire({"train/loss": [(1, 0.5), (2, "NaN"), (-1, 3.0)]}, progress={"step": 2, "total": 4})
    status, answer = send(server, job, body)
    assert status == 200 and answer.pop("interval_ms") in (200, 2000)
    [refusal] = answer.pop("refused")
    assert refusal == {**refusal, "key": "train/loss", "step": -1, "index": 2, "code": "bad_step"}
    assert answer == {"batch": body["batch"], "accepted": 2, "repeated": False, "refused_count": 1}
    packed = gzip.compress(json.dumps(body).encode())
    status, answer = send(server, job, packed, headers={"Content-Encoding": "gzip"})
    assert status == 200 and answer["repeated"] is True and answer["accepted"] == 2
    assert values_of(job) == {"train/loss": {1: "0.5", 2: "nan"}}
    feed = JobFeed.objects.get(pk=job.pk)
    assert (feed.points_seq, feed.refused_points, feed.progress["total"]) == (1, 1, 4)


def test_only_the_token_of_this_attempt_opens_the_door(server: Server, alice: Any, vision: Any) -> None:
    """A15: refused for another job, another attempt, a person, nobody; dead 15 minutes after the attempt."""
    job, other = make_job(alice, vision, attempts=2), make_job(alice, vision)
    body = wire({"loss": [(1, 1.0)]})
    good = attempt_token(job.pk, 1)
    for token in (
        "",
        "ta_",
        good[:-1] + ("0" if good[-1] != "0" else "1"),
        attempt_token(other.pk, 1),
        "th_abc",
        "ta_é",
    ):
        assert send(server, job, body, token=token)[0] == 401
    assert send(server, job, body, token=attempt_token(job.pk, 3))[1]["error"]["code"] == "bad_token"
    assert send(server, job, {**body, "attempt": 2})[1]["error"]["code"] == "bad_token"
    assert not PointBatch.objects.exists()
    assert send(server, job, {**body, "attempt": 1})[0] == 200
    Attempt.objects.filter(job=other).update(ended_at=timezone.now() - timedelta(minutes=14))
    assert send(server, other, body)[0] == 200
    Attempt.objects.filter(job=other).update(ended_at=timezone.now() - timedelta(minutes=16))
    time.sleep(2.1)  # what is known of an attempt is at most two seconds old
    status, answer = send(server, other, wire({"loss": [(2, 1.0)]}))
    assert (status, answer["error"]["code"]) == (403, "attempt_over")


def test_other_methods_and_paths(server: Server, job: Any) -> None:
    answer = raw_bytes(server, f"GET /api/v1/jobs/{job.pk}/ingest/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 405") and b"allow: POST" in answer
    [(pattern, methods, _rule)] = BARE_ROUTES
    assert methods == ("POST",) and PATH.pattern in pattern.replace("?P<id>", "")


def test_limits_answer_at_once_and_the_server_stays_small(server: Server, job: Any) -> None:
    """R70: 50 MB, a gzip bomb, too many points, depth: named, quickly, in bounded memory."""
    send(server, job, wire({"loss": [(1, 1.0)]}))
    before = server.rss()
    bomb = gzip.compress(b"[" * (300 * 2**20), 9)
    many = wire({"loss": [(step, 1) for step in range(100_001)]})
    deep = b'{"batch": ' + b"[" * 1_000_000
    cases: list[tuple[bytes, dict[str, str], int, str]] = [
        (bomb, {"Content-Encoding": "gzip"}, 413, "too_large"),
        (json.dumps(many).encode(), {}, 413, "too_large"),
        (deep, {}, 400, "bad_json"),
        (b"[" + b"[]," * 2_700_000 + b"[]]", {}, 413, "too_large"),
        (b"\x1f\x8b garbage", {"Content-Encoding": "gzip"}, 400, "bad_json"),
        (b"{}", {"Content-Encoding": "br"}, 415, "bad_encoding"),
    ]
    for body, headers, wanted, code in cases:
        began = time.monotonic()
        status, answer = send(server, job, body, headers=headers)
        assert (status, answer["error"]["code"]) == (wanted, code)
        assert time.monotonic() - began < 5
    answer = raw_bytes(server, head(job, "Content-Length: 52428800") + b"x" * 100)
    assert answer.startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    answer = raw_bytes(server, head(job, "Transfer-Encoding: chunked") + chunk * 130)
    assert answer.startswith(b"HTTP/1.1 413")
    assert server.rss() - before < 80 * 2**20


def test_odd_connections_are_answered_or_dropped_and_others_are_served(server: Server, job: Any) -> None:
    """Slow, cut, chunked and wrongly measured bodies of a raw socket."""
    body = json.dumps(wire({"loss": [(1, 1.0)]})).encode()
    length = f"Content-Length: {len(body)}"
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(head(job, length) + body[:10])
        began = time.monotonic()
        assert send(server, job, wire({"loss": [(2, 1.0)]}))[0] == 200  # others are not kept waiting
        slow.settimeout(15)
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")
        assert 4 < time.monotonic() - began < 12
    raw_bytes(server, head(job, length) + body[:10], half_close=True, wait=1)  # cut: nobody is left to answer
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(body[at : at + 9]), body[at : at + 9]) for at in range(0, len(body), 9))
    assert raw_bytes(server, head(job, "Transfer-Encoding: chunked") + pieces + b"0\r\n\r\n").startswith(
        b"HTTP/1.1 200"
    )
    assert raw_bytes(server, head(job, "Content-Length: 10") + body, wait=3).startswith(b"HTTP/1.1 400")
    assert raw_bytes(server, head(job, "Content-Length: -1") + body, wait=3).startswith(b"HTTP/1.1 400")
    assert raw_bytes(server, head(job, "Transfer-Encoding: chunked") + b"zz\r\n", wait=3).startswith(b"HTTP/1.1 400")
    assert send(server, job, wire({"loss": [(3, 1.0)]}))[0] == 200


def test_every_accepted_value_reads_back(server: Server, job: Any) -> None:
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 2**53 + 1, "NaN", "Infinity", "-Infinity", None, -1e-7]
    assert send(server, job, wire({"loss": list(enumerate(numbers))}))[1]["accepted"] == len(numbers)
    expected = [str(float("nan" if number is None else number)) for number in numbers]
    assert values_of(job) == {"loss": dict(enumerate(expected))}


def test_valkey_away_changes_nothing_for_a_sender(job: Any, tmp_path: Any) -> None:
    with web_process(tmp_path, REDIS_URL="redis://127.0.0.1:9/0") as server:
        for step in range(3):
            assert send(server, job, wire({"loss": [(step, 1.0)]}))[0] == 200
    assert JobFeed.objects.get(pk=job.pk).points_seq == 3


def test_many_senders_of_one_job_lose_nothing(server: Server, job: Any) -> None:
    """F17 small: shuffled keys, repeats, several connections."""
    from concurrent.futures import ThreadPoolExecutor
    from random import Random

    def sender(rank: int) -> list[int]:
        answers = []
        for number in range(15):
            keys = [f"k{index}" for index in range(8)]
            Random(rank + number).shuffle(keys)
            body = wire({key: [(number, float(rank))] for key in keys}, batch=str(uuid.UUID(int=number)), rank=rank)
            answers += [send(server, job, body)[0] for _twice in range(2)]
        return answers

    with ThreadPoolExecutor(8) as pool:
        answers = [status for statuses in pool.map(sender, range(8)) for status in statuses]
    assert set(answers) == {200}
    assert PointBatch.objects.filter(job=job).count() == 8 * 15 == JobFeed.objects.get(pk=job.pk).points_seq
    assert sum(one["count"] for one in store.list_series(job.pk)) == 8 * 15 * 8
