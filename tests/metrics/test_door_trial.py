"""The "test my line" box says what the door would read, by what, and which rule is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
URL = "/api/v1/metric-rules/test/"


@pytest.fixture
def ask(client: Client, alice: Any) -> Any:
    client.force_login(alice)
    return lambda **body: client.post(URL, body, content_type="application/json")


def test_one_line_is_enough(ask: Any) -> None:
    found = ask(line="epoch 3 step 1200 loss=0.312 acc=nan seed=4").json()
    assert [(one["key"], one["value"], one["step"], one["epoch"], one["by"]) for one in found["metrics"]] == [
        ("loss", 0.312, 1200, 3, "pairs"),
        ("acc", "NaN", 1200, 3, "pairs"),
    ]
    assert found["metrics"][0]["start"] == 18
    assert [(one["key"], one["why"][:19]) for one in found["ignored"]] == [("seed", "a word like this is")]
    assert found["errors"] == []


def test_rules_are_tried_and_wrong_ones_named(ask: Any) -> None:
    rules = [{"pattern": "top1 (?P<top1>[0-9.]+)", "group": "val"}, {"pattern": "("}]
    found = ask(lines=["step=5", "top1 91.5", "nothing"], rules=rules).json()
    [metric] = found["metrics"]
    assert (metric["key"], metric["step"], metric["by"], metric["line"]) == ("val/top1", 5, "rule 1", 1)
    assert [(error["rule"], bool(error["message"])) for error in found["errors"]] == [(2, True)]


@pytest.mark.parametrize(
    "body", [{}, {"line": "a", "lines": []}, {"lines": "a"}, {"lines": [""] * 201}, {"line": "a", "rules": {"x": 1}}]
)
def test_what_cannot_be_tried_is_refused_by_field(ask: Any, body: Any) -> None:
    answer = ask(**body)
    assert (answer.status_code, answer.json()["error"]["fields"] != {}) == (400, True)


def test_nobody_must_sign_in(client: Client) -> None:
    assert client.post(URL, {"line": "loss=1"}, content_type="application/json").status_code == 401
