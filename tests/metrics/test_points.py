"""The wire format: what is stored, what is refused, and that every refusal says what and why."""

from __future__ import annotations

import gzip
import json
import math
import uuid
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import points
from metrics.batches import IngestRefused
from metrics.packed import pack, unpack
from tests.metrics.makers import read, wire

NOW = 1_767_225_600.0


def raw(series: str, **fields: Any) -> points.Batch:
    """A body with JSON that Python would not write."""
    extra = "".join(f', "{name}": {json.dumps(value)}' for name, value in fields.items())
    return points.read(f'{{"batch": "{uuid.uuid4()}", "series": {series}{extra}}}'.encode(), now=NOW)


def inflate(body: bytes) -> None:
    inflater = points.Inflater()
    inflater.feed(body)
    inflater.finish()


def only(batch: points.Batch) -> dict[str, Any]:
    assert batch.refusals.count == 1, batch.refusals
    return batch.refusals.listed[0]


def test_a_series_keeps_every_bit() -> None:
    values = [0.1, -0.0, 1e-320, 1.7976931348623157e308, 3]
    batch = read(wire({"train/loss": [(2**63 - 1 - step, value) for step, value in enumerate(values)]}))
    [series] = batch.series
    assert (series.key, series.group) == ("train/loss", "train")
    assert series.step.tolist() == [2**63 - 1 - step for step in range(5)]
    assert series.value.tobytes() == np.array(values, dtype=np.float64).tobytes()
    assert batch.refusals.count == 0


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_values_that_are_not_finite_come_as_words_and_as_bare_words(word: str) -> None:
    for text in (word, f'"{word}"'):
        [series] = raw(f'[{{"key": "loss", "step": [1, 2], "value": [{text}, 1]}}]').series
        assert str(series.value[0]) == str(float(word)) and series.value[1] == 1


def test_null_is_nan_and_a_number_beyond_float64_is_infinite() -> None:
    digits = "9" * 5000
    [series] = raw(f'[{{"key": "a", "step": [1,2,3,4], "value": [null, 1e999, -{digits}, {digits}]}}]').series
    assert math.isnan(series.value[0]) and series.value[1:].tolist() == [math.inf, -math.inf, math.inf]


@pytest.mark.parametrize(
    ("step", "value", "code"),
    [
        ("-1", "1", "bad_step"),
        ("9223372036854775808", "1", "bad_step"),
        ("1.5", "1", "bad_step"),
        ('"1"', "1", "bad_step"),
        ("true", "1", "bad_step"),
        ("9" * 5000, "1", "bad_step"),
        ("7", '"0.5"', "bad_value"),
        ("7", "true", "bad_value"),
        ("7", "[1]", "bad_value"),
        ("7", "{}", "bad_value"),
    ],
)
def test_a_bad_point_is_named_and_its_neighbours_stay(step: str, value: str, code: str) -> None:
    batch = raw(f'[{{"key": "loss", "step": [1, {step}, 3], "value": [0.1, {value}, 0.3]}}]')
    refusal = only(batch)
    assert (refusal["key"], refusal["index"], refusal["code"]) == ("loss", 1, code)
    assert batch.series[0].step.tolist() == [1, 3] and batch.series[0].value.tolist() == [0.1, 0.3]


@pytest.mark.parametrize("time", [-1.0, 253_402_300_800.0, 1e300])
def test_a_time_that_is_no_date_is_refused_and_a_missing_one_is_ours(time: float) -> None:
    body = {"key": "loss", "step": [1, 2, 3], "time": [time, None], "value": [1, 2, 3]}
    batch = points.read(json.dumps({"batch": str(uuid.uuid4()), "series": [body]}).encode(), now=NOW)
    assert only(batch)["code"] == "bad_time"
    assert batch.series[0].step.tolist() == [2, 3] and batch.series[0].time.tolist() == [NOW, NOW]


def test_points_without_a_partner_are_refused() -> None:
    batch = raw('[{"key": "loss", "step": [1, 2, 3], "value": [0.1]}]')
    assert batch.points == 1 and batch.refusals.count == 2
    assert [one["index"] for one in batch.refusals.listed] == [1, 2]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "must not be empty"),
        ("x" * 201, "at most 200 characters"),
        ("a\x00b", "control character (U+0000)"),
        ("a\nb", "control character (U+000A)"),
        ("a\x9fb", "control character (U+009F)"),
        ("a\ud800", "lone surrogate (U+D800)"),
    ],
)
def test_a_name_nobody_could_store_or_show_is_refused_by_name(key: str, words: str) -> None:
    batch = raw(
        f'[{{"key": {json.dumps(key)}, "step": [1, 2], "value": [1, 2]}}, {{"key":"b","step":[1],"value":[1]}}]'
    )
    assert batch.refusals.count == 2 and words in batch.refusals.listed[0]["message"]
    assert msgspec.json.encode(batch.refusals.listed)
    assert [one.key for one in batch.series] == ["b"]


@pytest.mark.parametrize("key", ["train/loss", "a//b", "../x", "%2F", "a b", "?q", "#f", "損失", "x" * 200, "🙂"])
def test_odd_names_are_names(key: str) -> None:
    assert [one.key for one in read(wire({key: [(1, 1.0)]})).series] == [key]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff",
        b'"\xed\xa0\x80"',
        '{"batch": "x"}'.encode("utf-16"),
        b"\xef\xbb\xbf{}",
        b'{"batch": "not a uuid", "series": []}',
        b'{"series": []}',
        b'{"batch": "8a8a0c39-6f43-4b3a-8d8c-0a1ab6c1f3c4", "series": {}}',
        b'{"batch": "8a8a0c39-6f43-4b3a-8d8c-0a1ab6c1f3c4", "rank": -1}',
        b'{"batch": "8a8a0c39-6f43-4b3a-8d8c-0a1ab6c1f3c4", "rank": 2147483648}',
        b'{"batch": "8a8a0c39-6f43-4b3a-8d8c-0a1ab6c1f3c4", "attempt": "1"}',
        b"[" * 100_000,
        b'{"x":' * 100_000,
    ],
)
def test_what_is_no_batch_is_bad_json(body: bytes) -> None:
    with pytest.raises(IngestRefused) as caught:
        points.read(body, now=NOW)
    assert (caught.value.http_status, caught.value.code) == (400, "bad_json")


def test_limits_are_checked_before_anything_is_built() -> None:
    too_many = wire({"a": [(step, 1) for step in range(points.MAX_POINTS + 1)]})
    for body in (json.dumps(too_many).encode(), b" " * (points.MAX_BYTES + 1), b"[1" + b",1" * 3_000_000 + b"]"):
        with pytest.raises(IngestRefused) as caught:
            points.read(body, now=NOW)
        assert caught.value.http_status == 413
    exactly = read(wire({"a": [(step, 1) for step in range(points.MAX_POINTS)]}))
    assert exactly.points == points.MAX_POINTS


def test_at_most_a_hundred_refusals_are_listed_and_all_are_counted() -> None:
    batch = read(wire({"a": [(-1, 1.0)] * 250}))
    assert len(batch.refusals.listed) == 100 and batch.refusals.count == 250


def test_distributions_are_judged_one_by_one() -> None:
    good = {"key": "layer1.weight", "of": "weight", "step": 5, "edges": [0, 0.5, 1], "counts": [3, 4], "nan": 1}
    bad = [
        {**good, "edges": [0, 1]},
        {**good, "edges": [1, 0.5, 0]},
        {**good, "counts": [-1, 2]},
        {**good, "step": -1},
        {**good, "edges": [0, 1, "Infinity"]},
        {**good, "nan": -1},
        {**good, "key": ""},
        7,
    ]
    batch = read(wire(distributions=[good, *bad]))
    assert batch.refusals.count == len(bad)
    [kept] = batch.distributions
    assert kept.edges.tolist() == [0, 0.5, 1] and kept.counts.tolist() == [3, 4] and (kept.nan, kept.inf) == (1, 0)


def test_progress_keeps_what_makes_sense() -> None:
    batch = read(wire(progress={"step": 5, "total": -1, "epoch": 1.5}))
    assert batch.progress == {"step": 5, "epoch": 1.5} and "progress.total" in only(batch)["message"]


def test_a_gzip_bomb_is_noticed_at_the_limit() -> None:
    inflater = points.Inflater()
    bomb = gzip.compress(b"0" * (200 * 2**20))
    with pytest.raises(IngestRefused) as caught:
        inflater.feed(bomb)
    assert caught.value.code == "too_large"


def test_gzip_in_pieces_is_the_body_and_a_cut_or_foreign_one_is_bad() -> None:
    body = gzip.compress(b"hello" * 1000)
    inflater = points.Inflater()
    assert b"".join(inflater.feed(body[at : at + 7]) for at in range(0, len(body), 7)) == b"hello" * 1000
    inflater.finish()
    for wrong in (body[:-5], b"no gzip", body + b"more"):
        with pytest.raises(IngestRefused) as caught:
            inflate(wrong)
        assert caught.value.code == "bad_json"


numbers = st.one_of(st.integers(-5, 2**64), st.floats(), st.booleans(), st.none(), st.text(max_size=3))
anything = st.recursive(
    st.one_of(numbers, st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=12,
)
columns = st.fixed_dictionaries(
    {},
    optional={
        "key": st.one_of(st.text(max_size=12), numbers),
        "group": st.one_of(st.text(max_size=5), st.none()),
        "step": st.one_of(st.lists(numbers, max_size=6), anything),
        "value": st.one_of(st.lists(numbers, max_size=6), anything),
        "time": st.one_of(st.lists(numbers, max_size=6), anything),
    },
)
envelopes = st.fixed_dictionaries(
    {"batch": st.one_of(st.uuids().map(str), numbers)},
    optional={
        "attempt": numbers,
        "rank": st.one_of(st.integers(0, 3), numbers),
        "series": st.one_of(st.lists(st.one_of(columns, anything), max_size=4), anything),
        "distributions": st.one_of(st.lists(anything, max_size=2), anything),
        "progress": anything,
    },
)


@settings(deadline=None, max_examples=400)
@given(envelopes)
def test_any_json_gets_a_verdict_for_each_point(envelope: dict[str, Any]) -> None:
    body = json.dumps(envelope).encode()
    try:
        batch = points.read(body, now=NOW)
    except IngestRefused:
        return
    assert msgspec.json.encode(batch.refusals.listed)
    back = list(unpack(pack(batch.series)))
    for sent, found in zip(batch.series, back, strict=True):
        assert (sent.key, sent.group) == (found.key, found.group)
        assert sent.step.tobytes() == found.step.tobytes() and (sent.step >= 0).all()
        assert sent.time.tobytes() == found.time.tobytes() and np.isfinite(sent.time).all()
        assert sent.value.tobytes() == found.value.tobytes()


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(body: bytes) -> None:
    with pytest.raises(IngestRefused):
        points.read(body, now=NOW)


@settings(deadline=None, max_examples=200)
@given(envelopes)
def test_the_quick_and_the_patient_road_agree(envelope: dict[str, Any]) -> None:
    """A point that the patient road must judge elsewhere in the batch changes nothing for the others."""
    patient = {**envelope}
    if isinstance(envelope.get("series"), list):
        patient["series"] = [*envelope["series"], {"key": "x", "step": [1.0], "value": ["no number"]}]
    try:
        quick = points.read(json.dumps(envelope).encode(), now=NOW)
    except IngestRefused:
        return
    slow = points.read(json.dumps(patient).encode(), now=NOW)
    assert [(one.key, one.group, one.step.tolist()) for one in quick.series] == [
        (one.key, one.group, one.step.tolist()) for one in slow.series
    ]
    assert [one.value.tobytes() for one in quick.series] == [one.value.tobytes() for one in slow.series]
    extra = 1 if patient != envelope else 0
    assert slow.refusals.count == quick.refusals.count + extra
