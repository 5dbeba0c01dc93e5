"""UX 2.3: the place of a waiting job in the list and in REST is the planner's own, and costs the same for any number of jobs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from jobs.lists.places import Place, places
from jobs.models import Job
from jobs.queue import plan
from jobs.snapshot import take_snapshot
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(world: None, alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def a_mixed_line(alice: User, bob: User, dave: User, vision: Any, speech: Any) -> None:
    """Jobs of three people that none of the nodes has room for, with waits and priorities of all kinds."""
    now = timezone.now()
    for number, (owner, namespace) in enumerate(((alice, vision), (bob, vision), (dave, speech)) * 4):
        make_job(
            owner,
            namespace,
            name=f"waits {number}",
            queued_at=now - timedelta(minutes=(number * 37) % 300),
            waited_seconds=(number * 911) % 4000,
            held_by=owner if number == 5 else None,
        )
    Job.objects.filter(name__in=["waits 3", "waits 8"]).update(priority_id="low")
    Job.objects.filter(name="waits 7").update(priority_id="high")
    running = make_job(alice, vision, name="runs", status="running", started_at=now)
    make_attempt(running, number=1, workers=1)
    Job.objects.update(gpus=64)


def test_places_are_those_of_the_planner(
    world: None, alice: User, bob: User, dave: User, vision: Any, speech: Any
) -> None:
    a_mixed_line(alice, bob, dave, vision, speech)
    now = timezone.now()
    ((_name, snapshot, _jobs),) = take_snapshot()
    waits = plan(snapshot, now).waits
    assert len(waits) == 12, "all of them wait: else the two orders may differ"
    held = Job.objects.get(name="waits 5").pk
    expected = {wait.job_id: Place(wait.position, 12) for wait in waits if wait.job_id != held}
    found = places(now=now)
    assert found == expected
    assert list(found) == list(expected), "the first in line comes first"


def test_a_place_and_its_reason_stand_in_the_row(browser: Client, alice: User, vision: Any) -> None:
    now = timezone.now()
    for number in range(3):
        make_job(
            alice,
            vision,
            name=f"waits {number}",
            queued_at=now - timedelta(minutes=90 - number * 20),
            reason="Needs 64 GPUs.",
            held_by=alice if number == 1 else None,
        )
    page = browser.get("/jobs/?status=queued&sort=position").content.decode()
    assert re.findall(r'<a class="title"[^>]*>([^<]+)</a>', page) == ["waits 0", "waits 2", "waits 1"]
    assert re.findall(r'data-place="(\w*)"[^>]*>([^<]*)<', page)[:3] == [
        (Job.objects.get(name="waits 0").pk, "#1 of 3"),
        (Job.objects.get(name="waits 2").pk, "#3 of 3"),
        (Job.objects.get(name="waits 1").pk, ""),
    ]
    assert "a smaller or shorter job behind it may start first" in page
    assert page.count("Needs 64 GPUs.") >= 3


def test_rest_tells_the_place_of_a_job_that_waits(browser: Client, alice: User, vision: Any) -> None:
    waits = make_job(alice, vision)
    over = make_job(alice, vision, status="failed", finished_at=timezone.now())
    rows = {row["id"]: row for row in browser.get("/api/v1/jobs/").json()["results"]}
    assert (rows[waits.pk]["queue_position"], rows[waits.pk]["queue_length"]) == (1, 1)
    assert rows[over.pk]["queue_position"] is None
    assert browser.get(f"/api/v1/jobs/{waits.pk}/").json()["queue_position"] == 1


def test_an_open_list_asks_where_its_rows_stand_by_now(
    browser: Client, alice: User, dave: User, vision: Any, speech: Any
) -> None:
    mine = make_job(alice, vision)
    theirs = make_job(dave, speech, queued_at=timezone.now() - timedelta(hours=1))
    part = browser.get(f"/jobs/?part=counts&waits={mine.pk},{theirs.pk},a%00b").content.decode()
    assert re.findall(r'data-place="(\w*)"[^>]*>([^<]*)<', part) == [(mine.pk, "#2 of 2")]
    assert theirs.pk not in part, "of jobs of strangers nothing is told but that they are there"


@pytest.mark.parametrize("path", ["/jobs/?sort=position", "/api/v1/jobs/"])
def test_places_cost_the_same_queries_for_any_number(browser: Client, alice: User, vision: Any, path: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert browser.get(path).status_code == 200
        return len(seen)

    make_job(alice, vision)
    one = queries()
    for _number in range(20):
        make_job(alice, vision)
    assert queries() == one
