"""An API server of one kind of object, which lists in pages and is watched as a test wants it. Plain HTTP on loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes.client import ApiClient, Configuration

from jobs.cluster.kubernetes.client import Api
from jobs.cluster.kubernetes.setting import Users

PATH = "/api/v1/pods"


class ListingServer:
    """Everything under one lock; a page or the news wait until the test opens them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.history: list[tuple[str, dict[str, Any]]] = []
        self.lost: set[int] = set()  # places in the history of what no watch is told
        self.lists: list[float] = []  # when each was begun
        self.watches = 0
        self.pages = threading.Event()  # shut: a list stands still behind its first page
        self.news = threading.Event()  # shut: watches stand still
        self.pages.set()
        self.news.set()
        self.waiting = 0  # lists that stand still
        self.fails_page = ""  # "410" or "500" for every page but the first
        self._cuts = 0  # times that all watches were ended
        self._snapshots: dict[str, list[dict[str, Any]]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def api(self) -> Api:
        configuration = Configuration()
        configuration.host = f"http://127.0.0.1:{self._server.server_address[1]}"
        configuration.retries = False
        return Api(ApiClient(configuration), Users())

    def close(self) -> None:
        self.pages.set()
        self.news.set()
        self.cut()
        self._server.shutdown()
        self._server.server_close()

    def put(self, uid: str, *, lost: bool = False) -> None:
        with self.lock:
            self.version += 1
            kind = "MODIFIED" if uid in self.objects else "ADDED"
            self.objects[uid] = self._item(uid)
            self._tell(kind, uid, lost=lost)

    def delete(self, uid: str, *, lost: bool = False, phase: str = "") -> None:
        with self.lock:
            self.version += 1
            self.objects[uid] = self._item(uid) | {"status": {"phase": phase}}
            self._tell("DELETED", uid, lost=lost)
            del self.objects[uid]

    def _item(self, uid: str) -> dict[str, Any]:
        return {"metadata": {"uid": uid, "name": uid, "resourceVersion": str(self.version)}}

    def _tell(self, kind: str, uid: str, *, lost: bool) -> None:
        if lost:
            self.lost.add(len(self.history))
        self.history.append((kind, self.objects[uid]))

    @property
    def versions(self) -> dict[str, str]:
        with self.lock:
            return {uid: one["metadata"]["resourceVersion"] for uid, one in self.objects.items()}

    def cut(self) -> None:
        """Every watch that runs ends in the middle of a word."""
        self._cuts += 1

    # What is answered

    def page(self, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if token := query.get("continue"):
            self.waiting += 1
            self.pages.wait()
            self.waiting -= 1
            if self.fails_page:
                return int(self.fails_page), {"kind": "Status", "code": int(self.fails_page), "message": "by the test"}
            version, items = token, self._snapshots[token]
        else:
            with self.lock:
                self.lists.append(time.monotonic())
                version, items = str(self.version), list(self.objects.values())
        limit = int(query["limit"])
        self._snapshots[version] = items[limit:]
        metadata = {"resourceVersion": version} | ({"continue": version} if items[limit:] else {})
        return 200, {"metadata": metadata, "items": items[:limit]}

    def events(self, query: dict[str, str]) -> Iterator[bytes]:
        """From the version on, until its time is over. One that is cut says so by half an event."""
        end, cuts = time.monotonic() + int(query["timeoutSeconds"]), self._cuts
        since, place = int(query["resourceVersion"]), 0
        self.watches += 1
        while time.monotonic() < end:
            if self._cuts != cuts:
                yield b'{"type": "MODI'
                return
            if self.news.is_set():
                with self.lock:
                    some, first = self.history[place:], place
                place += len(some)
                for number, (kind, one) in enumerate(some, start=first):
                    if int(one["metadata"]["resourceVersion"]) > since and number not in self.lost:
                        yield json.dumps({"type": kind, "object": one}).encode() + b"\n"
            time.sleep(0.01)


def _handler(server: ListingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_args: Any) -> None:
            """Nobody reads it."""

        def do_GET(self) -> None:
            query = {key: values[-1] for key, values in parse_qs(urlsplit(self.path).query).items()}
            if "watch" in query:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in server.events(query):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.write(b"0\r\n\r\n")
                return
            status, said = server.page(query)
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


@contextmanager
def listing_server(*uids: str) -> Iterator[ListingServer]:
    server = ListingServer()
    for uid in uids:
        server.put(uid)
    try:
        yield server
    finally:
        server.close()
