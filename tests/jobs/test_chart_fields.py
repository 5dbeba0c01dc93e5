"""UX-A17: the charts of a job document are read whole, or refused with the field and the fix."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.chart_fields import told
from jobs.exceptions import SpecError
from jobs.form.fields import data_of, extra_of, fields_of
from jobs.parsing import parse_job
from jobs.reading import document_of, read_document
from jobs.spec import ChartGoal, Charts, spec_from_dict, spec_to_dict

TEXT = """\
namespace: vision
runtime: numpy
command: python train.py
charts:
  pin: [val/acc, train/loss]
  order: ["val/*"]
  hide: ["system/*"]  # nobody looks at them
  log_y: [train/loss]
  size: {val/acc: wide, "train/*": full}
  best: {throughput: max}
  goals:
    val/acc: 0.97
    val/loss: {value: 1, label: paper}
"""


def parse(data: dict[str, Any] | str) -> Any:
    document = read_document(data, format="yaml") if isinstance(data, str) else document_of(data)
    return parse_job(document, runtimes={"numpy": {"image": "numpy:1"}}, priorities=("normal",)).spec


def wrong(charts: Any) -> dict[str, list[str]]:
    with pytest.raises(SpecError) as caught:
        parse({"namespace": "vision", "runtime": "numpy", "command": "true", "charts": charts})
    return caught.value.fields


def test_a17_every_field_is_read_and_comes_back_from_the_database() -> None:
    spec = parse(TEXT)
    assert spec.charts == Charts(
        pin=("val/acc", "train/loss"),
        order=("val/*",),
        hide=("system/*",),
        log_y=("train/loss",),
        size={"val/acc": "wide", "train/*": "full"},
        best={"throughput": "max"},
        goals={"val/acc": ChartGoal(0.97), "val/loss": ChartGoal(1.0, "paper")},
    )
    assert spec_from_dict(spec_to_dict(spec)) == spec


def test_a17_it_is_told_in_sentences() -> None:
    assert told(parse(TEXT).charts) == [
        "Pinned: val/acc, train/loss.",
        "First: val/*.",
        "Hidden: system/*.",
        "Log y: train/loss.",
        "Wide: val/acc.",
        "Full: train/*.",
        "Best of throughput: its max.",
        "Goal of val/acc: 0.97.",
        "Goal of val/loss: 1 (paper).",
    ]
    assert told(Charts()) == []


def test_a17_a_job_from_before_there_were_charts_is_read_too() -> None:
    stored = spec_to_dict(parse(TEXT))
    del stored["charts"]
    assert spec_from_dict(stored).charts == Charts()


@pytest.mark.parametrize(
    ("charts", "field", "words"),
    [
        ([], "charts", "must be a mapping such as {pin:"),
        ({"pins": ["a"]}, "charts.pins", "did you mean 'pin'?"),
        ({"pin": "val/acc"}, "charts.pin", "must be a list of at most 200 names of metrics, such as [val/acc"),
        ({"hide": [3]}, "charts.hide", "3 is not the name of a metric; put it in quotes"),
        ({"order": ["a" * 201]}, "charts.order", "longer than 200 characters"),
        ({"pin": ["loss\u202e"]}, "charts.pin", "holds U+202E, which nobody sees"),
        ({"size": {"a": "huge"}}, "charts.size.a", "must be one of small, wide, full, not 'huge'"),
        ({"size": ["a"]}, "charts.size", "must map at most 200 names of metrics, such as {val/acc: wide}"),
        ({"best": {"a": "lowest"}}, "charts.best.a", "must be one of min, max"),
        ({"goals": {"a": "high"}}, "charts.goals.a", "must be a number, or {value: 0.9, label: paper}, not 'high'"),
        ({"goals": {"a": True}}, "charts.goals.a", "must be a number"),
        ({"goals": {"a": float("nan")}}, "charts.goals.a", "must be a number"),
        ({"goals": {"a": 10**400}}, "charts.goals.a", "must be a number"),
        ({"goals": {"a": {"value": 1, "text": "b"}}}, "charts.goals.a.text", "there is no such field"),
        ({"goals": {"a": {"value": 1, "label": "b" * 61}}}, "charts.goals.a.label", "60 are allowed"),
    ],
)
def test_a17_what_cannot_be_is_refused_with_the_field_and_the_fix(charts: Any, field: str, words: str) -> None:
    found = wrong(charts)
    assert list(found) == [field] and words in found[field][0]


def test_a17_an_error_says_its_line() -> None:
    with pytest.raises(SpecError) as caught:
        parse(TEXT.replace("full}", "fill}"))
    assert caught.value.fields["charts.size.train/*"][0].startswith("line 9: must be one of small, wide, full")


def test_a17_the_form_has_no_field_for_it_and_keeps_it() -> None:
    data = read_document(TEXT, format="yaml").data
    fields = fields_of(data)
    assert list(extra_of(fields)) == ["charts"]
    again = data_of({**fields, "env_text": ""}, secrets=[])
    assert again["charts"] == data["charts"] and list(again)[-1] == "charts"
