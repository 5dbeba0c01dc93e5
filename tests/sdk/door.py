"""The portal's ingest door, as far as the SDK can tell: a real server on loopback that can also be slow, broken or gone."""

from __future__ import annotations

import gzip
import json
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Door:
    """Keeps each batch once; `answer` says how it behaves: "ok", a status such as 500, "garbage", or "slow"."""

    def __init__(self) -> None:
        self.answer: str | int = "ok"
        self.headers: dict[str, str] = {}
        self.interval_ms = 200
        self.requests: list[dict[str, Any]] = []
        self.batches: dict[str, dict[str, Any]] = {}
        self.arrivals: list[float] = []
        self.changed = threading.Condition()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True

    def __enter__(self) -> Door:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def series(self) -> dict[tuple[int, str], dict[int, float]]:
        """(rank, key) to the points by their steps."""
        found: dict[tuple[int, str], dict[int, float]] = {}
        for batch in self.batches.values():
            for one in batch["series"]:
                points = found.setdefault((batch["rank"], one["key"]), {})
                points.update(zip(one["step"], map(float, one["value"]), strict=True))
        return found

    def distributions(self) -> list[dict[str, Any]]:
        return [one for batch in self.batches.values() for one in batch.get("distributions", [])]

    def wait_for(self, count: int, seconds: float = 20) -> None:
        """Until so many requests have come."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, seconds), f"only {len(self.requests)}"

    def take(self, headers: Any, body: bytes) -> tuple[int, bytes]:
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        batch = json.loads(body, parse_constant=_refuse)
        with self.changed:
            self.requests.append({"headers": dict(headers), "batch": batch})
            self.arrivals.append(time.monotonic())
            self.changed.notify_all()
        if self.answer == "slow":
            time.sleep(60)
        if isinstance(self.answer, int):
            error = {"code": "no", "message": "The door says no.", "fields": {}}
            return self.answer, json.dumps({"error": error}).encode()
        repeated = batch["batch"] in self.batches
        self.batches.setdefault(batch["batch"], batch)
        if self.answer == "garbage":
            return 200, b"<html>hello"
        return 200, json.dumps(
            {
                "batch": batch["batch"],
                "accepted": sum(len(one["step"]) for one in batch["series"]),
                "repeated": repeated,
                "refused": [],
                "refused_count": 0,
                "interval_ms": self.interval_ms,
            }
        ).encode()

    def _handler(door) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler below
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                assert self.path == "/api/v1/jobs/b2c3d4f5g6/ingest/"
                status, body = door.take(self.headers, self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(status)
                for name, value in {**door.headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_words: object) -> None:
                return

        return Handler


def _refuse(word: str) -> float:
    raise AssertionError(f"{word} is not strict JSON")


def same(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))
