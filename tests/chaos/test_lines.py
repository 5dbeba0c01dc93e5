"""A hundred thousand numbered lines of two ranks, watched through twenty cut connections: each line once, in order (D3)."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import Any

import pytest
import websockets

from tests.chaos.hall import SMALL, Hall

pytestmark = pytest.mark.chaos

EACH = 50_000
CUTS = 20
SESSION = """
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore; from accounts.models import User
user = User.objects.get(username="alice"); session = SessionStore()
session[SESSION_KEY], session[BACKEND_SESSION_KEY] = str(user.pk), "accounts.auth.LocalBackend"
session[HASH_SESSION_KEY] = user.get_session_auth_hash(); session.save(); print("session", session.session_key)
"""
# under the rate cap of a pod, which is 5,000 lines a second
TALK = f"""import time
for number in range({EACH}):
    print(number)
    if number % 250 == 249: time.sleep(0.08)
"""


async def read(hall: Hall, cookie: str, job: str) -> tuple[list[dict[str, Any]], int]:
    """Follow the job's lines as a page does, cutting the connection again and again; what a late page lacks comes by REST."""
    lines: list[dict[str, Any]] = []
    cuts, end = 0, time.monotonic() + 150
    chance = random.Random(7)
    while len(lines) < 2 * EACH and time.monotonic() < end:
        socket = websockets.connect(
            f"ws://localhost:{hall.port}/ws/",
            additional_headers={"Cookie": cookie},
            origin=f"http://localhost:{hall.port}",
            max_size=None,
        )
        async with socket as connection:
            since = lines[-1]["seq"] if lines else None
            await connection.send(json.dumps({"subscribe": {f"logs/{job}": since}}))
            cut_at = time.monotonic() + chance.uniform(0.3, 1.5) if cuts < CUTS else end
            while time.monotonic() < cut_at and len(lines) < 2 * EACH:
                try:
                    frame = json.loads(await asyncio.wait_for(connection.recv(), 1))
                except TimeoutError:
                    continue
                fresh = frame["data"].get("lines", []) if frame["topic"] else []
                if fresh and (not lines or fresh[0]["seq"] > lines[-1]["seq"] + 1):
                    await asyncio.to_thread(catch_up, hall, job, lines, fresh[0]["seq"])
                lines += [line for line in fresh if not lines or line["seq"] > lines[-1]["seq"]]
            connection.transport.abort()
            cuts += 1
    return lines, cuts


def catch_up(hall: Hall, job: str, lines: list[dict[str, Any]], until: int) -> None:
    """A snapshot begins at its newest lines; a page reads those before from REST."""
    while (lines[-1]["seq"] if lines else 0) < until - 1:
        after = lines[-1]["seq"] if lines else 0
        answer = hall.rest(f"jobs/{job}/logs/?after={after}&limit={min(5000, until - 1 - after)}")
        lines += answer["lines"]


def test_every_line_arrives_once_and_in_order(hall: Hall) -> None:
    session = hall.manage("shell", "-v", "0", "-c", SESSION).stdout.split()[-1]
    document = {
        **SMALL,
        "runtime": "numpy",
        "command": "python talk.py",
        "code": {"files": {"talk.py": TALK}},
        "resources": {"workers": 2, "cpus": "20m", "memory": "64Mi"},
    }
    job = str(hall.rest("jobs/", document)["id"])
    lines, cuts = asyncio.run(read(hall, f"trainhall_session={session}", job))
    assert cuts >= CUTS
    assert [line["seq"] for line in lines] == list(range(1, 2 * EACH + 1))
    for rank in ("worker-0", "worker-1"):
        assert [line["text"] for line in lines if line["worker"] == rank] == [str(number) for number in range(EACH)]
