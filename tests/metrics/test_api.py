"""GET /api/v1/jobs/<id>/series/: what a chart asks for."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient, Client

from metrics import sealing
from tests.metrics.makers import report

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client: Client, alice: Any) -> Client:
    client.force_login(alice)
    return client


def url(job: Any) -> str:
    return f"/api/v1/jobs/{job.pk}/series/"


def series(browser: Client, job: Any, query: Any = None) -> list[dict[str, Any]]:
    response = browser.get(url(job), query)
    assert response.status_code == 200, response.content
    return response.json()["series"]  # type: ignore[no-any-return]


def test_the_list_says_count_and_last(browser: Client, job: Any) -> None:
    report(job, {"train/loss": [(1, 0.5), (2, "NaN")], "acc": [(2, 0.75)]})
    report(job, {"acc": [(2, "Infinity")]}, rank=1)
    found = series(browser, job)
    assert [(one["key"], one["group"], one["rank"], one["attempt"], one["count"], one["bad"]) for one in found] == [
        ("acc", "", 0, 1, 1, 0),
        ("acc", "", 1, 1, 1, 1),
        ("train/loss", "train", 0, 1, 2, 1),
    ]
    assert found[1]["last"] == {"step": 2, "value": "Infinity"} and found[2]["last"] == {"step": 2, "value": "NaN"}
    assert (found[2]["min"], found[1]["min"]) == (0.5, None)


@pytest.mark.parametrize("key", ["train/loss", "a//b", "../x", "%2F", "a b", "?q", "#f", "a&b=c", "損失"])
def test_any_name_can_be_asked_for(browser: Client, job: Any, key: str) -> None:
    report(job, {key: [(1, 0.5)]})
    [found] = series(browser, job, {"key": key})
    assert (found["key"], found["step"], found["value"]) == (key, [1], [0.5])


def test_points_that_are_not_finite_are_words(browser: Client, job: Any) -> None:
    report(job, {"a": [(1, "NaN"), (2, "Infinity"), (3, "-Infinity"), (4, 1.0)], "b": [(9, 1)]})
    found = series(browser, job, {"key": ["a", "b", "c"]})
    assert [one["value"] for one in found] == [["NaN", "Infinity", "-Infinity", 1.0], [1.0]]


def test_at_most_so_many_buckets_and_zooming_gives_true_points(browser: Client, job: Any) -> None:
    report(job, {"a": [(step, "NaN" if step % 10 == 0 else float(step)) for step in range(5000)]})
    sealing.seal(job.pk, 1, leave=timedelta(0))
    [whole] = series(browser, job, {"key": "a"})
    assert len(whole["step"]) == 2000 and sum(whole["count"]) == 5000 and sum(whole["bad"]) == 500
    assert whole["total"] == 5000 and "value" not in whole
    [few] = series(browser, job, {"key": "a", "buckets": 10})
    assert len(few["min"]) == 10 and few["max"][-1] == 4999.0
    [zoomed] = series(browser, job, {"key": "a", "from": "100", "to": "109", "buckets": "10"})
    assert zoomed["step"] == list(range(100, 110)) and zoomed["value"][0] == "NaN"
    [everything] = series(browser, job, {"key": "a", "buckets": "0"})
    assert len(everything["value"]) == 5000


def test_a_bucket_without_a_finite_point_says_so(browser: Client, job: Any) -> None:
    report(job, {"a": [(step, "NaN") for step in range(10)]})
    [found] = series(browser, job, {"key": "a", "buckets": 2})
    assert found["min"] == found["max"] == found["last"] == ["NaN", "NaN"] and found["bad"] == [5, 5]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("buckets", "2001"),
        ("buckets", "-1"),
        ("buckets", "x"),
        ("buckets", "9" * 5000),
        ("buckets", "²"),
        ("from", "x"),
        ("from", "nan"),
        ("to", "inf"),
        ("x", "epoch"),
        ("attempt", "one"),
        ("rank", "1.5"),
        ("format", "xml"),
        ("smooth", "1"),
        ("smooth", "x"),
        ("smooth_by", "x"),
    ],
)
def test_a_wrong_parameter_is_named(browser: Client, job: Any, name: str, value: str) -> None:
    response = browser.get(url(job), {"key": "a", name: value})
    assert response.status_code == 400 and list(response.json()["error"]["fields"]) == [name]


def test_a_name_that_cannot_exist_has_no_series(browser: Client, job: Any) -> None:
    assert series(browser, job, {"key": "a\x00b"}) == []


def test_dave_gets_what_a_made_up_id_gets(client: Client, job: Any, dave: Any) -> None:
    client.force_login(dave)
    theirs, made_up = client.get(url(job)), client.get("/api/v1/jobs/zzzzzzzzzz/series/")
    assert theirs.status_code == made_up.status_code == 404 and theirs.content == made_up.content
    assert Client().get(url(job)).status_code == 401
    assert client.get("/api/v1/jobs/%00/series/").status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_csv_streams_every_point(job: Any, alice: Any) -> None:
    await sync_to_async(report)(job, {"a,b": [(step, 0.5) for step in range(5000)], "c": [(1, "NaN")]})
    browser = AsyncClient()
    await browser.aforce_login(alice)
    response = await browser.get(url(job), {"format": "csv"})
    assert response.status_code == 200 and response["Content-Type"].startswith("text/csv")
    text = b"".join([piece async for piece in response.streaming_content]).decode()  # type: ignore[union-attr]
    await sync_to_async(connections.close_all)()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["key", "rank", "attempt", "step", "time", "value"] and len(rows) == 5002
    assert rows[1][:4] == ["a,b", "0", "1", "0"] and rows[-1][5] == "NaN"


def test_the_charts_fragment_has_a_card_per_key(browser: Client, job: Any) -> None:
    assert b"No metrics yet" in browser.get(f"/jobs/{job.pk}/charts/").content
    report(job, {"train/loss": [(1, 0.5)], "acc": [(1, "NaN")], "<b>": [(1, 1.0)]})
    report(job, {"train/loss": [(1, 0.5)]}, rank=1)
    page = browser.get(f"/jobs/{job.pk}/charts/").content.decode()
    assert 'data-key="train/loss"' in page and 'data-key="acc"' in page and "2 ranks" in page
    assert 'data-key="&lt;b&gt;"' in page and "<b>" not in page


def test_the_charts_of_a_stranger_are_not_there(client: Client, job: Any, dave: Any) -> None:
    client.force_login(dave)
    assert client.get(f"/jobs/{job.pk}/charts/").status_code == 404
