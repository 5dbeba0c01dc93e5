"""F28 for the directory: its secrets and what people type to sign in, at DEBUG, with all going wrong that can."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest

from portal.embedded import demo_people
from portal.embedded.demo_people import PEOPLE, hashed
from portal.embedded.slapd import Slapd
from tests.chaos.hall import Hall
from tests.chaos.person import Person
from tests.chaos.test_canaries import Listener, redis_url
from tests.directory import as_admin, black_hole, certificate, needs_directory, slowed
from tests.ports import free_port

pytestmark = pytest.mark.chaos


def canary(name: str) -> str:
    return f"canary-{name}-{os.urandom(6).hex()}"


SECRETS = {
    name: canary(name)
    for name in (
        "bind",
        "bad-bind",
        "password",
        "changed",
        "wrong",
        "as-a-name",
        "as-both",
        "odd",
        "while-away",
        "key-path",
    )
}


@pytest.fixture(scope="module")
def slapd_of_secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    needs_directory()
    folder = tmp_path_factory.mktemp(
        SECRETS["key-path"]
    )  # in the paths of the certificate, its key and slapd's own files
    server = Slapd(folder, port=free_port(), tls=certificate(folder, "127.0.0.1"), tls_port=free_port())
    server.prepare(demo_people.entries(SECRETS["password"], reader_password=SECRETS["bind"]))
    server.start()
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


class Witness:
    """Everything one portal wrote, said and kept."""

    def __init__(self, hall: Hall) -> None:
        self.hall = hall
        self.listener = Listener(redis_url(hall))
        self.persons: list[Person] = []

    def person(self, name: str, password: str) -> Person:
        """Somebody at the form, which keeps what they typed as a name, so that they can correct it, and tells nobody else."""
        person = Person(self.hall, name, password)
        person.seen = [body.replace(escape(name), "") for body in person.seen]
        self.persons.append(person)
        return person

    def places(self) -> dict[str, str]:
        hall = self.hall
        tables = hall.rows("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
        dump = [str(row[0]) for (table,) in tables for row in hall.rows(f"SELECT t::text FROM {table} t")]
        logs = {path: path.read_text(errors="replace") for path in hall.data.rglob("*.log") if path.is_file()}
        assert any("DEBUG" in text for text in logs.values())
        return {
            "the database": "\n".join(dump),
            "Valkey": self.listener.end(),
            "pages and REST": "\n".join(body for person in self.persons for body in person.seen),
            **{f"the log {path.name}": text for path, text in logs.items()},
        }


def found_in(places: dict[str, str], more: dict[str, str]) -> list[str]:
    planted = {**SECRETS, **more}
    return [f"{name} in {place}" for name, value in planted.items() for place, text in places.items() if value in text]


def running(folder: Path, server: Slapd, **more: str) -> Hall:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "data" / "demo-password").write_text("printed-as-promised")
    extra = {
        **server.environment(SECRETS["bind"]),
        "LDAP_TLS": "start",
        "LDAP_CA_FILE": str(server.tls[2]) if server.tls else "",
        "LDAP_SYNC_SECONDS": "5",
        "TRAINHALL_LOG_LEVEL": "DEBUG",
        "TRAINHALL_DEMO_PASSWORD": "printed-as-promised",
        **more,
    }
    hall = Hall(folder / "data", extra=extra, token="not made yet")
    hall.start()
    hall.token = hall.manage("create_token", "admin").stdout.strip()
    return hall


def looked_at(admin: Person) -> None:
    """What an admin reads of it: the pages, their test box, the preview, REST."""
    for path in (
        "/admin/access/",
        "/admin/users/",
        "/audit/",
        "/status/",
        "/metrics",
        "/api/v1/audit/",
        "/api/v1/sync/",
        "/api/v1/group-mappings/",
    ):
        admin.get(path)
    for typed in ("alice", "odd", SECRETS["as-a-name"][:3]):
        admin.get(f"/admin/access/?test={typed}")
    for fields in ({"dry": "yes"}, {}):
        admin.post("/admin/access/sync/", **fields)


def test_no_secret_of_a_directory_is_anywhere(folder: Path, slapd_of_secrets: Slapd) -> None:
    server = slapd_of_secrets
    odd = f"uid=odd,{PEOPLE}"
    values = {"uid": b"odd", "cn": b"odd", "sn": b"x", "userPassword": hashed(SECRETS["odd"]).encode()}
    # bytes that are no text, a description that is a script, values that are numbers in name only
    weird = {
        "displayName": "\u202e<script>odd</script>".encode(),
        "jpegPhoto": b"\xff\xd8\xff\x00",
        "mail": b"not@a@mail\x01",
    }
    with as_admin(server) as directory:
        directory.add_s(odd, [("objectClass", b"inetOrgPerson"), *values.items(), *weird.items()])
    hall = running(folder, server)
    try:
        witness = Witness(hall)
        alice = witness.person("alice", SECRETS["password"])
        token = re.search(r"th_\w+", alice.post("/me/tokens/", name="laptop", scope="read", days=1))
        assert token
        alice.seen.pop()  # which shows the new token, this once
        witness.person("odd", SECRETS["odd"])
        witness.person("bob", SECRETS["wrong"])
        witness.person(SECRETS["as-a-name"], "x")
        witness.person(f" {SECRETS['as-a-name']} ", SECRETS["password"])
        witness.person(SECRETS["as-both"], SECRETS["as-both"])
        witness.person(f"{SECRETS['as-both']})(uid=*", SECRETS["as-both"])
        witness.person(f"alice{SECRETS['password']}", "")
        # the directory's own words about a password that is refused
        with as_admin(server) as directory:
            directory.passwd_s(f"uid=alice,{PEOPLE}", None, SECRETS["changed"])
        witness.person("alice", SECRETS["password"])
        witness.person("alice", SECRETS["changed"])
        admin = witness.person("admin", "printed-as-promised")
        looked_at(admin)
        assert server.process is not None
        server.stop()
        witness.person("alice", SECRETS["while-away"])
        witness.person(SECRETS["as-a-name"], SECRETS["while-away"])
        looked_at(admin)
        time.sleep(6)  # a pass that finds nobody at home
        server.start()
        server.wait_ready()
        more = {"user token": token.group(), "admin's token": hall.token}
        places = witness.places()
        assert "Connection refused" in "".join(places.values())
        assert not found_in(places, more)
    finally:
        hall.kill_all()
        with as_admin(server) as directory:
            directory.delete_s(odd)


BROKEN = ("a wrong bind password", "a name the certificate has not", "an authority unknown", "silence", "drops")


@pytest.mark.parametrize("what", BROKEN)
def test_no_secret_is_in_what_a_broken_directory_makes_the_portal_say(
    folder: Path, slapd_of_secrets: Slapd, tmp_path: Path, what: str
) -> None:
    server = slapd_of_secrets
    assert server.tls is not None
    with black_hole() as nobody, slowed(server.port, drip=0.05) as dripping:
        told = {
            "a wrong bind password": {"LDAP_BIND_PASSWORD": SECRETS["bad-bind"]},
            "a name the certificate has not": {"LDAP_URL": server.url.replace("127.0.0.1", "localhost")},
            "an authority unknown": {"LDAP_CA_FILE": str(certificate(tmp_path, "127.0.0.1")[2])},
            "silence": {"LDAP_URL": f"ldap://127.0.0.1:{nobody}"},
            "drops": {"LDAP_URL": f"ldap://127.0.0.1:{dripping}"},
        }[what]
        hall = running(folder, server, **told)
        try:
            witness = Witness(hall)
            for name, password in (("alice", "password"), ("bob", "wrong"), (SECRETS["as-a-name"], "while-away")):
                answer = witness.person(name, SECRETS[password]).seen[-1]
                assert "The directory does not answer" in answer, answer
            looked_at(witness.person("admin", "printed-as-promised"))
            time.sleep(6)
            places = witness.places()
            assert any("cannot be asked" in text for place, text in places.items() if place.startswith("the log"))
            assert not found_in(places, {"admin's token": hall.token})
        finally:
            hall.kill_all()
