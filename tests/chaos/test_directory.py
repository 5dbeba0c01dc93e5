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

from portal.embedded.demo_people import GROUPS, PEOPLE, hashed
from portal.embedded.slapd import Slapd
from tests.chaos.hall import SMALL, Hall
from tests.chaos.person import Person
from tests.directory import READER_SECRET, SECRET, as_admin, changed
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
        admin = Person(hall, "admin", (hall.data / "demo-password").read_text().strip())
        # a directory of one's own comes without the demo's project and rule
        for path, fields in (
            ("/admin/access/projects/", {"project": "vision"}),
            ("/admin/access/", {"group": "vision", "namespace": "vision", "role": "member"}),
        ):
            assert 'aria-invalid="true"' not in admin.post(path, **fields)
        admin.post("/admin/access/sync/")
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


def add_entry(slapd: Slapd, uid: str) -> str:
    """Add an entry of this name, which the directory gives an id of its own; the answer is its DN."""
    dn = f"uid={uid},{PEOPLE}"
    values = {"uid": uid.encode(), "cn": b"Temp", "sn": b"Temp", "userPassword": hashed(SECRET).encode()}
    with as_admin(slapd) as admin:
        admin.add_s(dn, [("objectClass", b"inetOrgPerson"), *values.items()])
    return dn


def delete_entry(slapd: Slapd, dn: str) -> None:
    with as_admin(slapd) as admin:
        admin.delete_s(dn)


def own_namespace(hall: Hall, user: str) -> tuple[str, str]:
    query = (
        "SELECT place.slug, place.kubernetes_name FROM accounts_namespace place"
        " JOIN accounts_user person ON person.id = place.owner_id WHERE person.username = %s"
    )
    ((slug, on_cluster),) = hall.rows(query, user)
    return slug, on_cluster


def seen(person: Person, path: str, job: str) -> str:
    """A page without what differs between any two requests, and without the id that was asked for."""
    page = re.sub(r'name="csrfmiddlewaretoken" value="\w+"|<time .*?</time>', "", person.get(path.format(job)))
    return page.replace(job, "")


def assert_as_if_it_never_was(person: Person, job: str) -> None:
    for path in ("/jobs/{}/", "/jobs/{}/spec/", "/jobs/{}/logs/", "/api/v1/jobs/{}/", "/api/v1/jobs/{}/logs/"):
        there = seen(person, path, job)
        assert there == seen(person, path, "0" * len(job)), path
        assert "sleep 602" not in there


def test_who_comes_with_an_old_name_meets_nothing_of_the_old_one(hall: Hall, slapd: Slapd) -> None:
    """R60: the entry is deleted, and made again with the same login."""
    admins = hall.token
    dn = add_entry(slapd, "temp")
    try:
        old = Person(hall, "temp", SECRET)
        token = hall.token = token_of(old)
        place, on_cluster = own_namespace(hall, "temp")
        job = hall.rest("jobs/", {**SMALL, "namespace": place, "command": "sleep 602", "stop_grace": "1s"})["id"]
        hall.wait_for(job, "running")
        delete_entry(slapd, dn)
        add_entry(slapd, "temp")
        new = Person(hall, "temp", SECRET)
        assert "temp" in new.get("/me/namespaces/")
        ((label,),) = hall.rows("SELECT username FROM accounts_user WHERE username LIKE 'temp-x%%' AND source = 'ldap'")
        assert on_cluster == "u-temp"
        fresh, fresh_on_cluster = own_namespace(hall, label)
        assert fresh != place and re.fullmatch(r"u-temp(-x[0-9a-f]{10})+", fresh_on_cluster)
        assert_as_if_it_never_was(new, job)
        assert job not in new.get("/api/v1/jobs/?user=temp") + new.get(f"/api/v1/jobs/?namespace={place}")
        assert "laptop" not in new.get("/me/tokens/")
        hall.token = token_of(new)
        assert hall.call("GET", f"jobs/{job}/")[0] == 404
        assert hall.call("POST", "jobs/", {**SMALL, "namespace": place, "command": "true"})[0] in (403, 404, 422)
        hall.token = token
        until(lambda: hall.call("GET", f"jobs/{job}/")[0] == 401, seconds=BOUND, what="the old token has ended")
        until(lambda: 'name="password"' in old.get("/me/namespaces/"), seconds=BOUND, what="the old session has ended")
    finally:
        delete_entry(slapd, dn)
        hall.token = admins
        hall.rest(f"jobs/{job}/cancel/", {"now": True})


def test_names_that_begin_alike_are_not_mixed_up(hall: Hall, slapd: Slapd) -> None:
    """R61: people, namespaces and groups called test1 and test11."""
    admins = hall.token
    names = ("test1", "test11")
    dns = [add_entry(slapd, name) for name in names]
    try:
        persons = [Person(hall, name, SECRET) for name in names]
        jobs = []
        for person, name in zip(persons, names, strict=True):
            hall.token = token_of(person)
            document = {**SMALL, "namespace": name, "command": "sleep 602", "stop_grace": "1s", "tags": [name]}
            jobs.append(hall.rest("jobs/", document)["id"])
            hall.wait_for(jobs[-1], "running")
        for person, other in zip(persons, reversed(jobs), strict=True):
            assert_as_if_it_never_was(person, other)
        hall.token = admins
        for name, job in zip(names, jobs, strict=True):
            for question in (f"user={name}", f"namespace={name}", f"tag={name}"):
                assert [one["id"] for one in hall.rest(f"jobs/?{question}")["results"]] == [job], question
        admin = Person(hall, "admin", (hall.data / "demo-password").read_text().strip())
        line = listen(hall, admin, "jobs?user=test1")  # an admin's list has both, but for what it asks
        hall.rest(f"jobs/{jobs[1]}/cancel/", {"now": True})
        hall.wait_for(jobs[1], "cancelled")
        assert hall.rest(f"jobs/{jobs[0]}/")["status"] == "running"
        assert not heard(line, "change", seconds=2)
        places = {path.name for path in (hall.data / "cluster").iterdir() if path.name.startswith("u-test1")}
        assert places == {"u-test1", "u-test11"}
        hall.rest(f"jobs/{jobs[0]}/cancel/", {"now": True})
        assert heard(line, "change", seconds=10)
    finally:
        for dn in dns:
            delete_entry(slapd, dn)
