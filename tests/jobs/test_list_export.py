"""UX-B10: the list as a file: the same rows, order and columns as on the page, all of them, and no cell that computes."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import AuditEvent, User
from accounts.spreadsheet import safe
from jobs.lists.export import ROWS_AT_ONCE
from jobs.models import Job
from tests.factories import make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(world: None, alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def text_of(answer: Any) -> str:
    async def joined() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    assert answer.status_code == 200
    return str(async_to_sync(joined)().decode())


def table(client: Client, query: str = "", path: str = "/api/v1/jobs/export.csv") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of(client.get(f"{path}?{query}")))))


def test_ux_b10_the_file_has_the_rows_order_and_columns_of_the_page(
    browser: Client, alice: User, bob: User, dave: User, vision: Any, speech: Any
) -> None:
    now = timezone.now()
    make_job(alice, vision, name="b", tags=["mnist", "lr"], status="failed", finished_at=now)
    make_job(bob, vision, name="a", status="failed", started_at=now - timedelta(seconds=90), finished_at=now)
    make_job(alice, vision, name="c")
    make_job(dave, speech, name="secret", status="failed", finished_at=now)
    rows = table(browser, "status=failed&sort=name&cols=tags,name,spent")
    assert [row["name"] for row in rows] == ["a", "b"]
    assert list(rows[0]) == ["id", "status", "tags", "name", "seconds", "started_at", "finished_at"]
    assert rows[1]["tags"] == "mnist, lr"
    assert (rows[0]["seconds"], rows[1]["seconds"]) == ("90.0", "")
    assert [row["name"] for row in table(browser, "user=me&sort=oldest")] == ["b", "c"]
    assert "secret" not in text_of(browser.get("/jobs/export.csv"))


def test_ux_b10_it_says_places_metrics_and_what_is_archived(browser: Client, alice: User, vision: Any) -> None:
    waits = make_job(alice, vision, name="waits", reason="Needs 64 GPUs.")
    job = make_job(alice, vision, status="succeeded", finished_at=timezone.now(), archived_at=timezone.now())
    job.feed.headline = {"lr": 0.1, "train/loss": float("1e-05")}
    job.feed.progress = {"step": 5, "total": 10}
    job.feed.save()
    (row,) = table(browser)
    assert (row["id"], row["queue_position"], row["reason"]) == (waits.pk, "1", "Needs 64 GPUs.")
    (row,) = table(browser, "archived=only")
    assert (row["metric"], row["metric_value"], row["progress"]) == ("train/loss", "1e-05", "0.5")
    assert row["archived_at"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "＝1", "=cmd|' /C calc'!A0"])
def test_ux_b10_text_that_a_spreadsheet_would_compute_is_text(
    browser: Client, alice: User, vision: Any, name: str
) -> None:
    make_job(alice, vision, name=name, tags=["=2+2"])
    (row,) = table(browser, "cols=name,tags")
    assert (row["name"], row["tags"]) == (f"'{name}", "'=2+2")
    assert (safe(-1.5), safe("digits"), safe(None)) == (-1.5, "digits", None)


def test_ux_b10_all_rows_come_and_each_piece_costs_the_same(browser: Client, alice: User, vision: Any) -> None:
    pattern = make_job(alice, vision, status="succeeded", finished_at=timezone.now())
    fields = {field.attname: getattr(pattern, field.attname) for field in Job._meta.concrete_fields}
    del fields["id"]
    jobs = Job.objects.bulk_create(Job(**fields) for _number in range(2 * ROWS_AT_ONCE))
    pattern.feed.__class__.objects.bulk_create(pattern.feed.__class__(job=job) for job in jobs)
    with CaptureQueriesContext(connection) as seen:
        assert len(table(browser)) == 2 * ROWS_AT_ONCE + 1
    assert len(seen) <= 12


def test_ux_b10_the_page_has_a_link_to_the_file_of_what_it_shows(browser: Client, alice: User, vision: Any) -> None:
    make_job(alice, vision, name="学习")
    page = browser.get("/jobs/?user=me&sort=name&cols=name").content.decode()
    assert 'href="/jobs/export.csv?user=me&amp;sort=name&amp;cols=name"' in page
    answer = browser.get("/jobs/export.csv?user=me&sort=name&cols=name")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith('attachment; filename="jobs-2')
    text = text_of(answer)
    assert text.startswith("\ufeffid,status,name\r\n"), "the mark by which spreadsheets know UTF-8"
    assert "学习" in text


def test_ux_b10_who_took_what_is_audited_and_a_wrong_filter_takes_nothing(
    browser: Client, alice: User, vision: Any
) -> None:
    make_job(alice, vision)
    table(browser, "user=me")
    (event,) = AuditEvent.objects.filter(action="jobs.export")
    assert event.actor == alice.username
    assert event.after is not None
    assert (event.after["query"], event.after["jobs"]) == ("user=me", 1)
    assert browser.get("/api/v1/jobs/export.csv?since=soon").status_code == 422
    answer = browser.get("/jobs/export.csv?since=soon")
    assert (answer.status_code, answer["Location"]) == (302, "/jobs/?since=soon")
    assert AuditEvent.objects.filter(action="jobs.export").count() == 1
