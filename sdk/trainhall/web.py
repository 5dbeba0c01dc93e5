"""One keep-alive connection to the portal. Never follows a redirect: it would take the token to another address."""

from __future__ import annotations

import http.client
import socket
import urllib.parse
from typing import Any, Dict, NamedTuple, Optional

LONGEST_TOKEN = 4096
LONGEST_ANSWER = 64 * 2**20


class Answer(NamedTuple):
    status: int
    headers: Any
    body: bytes


class BadAddress(ValueError):
    """The address of the portal cannot be one."""


def is_sendable(token: str) -> bool:
    """Whether it can stand in a header; else http.client would raise, and show it."""
    return bool(token) and len(token) <= LONGEST_TOKEN and token.isascii() and token.isprintable()


def connect(base: str, timeout: float) -> http.client.HTTPConnection:
    """A connection to the host of an address, not opened yet."""
    parts = urllib.parse.urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadAddress("{!r} is not an address such as https://portal.example.org.".format(base))
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname, parts.port, timeout=timeout)


class Web:
    """Requests below one base address. An OSError or http.client.HTTPException means that no answer came."""

    def __init__(self, base: str, timeout: float) -> None:
        self._connection = connect(base, timeout)
        self.base = base.rstrip("/")
        self.timeout = timeout
        self._prefix = urllib.parse.urlsplit(base).path.rstrip("/")

    def request(
        self,
        method: str,
        path: str,
        body: Optional[bytes] = None,
        headers: Optional[Dict[str, str]] = None,
        timeout: Optional[float] = None,
        repeatable: bool = True,
    ) -> Answer:
        """Ask once; where an idle connection turns out to be closed and asking twice is harmless, on a new one."""
        reused = self._connection.sock is not None
        self._set_timeout(self.timeout if timeout is None else timeout)
        try:
            return self._exchange(method, path, body, headers)
        except (http.client.RemoteDisconnected, ConnectionError):
            self.close()
            if not (reused and repeatable):
                raise
            return self._exchange(method, path, body, headers)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def interrupt(self) -> None:
        """From another thread: end a request in flight."""
        sock = self._connection.sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # already closed by the other side

    def _exchange(self, method: str, path: str, body: Optional[bytes], headers: Optional[Dict[str, str]]) -> Answer:
        self._connection.request(method, self._prefix + path, body=body, headers=headers or {})
        response = self._connection.getresponse()
        content = response.read(LONGEST_ANSWER)
        if not response.isclosed():
            self.close()
        return Answer(response.status, response.headers, content)

    def _set_timeout(self, seconds: float) -> None:
        self._connection.timeout = seconds
        if self._connection.sock is not None:
            self._connection.sock.settimeout(seconds)
