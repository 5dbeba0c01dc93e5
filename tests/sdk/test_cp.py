"""`trainhall files` and `trainhall cp`: what a job left comes here whole or not at all, also over a bad line and a full disk."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from conftest import SDK

TOKEN = "th_alice"
JOB = "b2c3d4f5g6"
Run = Callable[..., subprocess.CompletedProcess[str]]


class Files:
    """A portal that has the files of one job. `cuts` says after how many bytes the coming answers break off."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.versions: dict[str, str] = {}
        self.cuts: list[int] = []
        self.asked: list[tuple[str, str | None]] = []  # path and range
        self.after_cut: Callable[[], None] = lambda: None
        self.is_cut = False
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def put(self, path: str, body: bytes, version: str = "1") -> None:
        self.bodies[path], self.versions[path] = body, version

    def listing(self) -> dict[str, Any]:
        kinds = {"ckpt": "checkpoint", "out": "output", "tb": "events"}
        rows = [
            {
                "path": path,
                "kind": kinds.get(path.split("/")[0], "output"),
                "size": len(body),
                "modified": "2026-01-01T00:00:00Z",
            }
            for path, body in self.bodies.items()
        ]
        return {"results": rows, "is_cut": self.is_cut, "problem": "", "kept_until": "2026-12-07T00:00:00Z"}


def _handler(files: Files) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                error = {
                    "code": "bad_token",
                    "message": "This token is not known; it may have been revoked.",
                    "fields": {},
                }
                return self._answer(401, json.dumps({"error": error}).encode())
            route = self.path.removeprefix(f"/api/v1/jobs/{JOB}/")
            if route == "":
                return self._answer(200, json.dumps({"id": JOB, "status": "succeeded"}).encode())
            if route == "files/":
                return self._answer(200, json.dumps(files.listing()).encode())
            path = unquote(route.removeprefix("files/"))
            if path not in files.bodies:
                error = {"code": "not_found", "message": "There is nothing here for you.", "fields": {}}
                return self._answer(404, json.dumps({"error": error}).encode())
            files.asked.append((path, self.headers.get("Range")))
            body, etag = files.bodies[path], f'"{files.versions[path]}"'
            if self.headers.get("Range") and self.headers.get("If-Range") == etag:
                start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
                rest = body[start:]
                return self._answer(
                    206, rest, {"ETag": etag, "Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}, cut=True
                )
            return self._answer(200, body, {"ETag": etag}, cut=True)

        def _answer(
            self, status: int, body: bytes, headers: dict[str, str] | None = None, *, cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if cut and files.cuts:
                self.wfile.write(body[: files.cuts.pop(0)])
                self.close_connection = True
                files.after_cut()
            else:
                self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            return

    return Handler


@pytest.fixture
def files() -> Iterator[Files]:
    files = Files()
    yield files
    files.close()


@pytest.fixture
def trainhall(files: Files, tmp_path: Path) -> Run:
    def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        url = f"http://127.0.0.1:{files.server.server_port}"
        return subprocess.run(
            [sys.executable, "-m", "trainhall", *words],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(SDK),
                "HOME": str(tmp_path / "home"),
                "TRAINHALL_URL": url,
                "TRAINHALL_API_TOKEN": TOKEN,
                **env,
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def parts(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*.part")]


def test_files_lists_what_there_is(trainhall: Run, files: Files) -> None:
    files.put("ckpt/step-10.npz", b"c" * 2048)
    files.put("out/model.txt", b"model")
    done = trainhall("files", JOB)
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["PATH", "SIZE"],
        ["ckpt/step-10.npz", "2.0"],
        ["out/model.txt", "5"],
    ]
    assert "kept until 2026-12-07" in done.stderr
    only = json.loads(trainhall("files", JOB, "--kind", "checkpoint", "--json").stdout)
    assert [file["path"] for file in only["results"]] == ["ckpt/step-10.npz"]


def test_a_file_comes_under_its_name_or_another(trainhall: Run, files: Files, tmp_path: Path) -> None:
    files.put("out/größe 模型.bin", b"body")
    assert trainhall("cp", f"{JOB}:out/größe 模型.bin", ".").returncode == 0
    assert (tmp_path / "größe 模型.bin").read_bytes() == b"body"
    done = trainhall("cp", f"{JOB}:out/größe 模型.bin", "new/there.bin", "--json")
    assert (tmp_path / "new" / "there.bin").read_bytes() == b"body"
    assert json.loads(done.stdout)["results"][0]["size"] == 4
    assert parts(tmp_path) == []


def test_a_folder_comes_with_all_below_it(trainhall: Run, files: Files, tmp_path: Path) -> None:
    for path in ("out/a/one", "out/a/two", "out/ab", "ckpt/x"):
        files.put(path, path.encode())
    assert trainhall("cp", f"{JOB}:out/a", ".").returncode == 0
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "a/one",
        "a/two",
    ]
    assert trainhall("cp", f"{JOB}:", "all").returncode == 0
    assert (tmp_path / "all" / "ckpt" / "x").read_bytes() == b"ckpt/x"


def test_a_broken_line_costs_only_what_had_not_come(trainhall: Run, files: Files, tmp_path: Path) -> None:
    body = os.urandom(3_000_000)
    files.put("out/model", body)
    files.cuts = [1_000_000, 0, 1_500_000]
    assert trainhall("cp", f"{JOB}:out/model", ".").returncode == 0
    assert (tmp_path / "model").read_bytes() == body
    assert files.asked == [
        ("out/model", None),
        ("out/model", "bytes=1000000-"),
        ("out/model", "bytes=1000000-"),
        ("out/model", "bytes=2500000-"),
    ]


def test_another_call_goes_on_where_the_first_gave_up(trainhall: Run, files: Files, tmp_path: Path) -> None:
    body = os.urandom(1_000_000)
    files.put("out/model", body)
    files.cuts = [400_000] + [0] * 20
    failed = trainhall("cp", f"{JOB}:out/model", ".")
    assert failed.returncode == 3
    assert failed.stderr.startswith("trainhall: http://127.0.0.1") and failed.stderr.count("\n") == 1
    assert "the same command goes on there" in failed.stderr
    assert not (tmp_path / "model").exists() and len(parts(tmp_path)) == 1
    files.cuts, files.asked = [], []
    assert trainhall("cp", f"{JOB}:out/model", ".").returncode == 0
    assert (tmp_path / "model").read_bytes() == body
    assert files.asked[-1] == ("out/model", "bytes=400000-")
    assert parts(tmp_path) == []


def test_two_versions_are_never_put_together(trainhall: Run, files: Files, tmp_path: Path) -> None:
    files.put("out/model", b"a" * 1_000_000, "1")
    files.cuts = [400_000]
    files.after_cut = lambda: files.put("out/model", b"b" * 900_000, "2")
    assert trainhall("cp", f"{JOB}:out/model", ".").returncode == 0
    assert (tmp_path / "model").read_bytes() == b"b" * 900_000
    assert parts(tmp_path) == []


def test_nothing_is_replaced_without_force(trainhall: Run, files: Files, tmp_path: Path) -> None:
    files.put("out/a", b"theirs")
    files.put("out/b", b"theirs")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b").write_text("mine")
    refused = trainhall("cp", f"{JOB}:out", ".")
    assert (refused.returncode, refused.stderr) == (3, "trainhall: ./out/b is there already; --force replaces it.\n")
    assert (tmp_path / "out" / "b").read_text() == "mine" and not (tmp_path / "out" / "a").exists()
    assert trainhall("cp", f"{JOB}:out", ".", "--force").returncode == 0
    assert (tmp_path / "out" / "b").read_text() == "theirs"


@pytest.mark.parametrize("name", ["out/../../evil", "../evil", "out//evil", "/evil"])
def test_a_listing_that_lies_leads_nowhere(trainhall: Run, files: Files, tmp_path: Path, name: str) -> None:
    files.put(name, b"evil")
    done = trainhall("cp", f"{JOB}:", "safe/below")
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("evil"))


def test_wrong_words(trainhall: Run, files: Files) -> None:
    files.put("out/a", b"a")
    assert trainhall("cp", JOB, ".").returncode == 2
    missing = trainhall("cp", f"{JOB}:out/none", ".")
    assert (missing.returncode, missing.stderr) == (
        3,
        "trainhall: The job has no file 'out/none'; see `trainhall files`.\n",
    )
    files.is_cut = True
    assert "more files than are listed" in trainhall("cp", f"{JOB}:", ".").stderr
    assert trainhall("cp", f"{JOB}:out/a", ".").returncode == 0


# What goes wrong is one plain line


@pytest.mark.parametrize("token", ["th_ancient", "“th_alice”", "th_ali\x07ce", "x" * 5000])
def test_a_token_that_is_none(trainhall: Run, token: str) -> None:
    done = trainhall("files", JOB, TRAINHALL_API_TOKEN=token)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1 and "trainhall login http" in done.stderr and token not in done.stderr


def test_a_disk_that_is_full(files: Files, tmp_path: Path) -> None:
    files.put("out/model", b"x" * 1_000_000)
    done = subprocess.run(
        ["/bin/sh", "-c", f"ulimit -f 100; exec {shlex.quote(sys.executable)} -m trainhall cp {JOB}:out/model ."],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SDK),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRAINHALL_URL": f"http://127.0.0.1:{files.server.server_port}",
            "TRAINHALL_API_TOKEN": TOKEN,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1 and "model: File too large. What has come is kept" in done.stderr


def test_an_output_that_is_full(files: Files) -> None:
    files.put("out/model", b"x")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "trainhall", "files", JOB],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(SDK),
                "TRAINHALL_URL": f"http://127.0.0.1:{files.server.server_port}",
                "TRAINHALL_API_TOKEN": TOKEN,
            },
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == "trainhall: No space left on device"
    assert "Traceback" not in done.stderr
