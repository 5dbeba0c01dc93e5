"""F28: twelve planted secrets, the main job at DEBUG, fifty provoked errors: none in logs, database, Valkey, pages, frames."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from websockets.sync.client import connect

from tests.chaos.hall import Hall
from tests.chaos.person import Person
from tests.portal.running import until

pytestmark = pytest.mark.chaos

PASSWORD = "canary-password-8r2"  # of alice; that of the other demo people is printed on the terminal
PRINTED = "printed-as-promised"
SECRETS = {
    name: f"canary-{name}-{os.urandom(6).hex()}"
    for name in ("json", "yaml", "form", "refused", "draft", "clone", "typo", "error")
}
WAITS = 'until [ -e "$TRAINHALL_OUTPUT_DIR/go" ]; do sleep 0.1; done; test -n "$HF_TOKEN"'


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    folder = tmp_path_factory.mktemp("canaries")
    for part in (folder, *folder.parents):
        if part != Path("/tmp") and part.owner() == Path.home().owner() and len(part.parts) > 2:
            part.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    (folder / "data").mkdir()
    (folder / "data" / "demo-password").write_text(PRINTED)
    hall = Hall(folder / "data", extra={"TRAINHALL_LOG_LEVEL": "DEBUG", "TRAINHALL_DEMO_PASSWORD": PRINTED})
    try:
        hall.start()
        found = "from accounts.models import User; alice = User.objects.get(username='alice')"
        change = f"{found}; alice.set_password({PASSWORD!r}); alice.save()"
        assert hall.manage("shell", "-c", change).returncode == 0
        yield hall
    finally:
        hall.kill_all()


class Listener:
    """Everything that goes through Valkey, from now on."""

    def __init__(self, url: str) -> None:
        self.client = redis.Redis.from_url(url)
        self.heard: list[str] = []
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.ended = threading.Event()
        self.ready = threading.Event()
        self.thread.start()
        assert self.ready.wait(10)

    def _listen(self) -> None:
        with self.client.monitor() as monitor:
            self.ready.set()
            while not self.ended.is_set():
                self.heard.append(str(monitor.next_command()))

    def end(self) -> str:
        self.ended.set()
        self.client.ping()  # wakes it
        self.thread.join(10)
        for key in self.client.scan_iter(count=1000):
            self.heard.append(str(self.client.dump(key)))
        return "\n".join(self.heard)


def document(secret: str, **more: Any) -> dict[str, Any]:
    return {
        "namespace": "vision",
        "runtime": "shell",
        "command": WAITS,
        "code": {"files": {"a.txt": "x"}},
        "secrets": {"HF_TOKEN": {"value": secret}},
        "resources": {"cpus": "20m", "memory": "64Mi"},
        "priority": "low",
        **more,
    }


def provoke(hall: Hall, alice: Person) -> list[str]:
    """Fifty requests that are refused, each with a secret where it belongs."""
    secret = SECRETS["error"]
    bad: list[dict[str, Any]] = [
        {"runtime": "no-such"},
        {"namespace": "speech"},
        {"namespace": 7},
        {"commnad": "x"},
        {"command": ""},
        {"command": "{{lr}}"},
        {"resources": {"gpus": -1}},
        {"resources": {"workers": 10**9}},
        {"resources": {"gpus": 512}},
        {"time_limit": "soon"},
        {"retries": 99},
        {"priority": "urgent"},
        {"env": {"HF_TOKEN": "x"}},
        {"env": {"TRAINHALL_URL": "x"}},
        {"secrets": {"HF_TOKEN": {"value": secret, "valeu": secret}}},
        {"secrets": {"HF_TOKEN": secret}},
        {"secrets": {"TRAINHALL_TOKEN": {"value": secret}}},
        {"secrets": [secret]},
        {"code": {"git": "file:///etc/passwd"}},
        {"code": {"files": {"../x": "y"}}},
        {"tags": "x" * 100},
        {"launcher": "horovud"},
        {"volumes": [{"name": "x", "path": "/x"}]},
        {"stop_grace": "10h"},
        {"parameters": {"lr": [1]}},
    ]
    answers = []
    for wrong in bad:
        for path in ("jobs/", "forecast/"):
            status, answer = hall.call("POST", path, document(secret) | wrong)
            # a forecast of what never fits is an answer, not an error
            assert 400 <= status < 500 or (path == "forecast/" and status == 200), (status, answer, wrong)
            answers.append(str(answer))
    return answers


def test_no_planted_secret_is_anywhere(hall: Hall) -> None:
    listener = Listener(redis_url(hall))
    alice, bob = Person(hall, "alice", PASSWORD), Person(hall, "bob", PRINTED)
    Person(hall, "alice", SECRETS["typo"])
    frames: list[str] = []
    socket = connect(
        f"ws://localhost:{hall.port}/ws/",
        origin=f"http://localhost:{hall.port}",  # type: ignore[arg-type]
        additional_headers={"Cookie": bob.cookies},
        max_size=None,
        proxy=None,
        max_queue=None,  # frames are read at the end; a full queue would leave pings unanswered
    )
    socket.send('{"subscribe": {"jobs?": null, "cluster": null, "inbox": null}}')

    status, first = hall.call("POST", "jobs/", document(SECRETS["json"]))
    assert status == 201
    form = {
        "namespace": "vision",
        "runtime": "shell",
        "command": WAITS,
        "code_kind": "none",
        "workers": "1",
        "gpus": "0",
        "cpus": "20m",
        "memory": "64Mi",
        "priority": "low",
        "idempotency_key": "canary",
        "secret_name": "HF_TOKEN",
    }
    alice.post("/jobs/new/", **form | {"secret_value": SECRETS["refused"], "command": ""})
    alice.post("/jobs/forecast/", **form | {"secret_value": SECRETS["refused"]})
    alice.post("/jobs/preview/", **form | {"secret_value": SECRETS["refused"]})
    alice.post("/jobs/new/", **form | {"secret_value": SECRETS["form"]})
    alice.ask(
        "/api/v1/drafts/",
        json.dumps({"values": {"name": "x", "secret_name": ["A"], "secret_value": [SECRETS["draft"]]}}).encode(),
        **{"Content-Type": "application/json", "Authorization": f"Bearer {hall.token}"},
    )
    yaml = "\n".join(
        [
            "namespace: vision",
            "runtime: shell",
            "priority: low",
            f"command: {WAITS!r}",
            "secrets:",
            f"  HF_TOKEN: {{value: {SECRETS['yaml']}}}",
        ]
    )
    alice.ask(
        "/api/v1/jobs/", yaml.encode(), **{"Content-Type": "application/yaml", "Authorization": f"Bearer {hall.token}"}
    )
    hall.call("POST", f"jobs/{first['id']}/clone/", {"set": {"secrets": {"HF_TOKEN": {"value": SECRETS["clone"]}}}})
    topics = [f"job/{first['id']}", f"logs/{first['id']}/worker-0", f"points/{first['id']}"]
    socket.send(json.dumps({"subscribe": dict.fromkeys(topics)}))
    errors = provoke(hall, alice)
    until(lambda: hall.status_of(first["id"]) == "running", seconds=40, what="the first one runs")

    attempt_tokens = {path.read_text().strip() for path in (hall.data / "cluster").rglob("token") if path.is_file()}
    assert attempt_tokens, "the pod that runs has its token"
    jobs = [row[0] for row in hall.rows("SELECT id FROM jobs_job")]
    for person in (alice, bob, Person(hall, "admin", PRINTED)):
        for path in (
            "/",
            "/jobs/",
            "/jobs/new/",
            f"/jobs/new/?from={first['id']}",
            "/api/v1/audit/",
            "/api/v1/jobs/",
            "/status/",
            "/metrics",
        ):
            person.get(path)
        for job in jobs:
            for tab in ("", "logs/", "workers/", "events/", "files/", "spec/", "metrics/"):
                person.get(f"/jobs/{job}/{tab}")
            for part in ("", "why/", "manifest/", "events/", "logs/", "series/", "files/"):
                person.get(f"/api/v1/jobs/{job}/{part}")
    for run in (hall.data / "cluster").glob("*/volumes/runs/*/out"):
        (run / "go").touch()
    until(lambda: hall.status_of(first["id"]) == "succeeded", seconds=40, what="the first one ended")
    end = time.monotonic() + 3
    while time.monotonic() < end:
        try:
            frames.append(str(socket.recv(timeout=0.3)))
        except TimeoutError:
            continue
    socket.close()
    assert len(frames) > 3

    tables = hall.rows("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
    database = "\n".join(str(row[0]) for (table,) in tables for row in hall.rows(f"SELECT t::text FROM {table} t"))
    logs = {path: path.read_text(errors="replace") for path in hall.data.rglob("*.log") if path.is_file()}
    assert sum(map(len, logs.values())) > 20_000, "at DEBUG the logs say a lot"
    places = {
        "the database": database + "\n".join(_bytes_of(database)),
        "Valkey": listener.end(),
        "pages and REST": "\n".join((*alice.seen, *bob.seen, *errors)),
        "frames": "\n".join(frames),
        **{f"the log {path.name}": text for path, text in logs.items()},
    }
    planted = {
        **SECRETS,
        "password": PASSWORD,
        "user token": hall.token,
        "attempt token": min(attempt_tokens),
        "secret key": secret_key(hall),
    }
    assert len(planted) == 12
    found = [f"{name} in {place}" for name, value in planted.items() for place, text in places.items() if value in text]
    assert not found, found


def redis_url(hall: Hall) -> str:
    for pid in hall.processes():
        environment = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        for entry in environment:
            if entry.startswith("REDIS_URL="):
                return entry.partition("=")[2]
    raise AssertionError("no process of the portal has REDIS_URL")


def secret_key(hall: Hall) -> str:
    return next(path for path in hall.data.rglob("secret*key*") if path.is_file()).read_text().strip()


def _bytes_of(text: str) -> Iterator[str]:
    """bytea columns as they read: a secret stored unencrypted would hide in hexadecimal digits."""
    for digits in re.findall(r"\\x((?:[0-9a-f]{2}){8,})", text):
        yield bytes.fromhex(digits).decode(errors="replace")
