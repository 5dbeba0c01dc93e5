"""A real web process on the database of the tests."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db import connections

from tests.ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class Server:
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def rss(self) -> int:
        """Bytes of memory that the process holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")


def database_url() -> str:
    known = connections["default"].settings_dict
    login = f"{quote(known['USER'])}:{quote(known['PASSWORD'])}@" if known["USER"] else ""
    host = f"?host={quote(known['HOST'], safe='')}" + (f"&port={known['PORT']}" if known["PORT"] else "")
    return f"postgresql://{login}/{known['NAME']}{host}"


@contextmanager
def web_process(folder: Path, **environment: str) -> Iterator[Server]:
    port = free_port()
    log = folder / "web.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", "portal.asgi:application", "--host", "127.0.0.1"),
                *("--port", str(port), "--ws", "websockets-sansio", "--no-access-log"),
                *("--timeout-graceful-shutdown", "3"),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "DATABASE_URL": database_url(),
                "DJANGO_SETTINGS_MODULE": "portal.settings.test",
                "TRAINHALL_URL": f"http://127.0.0.1:{port}",
                **environment,
            },
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    server = Server(port, process, log)
    try:
        _until_it_answers(server)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def _until_it_answers(server: Server) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise RuntimeError(server.log.read_text())
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=2)
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    raise RuntimeError(f"The web process does not answer: {server.log.read_text()}")


def post(
    server: Server, job_id: str, body: bytes, *, token: str = "", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """One batch on a connection of its own: status, answer, headers."""

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("POST", f"/api/v1/jobs/{job_id}/ingest/", body, {**bearer, **(headers or {})})
        response = connection.getresponse()
        return response.status, json.loads(response.read()), dict(response.getheaders())
    finally:
        connection.close()
