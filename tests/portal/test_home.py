"""The page of the morning: what needs a look stands first, and it costs the same however much there is."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Membership, User
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(world: None, alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def shown(page: str) -> list[str]:
    return re.findall(r'<a class="title"[^>]*>([^<]+)</a>', page)


def test_what_failed_and_what_waits_comes_before_what_runs(browser: Client, alice: User, vision: Any) -> None:
    now = timezone.now()
    make_job(alice, vision, name="runs", status="running", started_at=now)
    make_job(alice, vision, name="waits since noon", queued_at=now - timedelta(hours=3))
    make_job(alice, vision, name="waits", queued_at=now)
    make_job(alice, vision, name="failed", status="failed", finished_at=now)
    make_job(alice, vision, name="failed last week", status="failed", finished_at=now - timedelta(days=7))
    assert shown(browser.get("/").content.decode()) == ["failed", "waits since noon", "waits", "runs"]


def test_where_nothing_needs_a_look_the_last_jobs_are_shown(browser: Client, alice: User, vision: Any) -> None:
    for number in range(7):
        make_job(alice, vision, name=f"done {number}", status="succeeded", finished_at=timezone.now())
    assert shown(browser.get("/").content.decode()) == [f"done {number}" for number in (6, 5, 4, 3, 2)]


def test_jobs_of_others_and_of_a_namespace_one_has_left_are_not_shown(
    browser: Client, alice: User, bob: User, vision: Any
) -> None:
    make_job(bob, vision, name="bobs")
    make_job(alice, vision, name="mine")
    assert shown(browser.get("/").content.decode()) == ["mine"]
    Membership.objects.filter(user=alice, namespace=vision).delete()
    assert shown(browser.get("/").content.decode()) == []


def test_the_first_visit_says_what_to_do(browser: Client) -> None:
    assert "Run this sample job" in browser.get("/").content.decode()


def test_home_costs_the_same_queries_whatever_it_shows(browser: Client, alice: User, vision: Any) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert browser.get("/").status_code == 200
        return len(seen)

    def one_of_each() -> None:
        now = timezone.now()
        make_attempt(make_job(alice, vision, status="running", started_at=now, attempt_number=1), workers=2)
        make_job(alice, vision, held_by=alice)
        make_job(alice, vision, status="failed", finished_at=now)

    one_of_each()
    few = queries()
    for _number in range(25):
        one_of_each()
    assert queries() == few <= 13
