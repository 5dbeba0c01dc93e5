"""A server before an API server that can be told to misbehave, and that counts what it is asked.

Plain HTTP on loopback for who asks, the admin's certificate towards the API server: what is said can be read, cut and left out.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: proxied
clusters: [{{name: proxied, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: nobody, user: {{token: none}}}}]
contexts: [{{name: proxied, context: {{cluster: proxied, user: nobody}}}}]
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as a witness that is not the portal saw it."""

    at: float
    method: str
    path: str
    query: dict[str, str]
    mode: str

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query


class ApiProxy:
    """`mode` is "pass" or one of FAULTS, for requests that begin and for streams that run; `only` limits it to some paths."""

    def __init__(self, target: int, pki: Path) -> None:
        self.target = target
        self.tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self.tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self.asked: list[Asked] = []
        self.retry_after = 0
        self.only = ""  # the end of the paths that are hurt; "": all
        self.chance = 0.05  # of an event to be lost while the mode is "drops events"
        self.lost = 0
        self.delay = 0.0
        self.mode = "pass"
        self._streams: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def kubeconfig(self, folder: Path) -> Path:
        path = folder / f"proxied-{self.port}.kubeconfig"
        path.write_text(KUBECONFIG.format(port=self.port))
        return path

    def be(self, mode: str, *, only: str = "") -> None:
        self.only, self.mode = only, mode

    def mode_for(self, path: str) -> str:
        return self.mode if path.endswith(self.only) else "pass"

    def cut(self) -> None:
        """Every connection ends at once, as when a machine or a balancer goes away."""
        for one in list(self._streams):
            with contextlib.suppress(OSError):  # its own thread was quicker
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self._server.shutdown()
        self._server.server_close()

    def since(self, at: float) -> list[Asked]:
        return [one for one in list(self.asked) if one.at >= at]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Either side may be gone at any moment: that is what this is for."""


def _status(code: int, reason: str, **details: Any) -> dict[str, Any]:
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
    return said | {"message": f"made by the proxy: {reason}", "details": details}


# What is answered instead of asking the server; each takes the query and says status, headers and body, or None to go on.
def _too_old_status(query: dict[str, str]) -> tuple[int, bytes] | None:
    return (410, json.dumps(_status(410, "Expired")).encode()) if "watch" in query else None


def _too_old_event(query: dict[str, str]) -> tuple[int, bytes] | None:
    event = {"type": "ERROR", "object": _status(410, "Expired")}
    return (200, json.dumps(event).encode() + b"\n") if "watch" in query else None


def _expired_page(query: dict[str, str]) -> tuple[int, bytes] | None:
    return (410, json.dumps(_status(410, "Expired")).encode()) if "continue" in query else None


def _ends_at_once(query: dict[str, str]) -> tuple[int, bytes] | None:
    return (200, b"") if "watch" in query else None


ANSWERS: dict[str, Callable[[dict[str, str]], tuple[int, bytes] | None]] = {
    "410 as status": _too_old_status,
    "410 as event": _too_old_event,
    "expired page": _expired_page,
    "ends at once": _ends_at_once,
    "429": lambda _query: (429, json.dumps(_status(429, "TooManyRequests")).encode()),
    "503": lambda _query: (503, b"no server is there"),
    "500": lambda _query: (500, json.dumps(_status(500, "InternalError")).encode()),
    "html": lambda _query: (200, b"<html><body>Sign in to the hotel's network</body></html>"),
    "half json": lambda _query: (200, b'{"kind": "PodList", "metadata": {"resourceVer'),
    "a list": lambda _query: (200, b"[1, 2, 3]"),
    "no metadata": lambda _query: (200, b'{"kind": "PodList", "items": [{}]}'),
    "strange event": lambda query: (200, b'{"type": 7, "object": null}\n') if "watch" in query else None,
}
STREAMS = ("silent", "half open", "cut mid-event", "drops events")
FAULTS = (*ANSWERS, *STREAMS)


def _handler(proxy: ApiProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            proxy._streams.add(self.connection)

        def finish(self) -> None:
            proxy._streams.discard(self.connection)
            super().finish()

        def log_message(self, *_args: Any) -> None:
            """The test reads `asked`."""

        def _any(self) -> None:
            split = urlsplit(self.path)
            query = {key: values[-1] for key, values in parse_qs(split.query).items()}
            mode = proxy.mode_for(split.path)
            proxy.asked.append(Asked(time.monotonic(), self.command, split.path, query, mode))
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            if mode == "silent":
                while proxy.mode_for(split.path) == "silent":
                    time.sleep(0.1)
                self.close_connection = True
                return
            made = ANSWERS[mode](query) if mode in ANSWERS else None
            if made is None:
                self._forward(split.path, query, body)
                return
            self.send_response(made[0])
            if proxy.retry_after:
                self.send_header("Retry-After", str(proxy.retry_after))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(made[1])))
            self.end_headers()
            self.wfile.write(made[1])

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _any  # noqa: N815

        def _forward(self, path: str, query: dict[str, str], body: bytes | None) -> None:
            upstream = http.client.HTTPSConnection("127.0.0.1", proxy.target, context=proxy.tls, timeout=60)
            headers = {"Accept": "application/json"}
            if body is not None:
                headers["Content-Type"] = self.headers["Content-Type"]
            try:
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
            except OSError:
                self.close_connection = True
                return
            with contextlib.closing(upstream):
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                if "watch" not in query:
                    content = answer.read()
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                    return
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in self._lines(answer, path):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                    self.wfile.flush()
                if not self.close_connection:
                    self.wfile.write(b"0\r\n\r\n")

        def _lines(self, answer: http.client.HTTPResponse, path: str) -> Iterator[bytes]:
            try:
                while line := answer.readline():
                    mode = proxy.mode_for(path)
                    while proxy.mode_for(path) in ("silent", "half open"):
                        time.sleep(0.1)  # the connection stays open, and nothing comes any more
                    if mode in ("silent", "half open"):
                        self.close_connection = True
                        return
                    if mode == "cut mid-event":
                        self.close_connection = True
                        yield line[: len(line) // 2]
                        self.connection.shutdown(socket.SHUT_RDWR)
                        return
                    if mode == "drops events" and random.random() < proxy.chance:
                        proxy.lost += 1
                        continue
                    if proxy.delay:
                        time.sleep(proxy.delay)
                    yield line
            except (OSError, http.client.HTTPException):
                self.close_connection = True  # the server was killed

    return Handler
