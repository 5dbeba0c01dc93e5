"""A real directory for tests: slapd with the people of the demo, on loopback, with StartTLS and ldaps by a CA of its own.

Without slapd or the extra these tests are skipped, and say so; under CI=true they are mandatory.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from accounts.directory import Directory, read_search
from portal.embedded import demo_people
from portal.embedded.slapd import ADMIN_DN, READER_DN, SUFFIX, Slapd, is_installed
from tests.ports import free_port

SECRET = "opens the lab"
READER_SECRET = "only reads"
HAS_PARTS = is_installed() and importlib.util.find_spec("django_auth_ldap") is not None
BACKENDS = ["accounts.ldap.backend.DirectoryBackend", "accounts.auth.LocalBackend"]
GROUPS = f"ou=groups,{SUFFIX}?cn?sub?(|(objectClass=groupOfNames)(objectClass=posixGroup))"


def needs_directory() -> None:
    if HAS_PARTS:
        return
    words = "needs slapd and requirements/ldap.txt"
    if os.environ.get("CI") == "true":
        pytest.fail(f"Under CI this is mandatory: {words}.")
    pytest.skip(words)


@pytest.fixture(scope="session")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    needs_directory()
    folder = tmp_path_factory.mktemp("slapd")
    server = Slapd(folder, port=free_port(), tls=certificate(folder, "127.0.0.1"), tls_port=free_port())
    server.prepare(demo_people.entries(SECRET, reader_password=READER_SECRET))
    server.start()
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


@pytest.fixture
def directory(slapd: Slapd, settings: Any) -> Iterator[Slapd]:
    """The portal uses the directory; what a test changes in it is put back by the test (`changed`)."""
    from accounts.ldap.connection import silence

    settings.AUTHENTICATION_BACKENDS = BACKENDS
    settings.DIRECTORY = known(slapd.url)
    silence.ends()
    yield slapd
    silence.ends()


def known(url: str, **more: Any) -> Directory:
    told: dict[str, Any] = {
        "url": url,
        "bind_dn": READER_DN,
        "bind_password": READER_SECRET,
        "people": read_search(f"ou=people,{SUFFIX}?uid?sub?(objectClass=inetOrgPerson)", attribute="uid"),
        "groups": read_search(GROUPS, attribute="cn"),
        "ca_file": "",
        "tls": "off",
        "patience": 2,
    }
    return Directory(**{**told, **more})


@contextmanager
def as_admin(server: Slapd) -> Iterator[Any]:
    import ldap

    connection = ldap.initialize(server.url)
    connection.simple_bind_s(ADMIN_DN, server.admin_password)
    try:
        yield connection
    finally:
        connection.unbind_s()


@contextmanager
def changed(server: Slapd, dn: str, attribute: str, value: str, *, add: bool) -> Iterator[None]:
    """One value more or less for the length of a test."""
    import ldap

    there, back = (ldap.MOD_ADD, ldap.MOD_DELETE) if add else (ldap.MOD_DELETE, ldap.MOD_ADD)
    with as_admin(server) as connection:
        connection.modify_s(dn, [(there, attribute, value.encode())])
    try:
        yield
    finally:
        with as_admin(server) as connection:
            connection.modify_s(dn, [(back, attribute, value.encode())])


def binds(server: Slapd) -> int:
    """How many binds the directory has finished, by its own count."""
    import ldap

    connection = ldap.initialize(server.url)
    connection.simple_bind_s(READER_DN, READER_SECRET)
    try:
        place = "cn=Bind,cn=Operations,cn=Monitor"
        (_dn, values), *_rest = connection.search_s(place, ldap.SCOPE_BASE, attrlist=["monitorOpCompleted"])
        return int(values["monitorOpCompleted"][0])
    finally:
        connection.unbind_s()


@contextmanager
def black_hole() -> Iterator[int]:
    """A port where somebody takes the connection and never says a word."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        over = threading.Event()

        def take() -> None:
            while not over.is_set():
                try:
                    taken.append(listener.accept()[0])
                except TimeoutError:
                    continue

        thread = threading.Thread(target=take)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            over.set()
            thread.join()
            for one in taken:
                one.close()


@contextmanager
def slowed(port: int, *, delay: float = 0.0, drip: float = 0.0) -> Iterator[int]:
    """A port that leads to another, where every answer comes later, or byte by byte, so many seconds apart."""
    over = threading.Event()
    opened: list[socket.socket] = []

    def carry(one: socket.socket, other: socket.socket, *, is_answer: bool) -> None:
        try:
            while piece := one.recv(65536):
                if is_answer and delay:
                    over.wait(delay)
                    with suppress(BlockingIOError):  # the rest of the answer, where it came in pieces
                        piece += one.recv(1 << 20, socket.MSG_DONTWAIT)
                for part in [piece[at : at + 1] for at in range(len(piece))] if is_answer and drip else [piece]:
                    other.sendall(part)
                    over.wait(drip)
        except OSError:
            pass  # whoever is at the other end hears of it below
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def take(listener: socket.socket) -> None:
        while not over.is_set():
            try:
                near = listener.accept()[0]
            except TimeoutError:
                continue
            far = socket.create_connection(("127.0.0.1", port))
            opened.extend((near, far))
            for one, other, is_answer in ((near, far, False), (far, near, True)):
                threading.Thread(target=carry, args=(one, other), kwargs={"is_answer": is_answer}, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=take, args=(listener,))
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            over.set()
            thread.join()
            for one in opened:
                one.close()


def certificate(folder: Path, address: str) -> tuple[Path, Path, Path]:
    """A certificate for an address, its key, and the CA that signed it."""
    now = datetime.now(UTC)
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Test CA")])

    def begin(name: x509.Name, public: Any) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(authority_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=30))
        )

    is_authority = x509.BasicConstraints(ca=True, path_length=None)
    authority = begin(authority_name, authority_key.public_key()).add_extension(is_authority, critical=True)
    whose = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, address)])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
    ours = begin(whose, key.public_key()).add_extension(names, critical=False)
    paths = (folder / "server.pem", folder / "server.key", folder / "ca.pem")
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for path, content in zip(
        paths,
        (
            ours.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
            private,
            authority.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        ),
        strict=True,
    ):
        path.write_bytes(content)
    return paths
