"""/jobs/ and /api/v1/jobs/ with 10,000 jobs and their metrics: how long an answer takes, and how many queries.

The bar: p95 under 120 ms at the server.
"""

from __future__ import annotations

import http.client
import sys
import time
from datetime import timedelta
from typing import Any

from place import Portal, Table, cookie_of, p95, portal, quiet

JOBS = 10_000
REQUESTS = 100
BAR = 120.0
DRAWN = 50  # jobs of the first page with points to draw


def fill() -> None:
    """A year of jobs of four people, all over but the newest 200: half of those are held, half ask for more than there is."""
    from django.db import connection
    from django.utils import timezone

    from accounts.models import Namespace, User
    from jobs.models import Job, JobFeed
    from tests.factories import make_job
    from tests.metrics.makers import report

    people = [User.objects.get(username=name) for name in ("alice", "bob", "carol")]
    vision = Namespace.objects.get(slug="vision")
    pattern = make_job(people[0], vision, name="pattern", status="succeeded", finished_at=timezone.now())
    now, rows = timezone.now(), []
    for number in range(JOBS - 1):
        fields: dict[str, Any] = {f.attname: getattr(pattern, f.attname) for f in Job._meta.concrete_fields}
        del fields["id"]
        at = now - timedelta(minutes=50 * number)
        owner = people[number % len(people)]
        fields |= {
            "name": f"digits lr {number % 100}",
            "owner_id": owner.pk,
            "created_at": at,
            "tags": [f"sweep{number % 50}"],
        }
        if number < 200:
            held = {"reason_code": "Held", "held_by_id": owner.pk} if number % 2 else {"gpus": 512}
            fields |= {"status": "queued", "finished_at": None, **held}
        else:
            fields |= {"status": ("succeeded", "failed", "cancelled")[number % 3], "finished_at": at}
        rows.append(Job(**fields))
    Job.objects.bulk_create(rows, batch_size=1000)
    JobFeed.objects.bulk_create(
        (
            JobFeed(
                job=job,
                headline={"train/loss": 1 / (number + 1), "val/accuracy": 0.5, "lr": 0.1},
                progress={"step": number, "total": JOBS, "at": now.timestamp(), "eta": 60.0},
            )
            for number, job in enumerate(rows)
        ),
        batch_size=1000,
    )
    with connection.cursor() as cursor:  # as it would be some minutes later
        cursor.execute("VACUUM ANALYZE")
    points = {"train/loss": [(step, 1 / (step + 1)) for step in range(1000)]}
    for job in rows[:DRAWN]:
        report(job, points)


def answers(place: Portal, path: str, headers: dict[str, str], times: int) -> list[float]:
    """Milliseconds of each answer, over one connection as a browser keeps it."""
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=30)
    took = []
    for _request in range(times):
        began = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        took.append((time.perf_counter() - began) * 1000)
        if answer.status != 200 or (b"digits lr" not in content and b"train/loss" not in content):
            raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
    connection.close()
    return took


def sparklines() -> str:
    """What the first page asks for beside itself."""
    from jobs.models import Job

    newest = Job.objects.filter(name__startswith="digits").order_by("-created_at", "-id").values_list("pk", flat=True)
    return "/api/v1/sparklines/?" + "&".join(f"job={job_id}" for job_id in newest[:DRAWN])


def queries(path: str) -> int:
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from accounts.models import User

    browser = Client(SERVER_NAME="localhost")
    browser.force_login(User.objects.get(username="alice"))
    with CaptureQueriesContext(
        connection,
    ) as seen:
        browser.get(path)
    return len(seen)


def main() -> int:
    with portal() as place:
        fill()
        quiet(5)
        cookie, token = {"Cookie": cookie_of("alice")}, {"Authorization": f"Bearer {place.token}"}
        table = Table(f"Lists of {JOBS:,} jobs, {REQUESTS} requests each, p95; queries with one row / with fifty rows")
        for path, headers in (
            ("/jobs/", cookie),
            ("/jobs/?page=100", cookie),
            ("/jobs/?status=queued&sort=position", cookie),
            ("/jobs/?q=digits+99", cookie),
            ("/jobs/?sort=name&cols=status,name,how,metric,who,gpus,spent,age,priority,tags,id", cookie),
            (sparklines(), cookie),
            ("/api/v1/jobs/", token),
            ("/api/v1/jobs/?status=failed&user=bob", token),
        ):
            answers(place, path, headers, 5)
            took = answers(place, path, headers, REQUESTS)
            counts = ""
            if path == "/jobs/":
                one, many = queries("/jobs/?q=lr+7+sweep7"), queries("/jobs/")
                counts = f"{one} / {many} queries"
            table.line(path[:46], p95(took), BAR, beside=counts)
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
