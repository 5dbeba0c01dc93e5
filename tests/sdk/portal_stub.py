"""The portal's REST as the client sees it: a real server on loopback that speaks the documented shapes."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "th_alice"


class Portal:
    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.by_key: dict[str, str] = {}
        self.lines: dict[str, list[dict[str, Any]]] = {}
        self.requests: list[dict[str, Any]] = []
        self.uploads: dict[str, bytes] = {}
        self.script: list[dict[str, Any]] = []  # what a job becomes, each time it is looked at
        self.lose_answers = 0  # so many answers to POST are cut off after the work was done
        self.busy = 0  # so many requests are answered 503
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True

    def __enter__(self) -> Portal:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def add_job(self, **fields: Any) -> dict[str, Any]:
        number = len(self.jobs)
        job = {
            "id": f"b2c3d4f5g{number}",
            "name": "digits",
            "namespace": "vision",
            "user": "alice",
            "status": "queued",
            "reason": {"code": "WaitingForGpus", "text": "Waits for 2 GPUs; 1 is free."},
            "attempt": 1,
            "resources": {"workers": 1, "gpus": 2, "total_gpus": 2},
            "workers": [],
            "progress": None,
            "headline": {},
            "exit_code": None,
            "created_at": "2026-01-01T00:00:00Z",
            "version": 1,
            **fields,
        }
        job["url"] = f"{self.url}/jobs/{job['id']}/"
        self.jobs[job["id"]] = job
        self.lines[job["id"]] = []
        return job

    def say(self, job: dict[str, Any], *texts: str, worker: str = "worker-0") -> None:
        lines = self.lines[job["id"]]
        for text in texts:
            seq = len(lines) + 1
            lines.append({"attempt": 1, "worker": worker, "seq": seq, "time": 1767225600.0, "text": text})

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        self.requests.append({"method": method, "path": path, "headers": dict(headers), "body": body})
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, _error("not_authenticated", "This token is not known.")
        if self.busy:
            self.busy -= 1
            return 503, _error("busy", "Starting.")
        parts = urlsplit(path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        route = parts.path.removeprefix("/api/v1/")
        if match := re.fullmatch(r"jobs/([^/]+)/(\w*)/?", route):
            return self._job(method, match[1], match[2], query, body)
        match method, route:
            case "GET", "tokens/current/":
                return 200, {"username": "alice", "scope": "submit", "expires": None}
            case "POST", "jobs/":
                return self._submit(headers, body)
            case "GET", "jobs/":
                return self._list(query)
            case "POST", "forecast/":
                return 200, {
                    "verdict": "queued",
                    "reasons": [{"code": "WaitingForGpus", "text": "Queued behind 3 jobs."}],
                    "ahead": 3,
                    "alternatives": ["1 worker × 1 GPU"],
                }
            case "POST", "uploads/":
                return self._upload(headers, body)
            case "GET", "clusters/":
                gpus = {"total": 8, "free": 3, "virtual": True}
                return 200, {
                    "results": [{"name": "local", "seen_at": "2026-01-01T00:00:00Z", "gpus": gpus, "nodes": []}]
                }
            case "GET", "namespaces/":
                return 200, {"results": [{"name": "alice", "role": "member"}, {"name": "vision", "role": "member"}]}
            case "GET", "namespaces/vision/quota/":
                return 200, {"namespace": "vision", "limits": {"gpus": 8, "memory": None}}
        return 404, _error("not_found", "There is nothing here for you.")

    def _submit(self, headers: Any, body: bytes) -> tuple[int, Any]:
        key = headers["Idempotency-Key"]
        if key in self.by_key:
            return 200, self.jobs[self.by_key[key]]
        if headers["Content-Type"] == "application/json":
            document = json.loads(body)
            if not document.get("command"):
                text = "is required: what to run, such as `python train.py`"
                return 422, _error("invalid_spec", "One field is wrong.", {"command": [text]})
        job = self.add_job()
        self.by_key[key] = job["id"]
        return 201, job

    def _list(self, query: dict[str, str]) -> tuple[int, Any]:
        found = [job for job in self.jobs.values() if job["status"] in query.get("status", job["status"]).split(",")]
        found = [job for job in found if query.get("user", "alice") == job["user"]]
        at = int(query.get("cursor", 0))
        size = min(2, int(query["limit"]))
        more = (
            f"http://portal.example.org/api/v1/jobs/?cursor={at + size}&limit={size}"
            if at + size < len(found)
            else None
        )
        return 200, {"results": found[at : at + size], "next": more, "previous": None}

    def _job(self, method: str, job_id: str, what: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        job = self.jobs.get(job_id)
        if job is None:
            return 404, _error("not_found", "There is nothing here for you.")
        if method == "GET" and not what:
            if self.script:
                step = self.script.pop(0)
                self.say(job, *step.pop("lines", []))
                job.update(step)
            return 200, job
        if what == "logs":
            after = int(query.get("after", 0))
            found = [line for line in self.lines[job_id] if line["seq"] > after][:3]
            searched = found[-1]["seq"] if found else after
            if "worker" in query:
                found = [line for line in found if line["worker"] == query["worker"]]
            if "q" in query:
                try:
                    pattern = re.compile(
                        re.escape(query["q"]) if "literal" in query else query["q"], re.I if "case" in query else 0
                    )
                except re.error as error:
                    return 422, _error("invalid_spec", f"This is no regular expression of RE2: {error}.")
                matching = [line for line in found if pattern.search(line["text"])]
                return 200, {"lines": matching, "next": searched, "done": not found}
            return 200, {"lines": found, "next": found[-1]["seq"] if found else after}
        if what == "why":
            return 200, {
                "status": job["status"],
                "reason": job["reason"],
                "cause": job.get("cause"),
                "position": 4,
                "ahead": 3,
            }
        if what == "series":
            one = {
                "key": query["key"],
                "attempt": 1,
                "rank": 0,
                "step": [1, 2],
                "time": [1.0, 2.0],
                "value": [0.5, "NaN"],
            }
            return 200, {"series": [one]}
        if what == "cancel":
            job["cancel_requested_at"] = "2026-01-01T00:00:00Z"
            job["asked"] = json.loads(body)
            return 200, job
        if what in ("archive", "unarchive"):
            job["archived_at"] = "2026-11-30T12:00:00Z" if what == "archive" else None
            return 200, job
        if what in ("hold", "release"):
            job["held_by"] = "alice" if what == "hold" else None
            return 200, job
        if what == "clone":
            change = {"field": "parameters.lr", "label": "lr", "before": "0.001", "after": "0.0001", "lines": ""}
            return 201, {**job, "id": "a1b2c3d4f5", "changes": [change]}
        return 404, _error("not_found", "There is nothing here for you.")

    def _upload(self, headers: Any, body: bytes) -> tuple[int, Any]:
        mark = headers["Content-Type"].partition("boundary=")[2].encode()
        part = body.split(b"--" + mark)[1]
        head, _blank, content = part.partition(b"\r\n\r\n")
        assert b'name="file"; filename="code.tar.gz"' in head
        content = content.removesuffix(b"\r\n")
        digest = hashlib.sha256(content).hexdigest()
        self.uploads[digest] = content
        return 201, {"sha256": digest, "files": 1, "size": len(content)}


def _error(code: str, message: str, fields: Any = None) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "fields": fields or {}}}


def _handler(portal: Portal) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, document = portal.answer(self.command, self.path, self.headers, body)
            if portal.lose_answers and self.command == "POST":
                portal.lose_answers -= 1
                self.close_connection = True
                return
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_words: object) -> None:
            return

    return Handler
