"""The wire to the directory: time and TLS are ours, and libldap speaks into one end of a socket pair.

libldap's handshake, built on GnuTLS, knows no time-out at all, and its time-outs elsewhere are for one call each: a directory
that answers each call just in time, or byte by byte, or whose name is not found, would hold a request for as long as it likes
(measured with libldap 2.5.13). So a thread opens the connection, checks the certificate and carries the bytes; when the time
is over it hangs up, whatever libldap waits for.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from concurrent.futures import Future
from threading import Thread
from urllib.parse import urlsplit

from accounts.deadline import Deadline
from accounts.directory import Directory

PORTS = {"ldap": 389, "ldaps": 636}
# RFC 4511 4.12 and 4.14.1: message 1, an extended request with the OID of StartTLS
START_TLS = bytes.fromhex("301d02010177188016") + b"1.3.6.1.4.1.1466.20037"
SUCCESS = b"\x0a\x01\x00"  # the result code of an answer, which comes before anything else in it
CHUNK = 65_536
AVOIDED = 30.0  # seconds in which an address that failed is tried after the others

_failed_at: dict[str, float] = {}


def open_wire(directory: Directory, deadline: Deadline) -> socket.socket:
    """Our end of a connection to the first of the directory's addresses that opens. Raise OSError."""
    ours, theirs = socket.socketpair()
    opened: Future[None] = Future()
    Thread(target=_carry, args=(directory, theirs, deadline, opened), name="wire", daemon=True).start()
    try:
        opened.result(deadline.left())
    except BaseException:
        ours.close()
        raise
    return ours


def _carry(directory: Directory, inside: socket.socket, deadline: Deadline, opened: Future[None]) -> None:
    with inside:
        try:
            outside = _opened(directory, deadline)
        except BaseException as error:  # whatever it was, who waits must hear of it
            opened.set_exception(error)
            return
        opened.set_result(None)
        # who reads at either end finds it closed, which says all that can be said
        with outside, contextlib.suppress(OSError):
            _exchange(inside, outside, deadline)


def _opened(directory: Directory, deadline: Deadline) -> socket.socket:
    urls = sorted(directory.url.split(), key=lambda url: time.monotonic() - _failed_at.get(url, -AVOIDED) < AVOIDED)
    failure = OSError(f"no address in {directory.url!r}")
    for number, url in enumerate(urls):
        try:
            share = Deadline(min(directory.patience, deadline.left() / (len(urls) - number)))
            found = _door(url, directory, share)
        except OSError as error:  # ssl.SSLError is one
            _failed_at[url] = time.monotonic()
            failure = error
        else:
            _failed_at.pop(url, None)
            return found
    raise failure


def _door(url: str, directory: Directory, deadline: Deadline) -> socket.socket:
    parts = urlsplit(url)
    host = parts.hostname or "localhost"
    plain = socket.create_connection((host, parts.port or PORTS[parts.scheme]), timeout=deadline.left())
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if directory.tls == "off":
            return plain
        if directory.tls == "start":
            plain.settimeout(deadline.left())
            plain.sendall(START_TLS)
            if SUCCESS not in _message(plain, deadline):
                raise OSError("it refuses StartTLS")
        plain.settimeout(deadline.left())
        context = ssl.create_default_context(cafile=directory.ca_file or None)
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def _message(plain: socket.socket, deadline: Deadline) -> bytes:
    """One whole answer, and not a byte of the handshake that follows it."""
    head = _bytes(plain, 2, deadline)
    size = head[1]
    if size >= 0x80:  # BER: so many bytes of length follow
        size = int.from_bytes(_bytes(plain, size & 0x7F, deadline))
    if size > CHUNK:
        raise OSError("it does not speak LDAP")
    return _bytes(plain, size, deadline)


def _bytes(plain: socket.socket, count: int, deadline: Deadline) -> bytes:
    found = b""
    while len(found) < count:
        plain.settimeout(deadline.left())
        piece = plain.recv(count - len(found))
        if not piece:
            raise OSError("it hung up")
        found += piece
    return found


def _exchange(inside: socket.socket, outside: socket.socket, deadline: Deadline) -> None:
    """Bytes both ways, until one side hangs up or the time is over."""
    ears = select.poll()
    ears.register(inside, select.POLLIN)
    ears.register(outside, select.POLLIN)
    while True:
        # what TLS has unpacked already, no poll tells of
        waiting = outside.pending() if isinstance(outside, ssl.SSLSocket) else 0
        ready = {number for number, _event in ears.poll(0 if waiting else 1000 * deadline.left())}
        if not ready and not waiting:
            return
        if inside.fileno() in ready and not _pass_on(inside, outside, deadline):
            return
        if (waiting or outside.fileno() in ready) and not _pass_on(outside, inside, deadline):
            return


def _pass_on(one: socket.socket, other: socket.socket, deadline: Deadline) -> bool:
    one.setblocking(False)
    try:
        piece = one.recv(CHUNK)
    except (BlockingIOError, ssl.SSLWantReadError):
        return True  # a part of a record, or one that is not for us
    if piece:
        other.settimeout(deadline.left())
        other.sendall(piece)
    return bool(piece)
