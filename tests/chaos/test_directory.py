"""F23: what the directory takes away ends here by itself: pages, REST, sockets, tokens and waiting jobs of a running portal."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from portal.embedded.demo_people import GROUPS, PEOPLE
from portal.embedded.slapd import Slapd
from tests.chaos.hall import SMALL, Hall
from tests.chaos.person import Person
from tests.directory import READER_SECRET, SECRET, changed
from tests.portal.running import until

pytestmark = pytest.mark.chaos
EVERY = 5  # seconds between two passes here; 120 by default
BOUND = 30.0  # seconds, of the 300 that are promised


@pytest.fixture
def hall(folder: Path, slapd: Slapd) -> Iterator[Hall]:
    assert slapd.tls is not None
    extra = {
        **slapd.environment(READER_SECRET),
        "LDAP_TLS": "start",
        "LDAP_CA_FILE": str(slapd.tls[2]),
        "LDAP_SYNC_SECONDS": str(EVERY),
    }
    hall = Hall(folder / "data", extra=extra, token="not made yet")
    try:
        hall.start()
        hall.token = hall.manage("create_token", "admin").stdout.strip()
        yield hall
    finally:
        hall.kill_all()


def listen(hall: Hall, person: Person, topic: str) -> ClientConnection:
    line = connect(
        f"ws://localhost:{hall.port}/ws/",
        origin=f"http://localhost:{hall.port}",  # type: ignore[arg-type]
        additional_headers={"Cookie": person.cookies},
        proxy=None,
    )
    line.send(orjson.dumps({"subscribe": {topic: None}}).decode())
    assert heard(line, "snapshot", seconds=10)
    return line


def heard(line: ClientConnection, kind: str, *, seconds: float) -> bool:
    """Whether a frame of this kind comes in time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            if orjson.loads(line.recv(timeout=left))["type"] == kind:
                return True
        except (TimeoutError, ConnectionClosed):
            return False
    return False


def is_closed(line: ClientConnection, *, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            line.recv(timeout=left)
        except TimeoutError:
            return False
        except ConnectionClosed:
            return True
    return False


def token_of(person: Person) -> str:
    found = re.search(r"th_\w+", person.post("/me/tokens/", name="laptop", scope="submit", days=1))
    assert found
    return found.group()


def test_a_removal_in_the_directory_ends_every_right_by_itself(hall: Hall, slapd: Slapd, capsys: Any) -> None:
    alice, bob = Person(hall, "alice", SECRET), Person(hall, "bob", SECRET)
    hall.token, admins = token_of(alice), hall.token
    big = {**SMALL, "resources": {**SMALL["resources"], "gpus": 8}, "command": "sleep 600", "stop_grace": "1s"}  # type: ignore[dict-item]
    running, waiting = (hall.rest("jobs/", big)["id"] for _number in range(2))
    hall.wait_for(running, "running")
    line = listen(hall, alice, f"job/{running}")
    assert "sleep 600" in alice.get(f"/jobs/{running}/spec/")

    with changed(slapd, f"cn=vision,{GROUPS}", "member", f"uid=alice,{PEOPLE}", add=False):
        began = time.monotonic()
        assert heard(line, "refused", seconds=BOUND), "the open page goes on"
        took = time.monotonic() - began
        assert hall.call("GET", f"jobs/{running}/")[0] == 404
        assert "sleep 600" not in alice.get(f"/jobs/{running}/spec/")
        assert hall.call("POST", "jobs/", big)[0] in (403, 404, 422)
        assert "sleep 600" in bob.get(f"/jobs/{running}/spec/")
        hall.token = admins
        held = until(lambda: hall.rest(f"jobs/{waiting}/")["held_by"], seconds=BOUND, what="the waiting job is held")
        assert held == "alice"
        assert hall.rest(f"jobs/{waiting}/")["reason"]["code"] == "OwnerLeft"
        assert hall.rest(f"jobs/{running}/")["status"] == "running"  # a lead decides about it, too

    mine = listen(hall, alice, "jobs?user=alice")
    with changed(slapd, f"uid=alice,{PEOPLE}", "shadowExpire", "15000", add=True):
        began = time.monotonic()
        until(lambda: 'name="password"' in alice.get("/me/namespaces/"), seconds=BOUND, what="her session has ended")
        ended = time.monotonic() - began
        assert is_closed(mine, seconds=BOUND)
    for job in (running, waiting):
        hall.rest(f"jobs/{job}/cancel/", {"now": True})
    with capsys.disabled():
        print(f"\n  out of a group: {took:.1f} s, out of the directory: {ended:.1f} s (passes every {EVERY} s)")
