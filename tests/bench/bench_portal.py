"""A whole portal as `make run` starts it, timed from outside: the list with 10,000 jobs, submit to start, point to viewer.

Bars: /jobs/ p95 300 ms and a constant number of queries; submit to process median 2 s; a point logged in the job reaches each
of 20 viewers in 1 s at p95; a status change in 2 s at p95.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

import websockets

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.portal.running import Portal, until  # noqa: E402

JOBS = 10_000
ASKED = 60
STARTS = 20
VIEWERS = 20

FILL = f"""
from django.utils import timezone; from datetime import timedelta
from accounts.models import User, Namespace; from jobs.models import Job, JobFeed; from jobs.states import JobStatus
from tests.factories import make_job
alice, vision = User.objects.get(username="alice"), Namespace.objects.get(slug="vision")
model = make_job(alice, vision, name="model", status="succeeded"); now = timezone.now(); jobs = []
for index in range({JOBS}):
    fields = [field.attname for field in Job._meta.concrete_fields if field.name != "id"]
    one = Job(**{{name: getattr(model, name) for name in fields}})
    one.name, one.created_at = f"run-{{index}}", now - timedelta(seconds=index)
    one.status = ("succeeded", "failed", "cancelled")[index % 3]
    jobs.append(one)
Job.objects.bulk_create(jobs, batch_size=1000)
JobFeed.objects.bulk_create([JobFeed(job_id=one.pk, headline={{"loss": 0.1}}) for one in jobs], batch_size=1000)
"""
SESSION = """
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore; from accounts.models import User
user = User.objects.get(username="alice"); session = SessionStore()
session[SESSION_KEY], session[BACKEND_SESSION_KEY] = str(user.pk), "accounts.auth.LocalBackend"
session[HASH_SESSION_KEY] = user.get_session_auth_hash(); session.save(); print("session", session.session_key)
"""
TALKING = """import time, trainhall
for step in range(150):
    trainhall.log({"sent": time.time()}, step=step)
    time.sleep(0.1)
"""


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[18]


def line(what: str, value: float, bar: float, unit: str = "ms") -> bool:
    good = value <= bar
    print(f"{what:<58} {value:8.1f} {unit}   bar {bar:6.0f}   {value / bar:5.2f} of it   {'ok' if good else 'MISSED'}")
    return good


def lists(portal: Portal, cookie: str) -> bool:
    good = True
    for path, headers in (
        ("/jobs/", {"Cookie": cookie}),
        ("/jobs/?status=failed&q=run-9", {"Cookie": cookie}),
        ("/api/v1/jobs/", {"Authorization": f"Bearer {portal.token}"}),
    ):
        spent = []
        for _round in range(ASKED):
            request = urllib.request.Request(f"http://127.0.0.1:{portal.port}{path}", headers=headers)
            began = time.perf_counter()
            with urllib.request.urlopen(request, timeout=30) as answer:
                answer.read()
            spent.append((time.perf_counter() - began) * 1000)
        good &= line(f"{path} with {JOBS:,} jobs, p95", p95(spent), 300)
    return good


def starts(portal: Portal) -> bool:
    spent = []
    for _round in range(STARTS):
        asked = time.time()
        job = portal.submit("date +%s.%N")
        portal.wait_for(job, "succeeded")
        said = until(lambda job=job: portal.rest(f"jobs/{job}/logs/")["lines"], seconds=10, what="its line")
        spent.append(float(said[0]["text"]) - asked)
    print(f"{'submit to process started, p95':<58} {p95(spent) * 1000:8.1f} ms")
    return line("submit to process started, median", statistics.median(spent) * 1000, 2000)


async def view(portal: Portal, cookie: str, job: str, points: list[float], moves: list[float]) -> None:
    origin = f"http://localhost:{portal.port}"
    socket = websockets.connect(
        f"ws://localhost:{portal.port}/ws/", additional_headers={"Cookie": cookie}, origin=origin, max_size=None
    )
    async with socket as connection:
        await connection.send(json.dumps({"subscribe": {f"points/{job}": None, f"job/{job}": None}}))
        async for text in connection:
            now, frame = time.time(), json.loads(text)
            data: Any = frame["data"]
            if frame["type"] == "change" and frame["topic"].startswith("points/"):
                points += [now - value for one in data["series"] if one["key"] == "sent" for value in one["value"][-1:]]
            elif frame["type"] == "change" and frame["topic"].startswith("job/") and data["job"]["finished_at"]:
                ended = data["job"]["finished_at"].replace("Z", "+00:00")
                moves.append(now - datetime.fromisoformat(ended).timestamp())
                return


async def watch(portal: Portal, cookie: str) -> tuple[list[float], list[float]]:
    points: list[float] = []
    moves: list[float] = []
    document = {
        "namespace": "vision",
        "runtime": "numpy",
        "command": "python talk.py",
        "code": {"files": {"talk.py": TALKING}},
    }
    job = portal.rest("jobs/", document)["id"]
    await asyncio.wait_for(asyncio.gather(*(view(portal, cookie, job, points, moves) for _one in range(VIEWERS))), 90)
    return points, moves


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="trainhall-bench-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when this runs as root
    portal = Portal(folder / "data")
    try:
        portal.start()
        session = portal.manage("shell", "-v", "0", "-c", SESSION).stdout.split()[-1]
        cookie = f"trainhall_session={session}"
        good = starts(portal)
        points, moves = asyncio.run(watch(portal, cookie))
        good &= line(f"point logged to frame at {VIEWERS} viewers, p95 of {len(points):,}", p95(points) * 1000, 1000)
        good &= line(f"status change to frame at {VIEWERS} viewers, p95", p95(moves) * 1000, 2000)
        filled = portal.manage("shell", "-v", "0", "-c", FILL)
        assert filled.returncode == 0, filled.stderr
        good &= lists(portal, cookie)
    finally:
        portal.kill_all()
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
