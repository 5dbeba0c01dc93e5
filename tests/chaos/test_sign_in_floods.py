"""F29, sign-in: floods of wrong passwords against a running portal, beside people who sign in.

The directory's own log is the witness of what it hears.
"""

from __future__ import annotations

import http.client
import re
import statistics
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from accounts import throttle
from portal.embedded import demo_people
from portal.embedded.demo_people import PEOPLE
from portal.embedded.slapd import Slapd, find
from tests.chaos.hall import Hall
from tests.directory import READER_SECRET, SECRET, needs_directory
from tests.portal.running import until
from tests.ports import free_port

pytestmark = pytest.mark.chaos
BAR = 0.5  # seconds: p95 of a sign-in, flood or not
RATE = 10  # tries a second, three times what the figure asks
CALM = 20  # sign-ins of others that are timed before and during a flood
SPELLINGS = ("carol", "CAROL", "Carol", "cArol", "ｃarol")


class TalkingSlapd(Slapd):
    """It writes down every bind, with its DN."""

    def start(self, **_more: Any) -> subprocess.Popen[bytes]:
        binary = find()
        assert binary is not None
        with self.log.open("wb") as log:
            argv = [binary, "-d", "stats", "-f", str(self.folder / "slapd.conf"), "-h", self.url]
            self.process = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT, cwd="/")
        return self.process

    def binds_of(self, dn: str) -> int:
        return len(re.findall(rf'BIND dn="{re.escape(dn)}" method=128', self.log.read_text(errors="replace")))


@pytest.fixture
def talking(tmp_path: Path) -> Iterator[TalkingSlapd]:
    needs_directory()
    server = TalkingSlapd(tmp_path / "slapd", port=free_port())
    server.folder.mkdir()
    server.prepare(demo_people.entries(SECRET, reader_password=READER_SECRET))
    server.start()
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


@pytest.fixture
def hall(folder: Path, talking: TalkingSlapd) -> Iterator[Hall]:
    hall = Hall(folder / "data", extra=dict(talking.environment(READER_SECRET)), token="none is needed")
    try:
        hall.start()
        yield hall
    finally:
        hall.kill_all()


@dataclass(frozen=True)
class Answer:
    status: int
    seconds: float
    retry_after: int | None
    body: str


class Door:
    """The sign-in form, from whatever address of this machine."""

    def __init__(self, hall: Hall) -> None:
        self.port = hall.port
        status, headers, body = self._ask("GET", "127.0.0.1", {}, None)
        assert status == 200
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', body)
        assert found
        self.token = found.group(1)
        self.cookie = next(
            value.partition(";")[0] for name, value in headers if "csrf" in value and name == "set-cookie"
        )

    def sign_in(self, name: str, password: str, *, address: str, **headers: str) -> Answer:
        fields = {"username": name, "password": password, "csrfmiddlewaretoken": self.token}
        told = {"Cookie": self.cookie, "Content-Type": "application/x-www-form-urlencoded", **headers}
        began = time.monotonic()
        status, heads, body = self._ask("POST", address, told, urllib.parse.urlencode(fields))
        after = dict(heads).get("retry-after")
        return Answer(status, time.monotonic() - began, None if after is None else int(after), body)

    def _ask(self, method: str, address: str, headers: dict[str, str], body: str | None) -> tuple[int, Any, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30, source_address=(address, 0))
        try:
            connection.request(method, "/login/", body, {"Host": f"localhost:{self.port}", **headers})
            answer = connection.getresponse()
            return answer.status, [(name.lower(), value) for name, value in answer.getheaders()], answer.read().decode()
        finally:
            connection.close()


def spoofed(number: int) -> dict[str, str]:
    """Half of a flood says that it comes from elsewhere, in every way there is."""
    if number % 2:
        return {}
    claimed = f"203.0.113.{number % 250}"
    return {
        "X-Forwarded-For": f"{claimed}, 198.51.100.{number % 250}",
        "X-Real-IP": claimed,
        "Forwarded": f"for={claimed}",
        "X-Forwarded-Proto": "https",
        "CF-Connecting-IP": claimed,
    }


def others(door: Door, ended: Callable[[], bool]) -> list[Answer]:
    """People who know their passwords, four a second, each from a desk of their own, until the flood is over."""
    answers: list[Answer] = []
    while len(answers) < CALM or not ended():
        number = len(answers)
        answers.append(
            door.sign_in(f"person{number % 150:03}", SECRET, address=f"127.9.{number // 250}.{1 + number % 250}")
        )
        time.sleep(0.25)
    return answers


def p95(answers: list[Answer]) -> float:
    return statistics.quantiles([one.seconds for one in answers], n=20, method="inclusive")[18]


def flood(door: Door, tries: list[tuple[str, str]]) -> tuple[list[Answer], list[Answer]]:
    """So many wrong passwords, as (name, address); and what others got meanwhile."""
    over = threading.Event()
    began = time.monotonic()
    with ThreadPoolExecutor(1) as desks, ThreadPoolExecutor(16) as pool:
        beside = desks.submit(others, door, over.is_set)
        sent = []
        for number, (name, address) in enumerate(tries):
            time.sleep(max(0.0, began + number / RATE - time.monotonic()))
            sent.append(pool.submit(door.sign_in, name, f"wrong {number}", address=address, **spoofed(number)))
        answers = [one.result() for one in sent]
        over.set()
        return answers, beside.result()


def rows_of(hall: Hall) -> int:
    return int(hall.rows("SELECT count(*) FROM accounts_loginattempt")[0][0])


def the_clock_goes_on(hall: Hall, seconds: float) -> None:
    """What was counted so far was so much earlier: the clock hook of these tests."""
    hall.rows("UPDATE accounts_loginattempt SET at = at - %s * interval '1 second' RETURNING id", seconds)


def dn(name: str) -> str:
    return f"uid={name},{PEOPLE}"


def test_floods_are_refused_early_and_the_directory_hears_little(
    hall: Hall, talking: TalkingSlapd, capsys: Any
) -> None:
    door = Door(hall)
    for number in range(10):  # the first ones make accounts
        assert door.sign_in(f"person{number:03}", SECRET, address=f"127.8.0.{number + 1}").status == 302
    calm = others(door, lambda: True)
    told = {}

    # one name from 200 addresses
    one_name, beside_name = flood(door, [("bob", f"127.2.0.{1 + number}") for number in range(200)])
    looked_at = [one for one in one_name if one.status != 429]
    assert len(looked_at) <= throttle.PER_NAME and {one.status for one in looked_at} <= {401, 503}
    assert all(one.retry_after is not None and 1 <= one.retry_after <= 600 for one in one_name if one.status == 429)
    told["bob"] = talking.binds_of(dn("bob"))

    # 200 names from one address
    names = [f"person{number % 190:03}" if number % 2 else f"guess-{number}" for number in range(200)]
    one_address, beside_address = flood(door, [(name, "127.3.0.1") for name in names])
    looked_at = [one for one in one_address if one.status != 429]
    assert len(looked_at) <= throttle.PER_ADDRESS and {one.status for one in looked_at} <= {401, 503}
    assert all(one.retry_after is not None and 1 <= one.retry_after <= 60 for one in one_address if one.status == 429)

    # one name in five spellings, again and again, for what the directory may hear in ten minutes
    for minute in range(4):
        for number in range(10):
            door.sign_in(SPELLINGS[number % 5], "wrong", address=f"127.4.{minute}.{1 + number}", **spoofed(number))
        the_clock_goes_on(hall, 61)
    told["carol"] = talking.binds_of(dn("carol"))

    assert all(binds <= throttle.BINDS for binds in told.values()), told
    assert {one.status for one in (*beside_name, *beside_address)} == {302}, "others could not sign in"

    # the right password waits like any other, and works after the window
    assert door.sign_in("carol", SECRET, address="127.5.0.1").status == 429
    assert talking.binds_of(dn("carol")) == told["carol"]
    assert door.sign_in("bob", SECRET, address="127.5.0.1").status == 429
    the_clock_goes_on(hall, 601)
    for name in ("carol", "bob"):
        assert door.sign_in(name, SECRET, address="127.5.0.1").status == 302

    spent = hall.rows(
        "SELECT after->>'no_tries_left_for', address, target FROM accounts_auditevent WHERE action = 'session.throttled'"
    )
    assert ('["address"]', "127.3.0.1") in {(why, str(address)) for why, address, _target in spent}
    assert any("name" in why and target == "" for why, _address, target in spent)
    trail = [str(row[0]) for row in hall.rows("SELECT address FROM accounts_auditevent WHERE actor = ''")]
    from_here = [address for address in trail if address.startswith("127.")]
    assert set(trail) - set(from_here) <= {"None"}, "a header was believed"

    # nothing of it stays but the trail, whose rows are as few as the tries that were looked at
    the_clock_goes_on(hall, 2 * throttle.BIND_WINDOW.total_seconds() + 1)
    door.sign_in("nobody-at-all", "wrong", address="127.6.0.1")
    assert rows_of(hall) <= 2
    assert len(from_here) <= 2 * (5 + 20 + 4 * 5 + 4)

    calm_p95, name_p95, address_p95 = p95(calm), p95(beside_name), p95(beside_address)
    with capsys.disabled():
        print(
            f"\n  429: {sum(one.status == 429 for one in one_name)} of 200 for one name,"
            f" {sum(one.status == 429 for one in one_address)} of 200 from one address; binds {told};"
            f" others' sign-in p95 {1000 * calm_p95:.0f} ms before, {1000 * name_p95:.0f} and {1000 * address_p95:.0f} ms beside"
            f" ({len(beside_name) + len(beside_address)} of them); {len(from_here)} rows of the trail"
        )
    # a machine that misses the bar without a flood is not this one's fault
    assert max(name_p95, address_p95) < max(BAR, 2 * calm_p95), (calm_p95, name_p95, address_p95)
    assert until(lambda: hall.is_ready, seconds=5, what="it is well")
