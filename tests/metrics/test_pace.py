"""D9: an estimate goes down with the clock, and where reports stop it is taken back, never frozen."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest
from django.db import connection
from django.template.loader import render_to_string

from jobs.documents import job_row, progress_of
from jobs.models import Job, JobFeed
from portal.templatetags.shown import progress_detail, progress_text
from tests.factories import make_job


def told(*, ago: float, gap: float | None, eta: float | None = 600.0) -> dict[str, Any]:
    found = {"step": 50, "total": 100, "epoch": None, "attempt": 1, "rank": 0, "at": time.time() - ago}
    return found | ({"gap": gap} if gap is not None else {}) | ({"eta": eta} if eta is not None else {})


def shown(**how: Any) -> dict[str, Any]:
    found = progress_of(JobFeed(progress=told(**how)))
    assert found is not None
    return found


def test_an_estimate_goes_down_with_the_clock() -> None:
    assert shown(ago=100, gap=60)["eta"] == pytest.approx(500, abs=1)
    assert shown(ago=170, gap=60)["eta"] == pytest.approx(430, abs=1)
    assert shown(ago=30, gap=60, eta=10)["eta"] == 0


@pytest.mark.parametrize(
    ("ago", "gap", "is_stale"),
    [
        (170, 60, False),
        (190, 60, True),  # three times the usual minute
        (19, 0.5, False),  # reports of every half second may be held up for a while
        (21, 0.5, True),
        (3000, 1200, False),  # who reports every 20 minutes is not late after 50
        (59, None, False),  # one report only: nobody knows what is usual
        (61, None, True),
    ],
)
def test_it_is_stale_after_three_usual_gaps(ago: float, gap: float | None, is_stale: bool) -> None:
    progress = shown(ago=ago, gap=gap, eta=100_000)
    assert (progress["eta"] is None) == is_stale
    row = {"progress": progress, "headline": {}}
    for words in (progress_text(row), progress_detail(row)):
        assert ("no report for" in words) == is_stale
        assert ("ETA" in words or "done about" in words) != is_stale


def test_it_says_for_how_long() -> None:
    assert "no report for 4 m" in progress_text({"progress": shown(ago=240, gap=10), "headline": {}})


@pytest.mark.django_db
def test_the_usual_gap_follows_the_reports() -> None:
    def merge(old: Any, at: float, **more: Any) -> Any:
        new = {"step": int(at), "total": 5000, "attempt": 1, "rank": 0, "at": at} | more
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT metrics_progress(%s::jsonb, %s::jsonb)",
                [orjson.dumps(old).decode(), orjson.dumps(new).decode()],
            )
            return orjson.loads(cursor.fetchone()[0])

    first = merge({}, 1000.0)
    assert "gap" not in first
    second = merge(first, 1010.0)
    assert second["gap"] == pytest.approx(10)
    assert merge(second, 1030.0)["gap"] == pytest.approx(0.7 * 10 + 0.3 * 20)
    assert "gap" not in merge(second, 1030.0, attempt=2), "the next attempt has a pace of its own"
    assert merge(second, 1030.0)["eta"] > 0


@pytest.mark.django_db
def test_rest_list_row_and_head_say_the_same(alice: Any, vision: Any, client: Any) -> None:
    job = make_job(alice, vision, status="running", attempt_number=1)
    JobFeed.objects.filter(pk=job.pk).update(progress=told(ago=240, gap=10))
    client.force_login(alice)
    assert client.get(f"/api/v1/jobs/{job.pk}/").json()["progress"]["eta"] is None
    assert client.get("/api/v1/jobs/").json()["results"][0]["progress"]["eta"] is None
    assert "no report for 4 m" in client.get(f"/jobs/{job.pk}/").content.decode()
    row = job_row(Job.objects.rows([job.pk])[0])
    assert "no report for 4 m" in render_to_string("jobs/_progress.html", {"job": row})
