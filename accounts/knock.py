"""Knocking at the directory's door before libldap does: its TLS handshake, built on GnuTLS, knows no time-out at all.

A peer that takes the connection and then says nothing would hold a request for ever, whatever OPT_NETWORK_TIMEOUT says (measured
with libldap 2.5.13; StartTLS and ldaps alike). So a connection of our own, with a time-out, shows that the door opens.
"""

from __future__ import annotations

import socket
import ssl
import time
from urllib.parse import urlsplit

from accounts.directory import Directory

PORTS = {"ldap": 389, "ldaps": 636}
# RFC 4511 4.12 and 4.14.1: message 1, an extended request with the OID of StartTLS
START_TLS = bytes.fromhex("301d02010177188016") + b"1.3.6.1.4.1.1466.20037"
SUCCESS = b"\x0a\x01\x00"  # the result code of an answer, which comes before anything else in it


def door_that_opens(directory: Directory) -> str:
    """The first of the directory's URLs that answers in time, with a certificate that holds. Raise OSError."""
    failure: OSError | None = None
    for url in directory.url.split():
        try:
            _knock(url, directory)
        except OSError as error:  # ssl.SSLError is one
            failure = error
        else:
            return url
    raise failure or OSError(f"no address in {directory.url!r}")


def _knock(url: str, directory: Directory) -> None:
    parts = urlsplit(url)
    host = parts.hostname or "localhost"
    deadline = time.monotonic() + directory.patience
    with socket.create_connection((host, parts.port or PORTS[parts.scheme]), timeout=directory.patience) as plain:
        if directory.tls == "off":
            return
        if directory.tls == "start":
            plain.sendall(START_TLS)
            plain.settimeout(_left(deadline))
            if SUCCESS not in plain.recv(4096):
                raise OSError("it refuses StartTLS")
        plain.settimeout(_left(deadline))
        context = ssl.create_default_context(cafile=directory.ca_file or None)
        with context.wrap_socket(plain, server_hostname=host):
            return


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
