"""A chunk that cannot be read any more is a gap that is told, in charts, lists, files and sealing: never an error."""

from __future__ import annotations

import csv
import importlib
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from metrics import export, pages, sealing, sketch, store
from metrics.chunks import FULL
from metrics.models import Chunk
from tests.metrics.makers import report

pytestmark = pytest.mark.django_db

LOST = f"Steps 0 to {FULL - 1}, {FULL} points, are damaged in the database."


@pytest.fixture
def damaged(job: Any) -> Any:
    """Two full chunks and an open one, of which the first is damaged; and a series beside."""
    seal(job, {"loss": [(step, float(step)) for step in range(2 * FULL + 10)], "acc": [(1, 0.5)]})
    damage(job, first_step=0)
    return job


def seal(job: Any, points: dict[str, list[tuple[int, Any]]]) -> None:
    report(job, points)
    sealing.seal(job.pk, 1, leave=timedelta(0))


def damage(job: Any, *, first_step: int) -> None:
    chunk = Chunk.objects.get(job=job, key="loss", first_step=first_step)
    body = bytearray(chunk.body)
    body[len(body) // 2] ^= 0xFF
    Chunk.objects.filter(pk=chunk.pk).update(body=bytes(body))


def written(job: Any, kind: str) -> bytes:
    async def pieces() -> bytes:
        writer = export.WRITERS[kind]()
        found = export.body(job.pk, writer, takes=lambda _one: True, part=lambda run: run)
        return b"".join([piece async for piece in found])

    return async_to_sync(pieces)()


def test_a_series_is_told_without_the_gap_and_names_it(damaged: Any, client: Any, alice: Any) -> None:
    client.force_login(alice)
    asked = {"key": "loss", "buckets": 0}
    [one] = client.get(f"/api/v1/jobs/{damaged.pk}/series/", asked).json()["series"]
    assert one["step"] == list(range(FULL, 2 * FULL + 10))
    assert one["total"] == 2 * FULL + 10
    assert one["gaps"] == [{"first_step": 0, "last_step": FULL - 1, "count": FULL, "text": LOST}]
    [one] = client.get(f"/api/v1/jobs/{damaged.pk}/series/", asked | {"from": FULL}).json()["series"]
    assert "gaps" not in one
    report(damaged, {"loss": [(7, 7.5)]})
    [one] = [one for one in store.list_series(damaged.pk) if one["key"] == "loss"]
    assert (one["first_step"], one["last_step"]) == (0, 2 * FULL + 9)


def test_a_sketch_draws_the_measures_instead(damaged: Any) -> None:
    found = sketch.sketches({damaged.pk: "loss"})[damaged.pk]
    assert (found.first_step, found.last_step) == (0, 2 * FULL + 9)
    assert max(found.values) == 2 * FULL + 9


def test_files_are_whole_but_for_a_sentence(damaged: Any) -> None:
    rows = list(csv.reader(io.StringIO(written(damaged, "csv").decode())))[1:]
    assert [row for row in rows if not row[3]] == [["loss", "0", "1", "", "", LOST]]
    assert [int(row[3]) for row in rows if row[0] == "loss" and row[3]] == list(range(FULL, 2 * FULL + 10))
    lines = [json.loads(line) for line in written(damaged, "json-lines").splitlines()]
    assert [line["gap"]["text"] for line in lines if "gap" in line] == [LOST]
    assert len(lines) == 1 + 1 + FULL + 10


def test_a_parquet_file_says_it_in_its_metadata(damaged: Any) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra of requirements/export.txt")
    table = parquet.read_table(io.BytesIO(written(damaged, "parquet")))
    assert table.num_rows == 1 + FULL + 10
    told = importlib.import_module("pyarrow.parquet").ParquetFile(io.BytesIO(written(damaged, "parquet"))).metadata
    [gap] = json.loads(told.metadata[b"trainhall.gaps"])
    assert (gap["key"], gap["gap"]["text"]) == ("loss", LOST)


def test_a_file_of_nothing_but_gaps_ends(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE", 1)
    seal(job, {"loss": [(step, 0.5) for step in range(3 * FULL)]})
    for first in range(0, 3 * FULL, FULL):
        damage(job, first_step=first)
    lines = [json.loads(line) for line in written(job, "json-lines").splitlines()]
    assert [line["gap"]["first_step"] for line in lines] == [0, FULL, 2 * FULL]


def test_new_points_are_sealed_beside_what_is_damaged(damaged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(damaged, first_step=2 * FULL)  # the open one, which new points would go into
    seal(damaged, {"loss": [(50, 0.5), (2 * FULL + 10, 1.5), (2 * FULL + 11, 2.5)]})
    seal(damaged, {"loss": [(40, 0.25), (2 * FULL + 12, 3.5)]})
    [one] = store.read_series(damaged.pk, keys=["loss"])
    assert one.run is not None
    new = {40: 0.25, 50: 0.5, 2 * FULL + 10: 1.5, 2 * FULL + 11: 2.5, 2 * FULL + 12: 3.5}
    assert dict(zip(one.run.step.tolist(), one.run.value.tolist(), strict=True)) == new | {
        step: float(step) for step in range(FULL, 2 * FULL)
    }
    assert [gap.first_step for gap in one.gaps] == [0, 2 * FULL]
    monkeypatch.setattr(pages, "PAGE", 1)
    lines = [json.loads(line) for line in written(damaged, "json-lines").splitlines()]
    points = {line["step"]: line["value"] for line in lines if line.get("key") == "loss" and "step" in line}
    assert points == new | {step: float(step) for step in range(FULL, 2 * FULL)}
    assert [line["gap"]["first_step"] for line in lines if "gap" in line] == [0, 2 * FULL]


def test_a_point_of_the_first_step_of_what_is_damaged_takes_its_place(damaged: Any) -> None:
    seal(damaged, {"loss": [(0, 0.5)]})
    [one] = store.read_series(damaged.pk, keys=["loss"])
    assert one.run is not None and one.run.step[0] == 0 and one.gaps == []
