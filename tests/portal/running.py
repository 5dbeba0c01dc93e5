"""A whole portal as `manage.py up` starts it, in a data folder of its own, for tests that kill its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.portal.prepared import begin_with
from tests.ports import free_port

CHECKOUT = Path(__file__).resolve().parent.parent.parent
OURS = ("PORT", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")


def until(question: Callable[[], Any], *, seconds: float, what: str) -> Any:
    """The first true answer."""
    end = time.monotonic() + seconds
    while True:
        if answer := question():
            return answer
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


class AsItComes(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_more: Any) -> None:
        return None


@dataclass
class Visitor:
    """Somebody's browser without a screen: it keeps cookies, sends its Origin and CSRF token, and follows nothing."""

    origin: str
    cookies: CookieJar = field(default_factory=CookieJar)

    def ask(
        self, method: str, path: str, *, form: dict[str, str] | None = None, document: Any = None, **headers: str
    ) -> tuple[int, str]:
        data = None
        if document is not None:
            data, headers["Content-Type"] = json.dumps(document).encode(), "application/json"
        elif method == "POST":
            data = urlencode(form or {}).encode()
        if method != "GET":
            headers.setdefault("Origin", self.origin)
            headers.setdefault("X-CSRFToken", self.cookie("trainhall_csrf"))
        request = urllib.request.Request(self.origin + path, data=data, headers=headers, method=method)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies), AsItComes)
        try:
            with opener.open(request, timeout=20) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    def cookie(self, name: str) -> str:
        return next((cookie.value or "" for cookie in self.cookies if cookie.name == name), "")

    def sign_in(self, username: str, password: str) -> None:
        self.ask("GET", "/login/")
        status, body = self.ask("POST", "/login/", form={"username": username, "password": password})
        assert status == 302, (status, body[:500])


@dataclass
class Portal:
    data: Path
    port: int = field(default_factory=free_port)
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    token: str = ""
    from_nothing: bool = False  # its database and files are made by its own first start

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key not in OURS and not key.startswith("TRAINHALL_")}
        return {**kept, "PORT": str(self.port), "TRAINHALL_DATA_DIR": str(self.data), **self.settings}

    @property
    def output(self) -> str:
        return (self.data / "terminal.log").read_text()

    def launch(self) -> None:
        self.data.mkdir(exist_ok=True)
        if not self.from_nothing:
            begin_with(self.data)
        with (self.data / "terminal.log").open("ab") as terminal:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=CHECKOUT,
                env=self.environment,
                stdout=terminal,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start(self) -> None:
        self.launch()
        until(lambda: self.has_ended or self.is_ready, seconds=90, what="the portal is ready")
        assert not self.has_ended, self.output
        self.token = self.token or self.manage("create_token", "alice").stdout.strip()

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    @property
    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=6):
                return True
        except OSError:
            return False

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CHECKOUT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def rest(self, path: str, document: Any = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v1/{path}",
            data=None if document is None else json.dumps(document).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read()[:500]!r}") from error

    def visitor(self, username: str, *, port: int = 0) -> Visitor:
        """One of the demo people, signed in; `port` is another one than the portal's own."""
        visitor = Visitor(f"http://127.0.0.1:{port or self.port}")
        if username:
            visitor.sign_in(username, (self.data / "demo-password").read_text().strip())
        return visitor

    def submit(self, command: str) -> str:
        document = {"namespace": "vision", "runtime": "shell", "command": command, "stop_grace": "1s"}
        return str(self.rest("jobs/", document)["id"])

    def wait_for(self, job: str, status: str, *, seconds: float = 30) -> Any:
        def stands() -> Any:
            found = self.rest(f"jobs/{job}/")
            return found if found["status"] == status else None

        return until(stands, seconds=seconds, what=f"{job} is {status}")

    def processes(self) -> dict[int, str]:
        """Everything that lives and knows this data folder: by its arguments or its environment."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                knows = (words + (entry / "environ").read_bytes().decode(errors="replace")).find(str(self.data)) >= 0
                dead = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
            except OSError:
                continue
            if knows and not dead:
                found[int(entry.name)] = words.strip()
        return found

    def process_of(self, words: str) -> int:
        """The oldest one with these words: a worker, not its children."""
        return min(pid for pid, line in self.processes().items() if words in line)

    def interrupt(self) -> float:
        """Ctrl-C; return how many seconds the stop took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)
        return time.monotonic() - began

    def kill_all(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
