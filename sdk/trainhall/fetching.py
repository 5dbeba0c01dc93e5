"""The code archive, from the portal by its signed address, checked by its digest."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import time
import urllib.parse

from trainhall.setup import SetupError

TRIES = 6  # some 25 s in all: a portal that restarts is no reason to fail a job
TIMEOUT = 30.0
PAUSE = 1.0
LONGEST_PAUSE = 10.0
MOST_BYTES = 512 * 2**20


class _Passing(Exception):
    """Another try may help."""


def fetch(url: str, sha256: str, folder: str) -> str:
    """Download into a temporary file in the folder; returns its path. Raise SetupError, never showing the signature."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError("the address of the code is not one of a web server: {}.".format(shown(url)))
    handle, path = tempfile.mkstemp(prefix=".trainhall-code-", dir=folder)
    os.close(handle)
    try:
        _fetch_with_retries(url, path)
        found = _digest(path)
        if sha256 and found != sha256.lower():
            raise SetupError("the code has the digest {}, not {} as it should: it is damaged.".format(found, sha256))
    except BaseException:
        os.unlink(path)
        raise
    return path


def shown(url: str) -> str:
    """The address without its signature, which is a credential."""
    parts = urllib.parse.urlsplit(url)
    port = ":{}".format(parts.port) if parts.port else ""
    return "{}://{}{}{}".format(parts.scheme, parts.hostname, port, parts.path)


def _fetch_with_retries(url: str, path: str) -> None:
    for attempt in range(TRIES):
        try:
            _fetch_once(url, path)
            return
        except (_Passing, OSError, http.client.HTTPException) as error:
            if attempt == TRIES - 1:
                words = str(error) or type(error).__name__
                raise SetupError(
                    "the code cannot be fetched from {}, tried {} times: {}.".format(shown(url), TRIES, words)
                ) from None
        time.sleep(min(LONGEST_PAUSE, PAUSE * 2**attempt))


def _fetch_once(url: str, path: str) -> None:
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(str(parts.hostname), parts.port, timeout=TIMEOUT)
    try:
        connection.request("GET", (parts.path or "/") + ("?" + parts.query if parts.query else ""))
        response = connection.getresponse()
        if response.status >= 500 or response.status == 429:
            raise _Passing("the portal answered {}".format(response.status))
        if response.status != 200:
            raise SetupError(
                "the code cannot be fetched from {}: the portal answered {}.".format(shown(url), response.status)
            )
        _save(response, path)
    finally:
        connection.close()


def _save(response: http.client.HTTPResponse, path: str) -> None:
    size = 0
    with open(path, "wb") as file:
        while True:
            piece = response.read(2**20)
            if not piece:
                break
            size += len(piece)
            if size > MOST_BYTES:
                raise SetupError("the code is larger than {} MiB.".format(MOST_BYTES // 2**20))
            file.write(piece)
    promised = response.getheader("Content-Length")
    if promised and promised.isdigit() and size != int(promised):
        raise _Passing("the connection ended after {} of {} bytes".format(size, promised))


def _digest(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(2**20), b""):
            found.update(piece)
    return found.hexdigest()
