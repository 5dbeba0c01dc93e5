"""F04: fifty forms and documents, each sent twenty times at once, are fifty jobs and fifty objects on the cluster."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import tempfile
import threading
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.portal.running import Portal, until

pytestmark = pytest.mark.long

KEYS, TIMES = 50, 20
PASSWORD = "flows-need-one"


@pytest.fixture(scope="module")
def portal(request: pytest.FixtureRequest) -> Iterator[Portal]:
    folder = Path(tempfile.mkdtemp(prefix="trainhall-double-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    (folder / "data").mkdir()
    (folder / "data" / "demo-password").write_text(PASSWORD)
    portal = Portal(folder / "data")
    try:
        portal.start()
        yield portal
    finally:
        portal.kill_all()
        shutil.rmtree(folder, ignore_errors=True)


class Browser:
    """Enough of one: cookies, and the token of its forms."""

    def __init__(self, portal: Portal) -> None:
        self.portal = portal
        self.cookies: dict[str, str] = {}
        token = self.ask("GET", "/login/")[1]
        self.ask("POST", "/login/", {"username": "alice", "password": PASSWORD, "csrfmiddlewaretoken": token_in(token)})

    def ask(self, method: str, path: str, fields: dict[str, str] | None = None) -> tuple[int, str, str]:
        line = http.client.HTTPConnection("127.0.0.1", self.portal.port, timeout=60)
        headers = {
            "Host": f"localhost:{self.portal.port}",
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        line.request(method, path, urllib.parse.urlencode(fields or {}) if method == "POST" else None, headers)
        answer = line.getresponse()
        body = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, _equals, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer.status, body, answer.headers.get("Location") or ""


def token_in(page: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert found, page[:500]
    return found.group(1)


def submit_by_rest(portal: Portal, key: str) -> str:
    document = {"namespace": "vision", "runtime": "shell", "command": "true", "name": f"twice-{key}"}
    line = http.client.HTTPConnection("127.0.0.1", portal.port, timeout=60)
    headers = {"Authorization": f"Bearer {portal.token}", "Content-Type": "application/json", "Idempotency-Key": key}
    line.request("POST", "/api/v1/jobs/", json.dumps(document), headers)
    answer = line.getresponse()
    body = json.loads(answer.read())
    assert answer.status in (200, 201), body
    return str(body["id"])


def test_fifty_keys_sent_twenty_times_at_once_are_fifty_jobs_and_fifty_objects(portal: Portal) -> None:
    browser = Browser(portal)
    token = token_in(browser.ask("GET", "/jobs/new/")[1])

    def submit_by_form(key: str) -> str:
        fields = {
            "csrfmiddlewaretoken": token,
            "idempotency_key": key,
            "name": f"twice-{key}",
            "namespace": "vision",
            "runtime": "shell",
            "code_kind": "none",
            "command": "true",
        }
        status, body, location = browser.ask("POST", "/jobs/new/", fields)
        assert status == 302, body[:2000]
        return location.strip("/").rsplit("/", 1)[1]

    made: dict[str, set[str]] = {}
    with ThreadPoolExecutor(TIMES) as pool:
        for number in range(KEYS):
            key = f"key-{number}"
            together = threading.Barrier(TIMES)

            def send(key: str = key, by_form: bool = number % 2 == 1, together: Any = together) -> str:
                together.wait(60)
                return submit_by_form(key) if by_form else submit_by_rest(portal, key)

            made[key] = {future.result() for future in [pool.submit(send) for _time in range(TIMES)]}
    assert {len(ids) for ids in made.values()} == {1}
    ids = {job for found in made.values() for job in found}
    assert len(ids) == KEYS

    def listed() -> list[dict[str, Any]]:
        return [job for job in portal.rest("jobs/?limit=200")["results"] if job["name"].startswith("twice-")]

    jobs = until(
        lambda: (rows := listed()) and all(row["status"] == "succeeded" for row in rows) and rows,
        seconds=180,
        what="all of them have run",
    )
    assert {job["id"] for job in jobs} == ids and {job["attempt"] for job in jobs} == {1}
    objects = {path.name for path in (portal.data / "cluster").rglob("j-??????????-*") if path.is_dir()}
    assert objects == {f"j-{job}-1" for job in ids}
