"""All stored points of a job as a file: exactly as stored, however much there is."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import os
import sys
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection, connections
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from metrics import export, pages, sealing, store
from metrics.rows import SeriesId
from tests.metrics.makers import make_job, report

pytestmark = pytest.mark.django_db(transaction=True)

ODD = [0.1 + 0.2, 1e-323, 1.7976931348623157e308, -0.0, "NaN", "Infinity", "-Infinity", 1 / 3]


@pytest.fixture
def parquet() -> Any:
    """The reader of Parquet files, from an extra that a laptop may lack and CI must have."""
    if os.environ.get("CI") == "true":
        return importlib.import_module("pyarrow.parquet")
    return pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra of requirements/export.txt")


@pytest.fixture
def filled(alice: Any, vision: Any) -> Any:
    """Two attempts, two ranks, sealed and unsealed points, a late one, numbers that are hard to write."""
    job = make_job(alice, vision, attempts=2)
    many = [(step, math.sin(step) / 3) for step in range(0, 20_000, 2)]
    report(job, {"train/loss": many, 'odd,"name"': list(enumerate(ODD))})
    sealing.seal(job.pk, 1, leave=timedelta(0))
    report(job, {"train/loss": [(7, 7.7), (100, 9.25), (30_000, 0.5)]})
    report(job, {"train/loss": [(50, 0.5)]}, rank=1)
    report(job, {"train/loss": [(60, 0.25)]}, attempt=2)
    return job


def stored(job: Any, **chosen: Any) -> list[tuple[Any, ...]]:
    """Every point as the charts' reader has it, whole series by whole series."""
    found = []
    for one in store.list_series(job.pk):
        [series] = store.read_series(
            job.pk, keys=[one["key"]], attempts=[one["attempt"]], ranks=[one["rank"]], all_attempts=True
        )
        run = series.run
        assert run is not None
        named = (one["key"], one["rank"], one["attempt"])
        found += [(*named, *row) for row in zip(run.step.tolist(), run.time.tolist(), run.value.tolist(), strict=True)]
    return [row for row in found if all(row[export.COLUMNS.index(name)] == value for name, value in chosen.items())]


async def body(job: Any, person: Any, **query: Any) -> bytes:
    browser = AsyncClient()
    await browser.aforce_login(person)
    response: Any = await browser.get(f"/api/v1/jobs/{job.pk}/series/", query)
    assert response.status_code == 200, response.content
    assert f'filename="{job.pk}.' in response["Content-Disposition"]
    pieces = [piece async for piece in response.streaming_content]
    await sync_to_async(connections.close_all)()
    return b"".join(pieces)


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Equal to the bit: NaN is NaN, and -0.0 is not 0.0."""
    floats = np.array(one[4:], np.float64).view(np.int64) == np.array(other[4:], np.float64).view(np.int64)
    return one[:4] == other[:4] and bool(floats.all())


def exact(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert len(found) == len(expected) > 0
    different = [pair for pair in zip(found, expected, strict=True) if not same(*pair)]
    assert not different, different[:3]


async def test_csv_is_what_is_stored(filled: Any, alice: Any) -> None:
    text = (await body(filled, alice, format="csv")).decode()
    rows = list(csv.reader(io.StringIO(text)))
    assert tuple(rows[0]) == export.COLUMNS
    found = [
        (key, int(rank), int(attempt), int(step), float(time), float(value))
        for key, rank, attempt, step, time, value in rows[1:]
    ]
    exact(found, await sync_to_async(stored)(filled))
    assert "NaN" in text and "-Infinity" in text


async def test_json_lines_are_what_is_stored(filled: Any, alice: Any) -> None:
    lines = [json.loads(line) for line in (await body(filled, alice, format="json-lines")).splitlines()]
    found = [tuple(float(row[name]) if name == "value" else row[name] for name in export.COLUMNS) for row in lines]
    exact(found, await sync_to_async(stored)(filled))


async def test_parquet_is_what_is_stored(filled: Any, alice: Any, parquet: Any) -> None:
    table = parquet.read_table(io.BytesIO(await body(filled, alice, format="parquet")))
    assert tuple(table.column_names) == export.COLUMNS
    exact([tuple(row.values()) for row in table.to_pylist()], await sync_to_async(stored)(filled))


async def test_only_what_was_asked_for(filled: Any, alice: Any) -> None:
    asked = {"key": "train/loss", "rank": 0, "attempt": 1}
    rows = (await body(filled, alice, format="csv", **asked, **{"from": 100, "to": 200})).decode().splitlines()
    steps = [int(row.split(",")[3]) for row in rows[1:]]
    assert steps == list(range(100, 201, 2))
    expected = await sync_to_async(stored)(filled, key="train/loss", rank=0, attempt=1)
    lines = (await body(filled, alice, format="json-lines", **asked)).splitlines()
    assert len(lines) == len(expected) == 10_002


def test_pages_lose_and_repeat_nothing_while_points_arrive_and_are_sealed(alice: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    steps = np.arange(0, 300_000, 3)
    for part in np.array_split(steps, 3):
        report(job, {"a": [(int(step), float(step)) for step in part]})
        sealing.seal(job.pk, 1, leave=timedelta(0))
    seen: list[int] = []
    after, goes_on = pages.BEFORE_ALL, True
    while goes_on:
        page = pages.page(job.pk, [SeriesId("a", 0, 1)], after=after)
        [(_name, run, _gaps)] = page.runs
        assert len(run) <= pages.PAGE * 4096 + 2
        seen += run.step.tolist()
        after, goes_on = page.upto, page.goes_on
        # a late point before and one behind what was read, and a seal that moves everything
        report(job, {"a": [(1, 0.5), (299_999, 0.5)]})
        sealing.seal(job.pk, 1, leave=timedelta(0))
    assert seen == [*steps.tolist(), 299_999]


def test_unsealed_bodies_are_read_once_for_all_series_of_a_page(alice: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    names = [f"k/{number}" for number in range(60)]
    report(job, {name: [(step, 0.5) for step in range(1000)] for name in names})

    async def rows() -> list[bytes]:
        pieces = export.body(job.pk, export.CsvWriter(), takes=lambda _one: True, part=lambda run: run)
        return b"".join([piece async for piece in pieces]).splitlines()[1:]

    with CaptureQueriesContext(connection) as queries:
        found = async_to_sync(rows)()
    assert [row.split(b",")[0].decode() for row in found[::1000]] == sorted(names)
    reads = [query for query in queries.captured_queries if '"metrics_pointbatch"."body"' in query["sql"]]
    assert len(reads) == 2  # for the list of series, and for the only page


async def test_series_longer_than_a_page_between_short_ones(alice: Any, vision: Any) -> None:
    job = await sync_to_async(make_job)(alice, vision)
    for part in np.array_split(np.arange(pages.PAGE * 4096 + 10_000), 2):
        await sync_to_async(report)(job, {"long": [(int(step), float(step)) for step in part]})
        await sync_to_async(sealing.seal)(job.pk, 1, leave=timedelta(0))
    await sync_to_async(report)(job, {name: [(1, 0.5), (2, 0.25)] for name in ("early", "late", "some")})
    rows = (await body(job, alice, format="csv")).decode().splitlines()[1:]
    expected = await sync_to_async(stored)(job)
    assert [(row.split(",")[0], int(row.split(",")[3])) for row in rows] == [(row[0], row[3]) for row in expected]


async def test_an_empty_job_is_an_empty_file(alice: Any, vision: Any) -> None:
    job = await sync_to_async(make_job)(alice, vision)
    assert (await body(job, alice, format="csv")).decode() == ",".join(export.COLUMNS) + "\r\n"
    assert await body(job, alice, format="json-lines") == b""


async def test_an_empty_job_is_an_empty_table(alice: Any, vision: Any, parquet: Any) -> None:
    job = await sync_to_async(make_job)(alice, vision)
    empty = parquet.read_table(io.BytesIO(await body(job, alice, format="parquet")))
    assert empty.num_rows == 0 and tuple(empty.column_names) == export.COLUMNS


def test_without_pyarrow_a_sentence_says_how_to_get_it(
    client: Client, alice: Any, filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as where the extra is not installed
    client.force_login(alice)
    answer = client.get(f"/api/v1/jobs/{filled.pk}/series/", {"format": "parquet"})
    assert answer.status_code == 501
    assert answer.json()["error"]["code"] == "no_parquet" and "export.txt" in answer.json()["error"]["message"]


def test_dave_gets_no_file(client: Client, dave: Any, filled: Any) -> None:
    client.force_login(dave)
    for kind in export.WRITERS:
        assert client.get(f"/api/v1/jobs/{filled.pk}/series/", {"format": kind}).status_code == 404
