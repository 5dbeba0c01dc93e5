"""Signing in with a directory of 5,000 people at 20 a second, while it hangs, and a whole pass over it.

Bars: a sign-in p95 500 ms; with the directory silent every answer within 5 s and other pages as before; a pass under 60 s.
Each person comes from an address of their own, so that no throttle spares the portal the work.
The peer is what the directory itself takes for a search and a bind. Needs slapd and requirements/ldap.txt.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import statistics
import sys
import tempfile
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from place import Portal, Table, p95, portal, quiet

from portal.embedded import demo_people
from portal.embedded.slapd import READER_DN, SUFFIX, Slapd
from tests.ports import free_port

PEOPLE, GROUPS = 5_000, 500
RATE, SECONDS = 20, 60
SECRET, READER = "opens the lab", "only reads"


def entries() -> Iterator[str]:
    """The demo's few, then p0000 to p4999, each in one group of ten, which are in groups of groups."""
    yield from demo_people.entries(SECRET, reader_password=READER)
    dns = [f"uid=p{number:04},{demo_people.PEOPLE}" for number in range(PEOPLE)]
    for number, dn in enumerate(dns):
        yield demo_people.person(dn, f"p{number:04}", f"Person {number}", SECRET, number=1000 + number)
    for number in range(GROUPS):
        yield demo_people.group(f"g{number:03}", dns[number * 10 : number * 10 + 10])


class Door:
    """The page of signing in, over connections of its own, with one CSRF token for all."""

    def __init__(self, place: Portal) -> None:
        self.port = place.port
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/login/", headers={"Host": f"localhost:{self.port}"})
        answer = connection.getresponse()
        page = answer.read().decode()
        self.cookie = next(
            value.partition(";")[0]
            for name, value in answer.getheaders()
            if name.lower() == "set-cookie" and "csrf" in value
        )
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert found
        self.token = found.group(1)

    def sign_in(self, name: str, *, address: str = "127.0.0.1") -> tuple[int, float]:
        body = urllib.parse.urlencode({"username": name, "password": SECRET, "csrfmiddlewaretoken": self.token})
        headers = {
            "Host": f"localhost:{self.port}",
            "Cookie": self.cookie,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return self._ask("POST", "/login/", body, headers, address=address)

    def look(self) -> tuple[int, float]:
        return self._ask("GET", "/login/", None, {"Host": f"localhost:{self.port}"})

    def _ask(
        self, method: str, path: str, body: str | None, headers: dict[str, str], *, address: str = "127.0.0.1"
    ) -> tuple[int, float]:
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30, source_address=(address, 0))
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, 1000 * (time.perf_counter() - began)
        finally:
            connection.close()


def at_rate(door: Door, count: int) -> list[tuple[int, float]]:
    """So many sign-ins, begun at an even pace, however long each takes."""
    with ThreadPoolExecutor(64) as pool:
        waiting = []
        began = time.perf_counter()
        for number in range(count):
            time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
            address = f"127.1.{number // 250 % 250}.{1 + number % 250}"
            waiting.append(pool.submit(door.sign_in, f"p{number % 600:04}", address=address))
        return [one.result() for one in waiting]


def bare(server: Slapd) -> float:
    """Median ms of a search and a bind, and nothing else."""
    import ldap

    took = []
    for number in range(100):
        began = time.perf_counter()
        connection = ldap.initialize(server.url)
        connection.simple_bind_s(READER_DN, READER)
        (dn, _values), *_rest = connection.search_s(f"ou=people,{SUFFIX}", ldap.SCOPE_SUBTREE, f"(uid=p{number:04})")
        connection.simple_bind_s(dn, SECRET)
        connection.unbind_s()
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took)


def whole_pass() -> tuple[float, int, int]:
    """Seconds, queries and changes of a pass that gives each of 5,000 people their first role."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from accounts import people, sync
    from accounts.ldap.reading import read_everybody
    from accounts.models import GroupMapping, User

    began = time.perf_counter()
    everybody = read_everybody()
    known = set(User.objects.values_list("subject", flat=True))
    fresh = [one for one in everybody.people.values() if one.subject not in known]
    User.objects.bulk_create(User(subject=one.subject, username=f"x-{one.username}", source="ldap") for one in fresh)
    GroupMapping.objects.create(group="g*", namespace=people.ensure_project("everyone", members={}), role="member")
    began = time.perf_counter()
    with CaptureQueriesContext(connection) as queries:
        outcome = sync.run(read_everybody())
    return time.perf_counter() - began, len(queries), len(outcome.plan.added)


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="trainhall-slapd-"))
    server = Slapd(folder, port=free_port())
    server.prepare(entries())
    server.start()
    server.wait_ready()
    os.environ |= server.environment(READER)
    try:
        with portal() as place:
            return measured(place, server)
    finally:
        server.stop()


def measured(place: Portal, server: Slapd) -> int:
    table = Table(f"A directory of {PEOPLE + demo_people.EVERYBODY} people and {GROUPS + 40} groups")
    door = Door(place)
    quiet(5)
    peer = bare(server)
    answers = at_rate(door, RATE * SECONDS)
    wrong = [status for status, _took in answers if status != 302]
    took = [one for _status, one in answers]
    beside = f"median {statistics.median(took):.0f}, the directory alone {peer:.1f} ms"
    table.line(f"sign-in, p95, {RATE} a second for {SECONDS} s", p95(took), 500, beside=beside)
    table.line("not let in", len(wrong), 0, unit="", beside=f"answers {sorted(set(wrong))}")
    before = [door.look()[1] for _number in range(60)]
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(1) as pool:
            hanging = pool.submit(at_rate, door, 100)
            others = [door.look()[1] for _number in range(60)]
            silent = hanging.result()
    finally:
        server.process.send_signal(signal.SIGCONT)
    said = dict(Counter(status for status, _took in silent))
    table.line("slowest sign-in while it hangs", max(one for _s, one in silent), 5000, beside=f"answers {said}")
    table.line("another page meanwhile, p95", p95(others), 2 * p95(before) + 50, beside=f"before {p95(before):.0f} ms")
    seconds, queries, changes = whole_pass()
    table.line("a whole pass", 1000 * seconds, 60_000, beside=f"{queries} queries for {changes} new roles")
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
