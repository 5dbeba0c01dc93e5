"""What the agent reads from event files meets what the SDK has said, at the HTTP door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jobs.credentials import attempt_token
from metrics import store
from metrics.doors.precedence import agrees
from metrics.sources import SOURCES, is_above, lesser_than, suffixed
from tests.metrics.makers import wire
from tests.metrics.server import Server, post, web_process

Points = dict[str, list[tuple[int, float]]]


@pytest.fixture
def server(db: None, tmp_path: Any) -> Iterator[Server]:
    with web_process(tmp_path) as running:
        yield running
        assert "Traceback" not in running.log.read_text(), running.log.read_text()


def send(server: Server, job: Any, points: Points, **fields: Any) -> tuple[int, dict[str, Any]]:
    body = json.dumps(wire(points, **fields)).encode()
    status, answer, _headers = post(server, job.pk, body, token=attempt_token(job.pk, 1))
    return status, answer


def told(job: Any) -> dict[str, tuple[str, dict[int, float]]]:
    """Name to source and points."""
    sources = {one["key"]: one["source"] for one in store.list_series(job.pk)}
    return {
        one.id.key: (
            sources[one.id.key],
            dict(zip(one.run.step.tolist(), one.run.value.tolist(), strict=True)),  # type: ignore[union-attr]
        )
        for one in store.read_series(job.pk, keys=list(sources))
    }


@pytest.mark.django_db(transaction=True)
def test_event_files_beside_the_sdk(server: Server, job: Any) -> None:
    exact = {step: 1 / step for step in range(1, 6)}
    rounded = [(step, float(np.float32(value))) for step, value in exact.items()]
    assert send(server, job, {"loss": list(exact.items()), "acc": [(1, 0.5)]})[0] == 200
    status, answer = send(server, job, {"loss": rounded, "acc": [(1, 0.9)], "only": [(1, 2.0)]}, source="tensorboard")
    assert (status, answer["refused_count"]) == (200, 0)
    assert told(job) == {
        "loss": ("sdk", exact),
        "acc": ("sdk", {1: 0.5}),
        "acc (tensorboard)": ("tensorboard", {1: 0.9}),
        "only": ("tensorboard", {1: 2.0}),
    }
    send(server, job, {"acc": [(2, 0.95)]}, source="tensorboard")
    assert told(job)["acc (tensorboard)"][1] == {1: 0.9, 2: 0.95}
    send(server, job, {"only": [(2, 3.0)]})
    assert told(job)["only"][0] == "sdk"


@pytest.mark.django_db(transaction=True)
def test_a_source_that_nobody_knows_is_refused(server: Server, job: Any) -> None:
    for source in ("rumour", 7, None):
        status, answer = send(server, job, {"loss": [(1, 1.0)]}, source=source)
        assert (status, answer["error"]["code"]) == (400, "bad_json")
    assert told(job) == {}


def test_the_order_of_the_doors() -> None:
    assert [is_above("sdk", one) for one in SOURCES] == [False, True, True, True, True, True]
    assert lesser_than("tensorboard") == ("file", "stdout")
    assert not is_above("rumour", "stdout") and is_above("stdout", "rumour")
    assert suffixed("x" * 200, "stdout", most=200) == "x" * 191 + " (stdout)"


@pytest.mark.parametrize(
    ("printed", "exact", "same"),
    [
        (0.123, 0.12345, True),
        (0.124, 0.12345, False),
        (0.1234, 0.12345, True),
        (0.5, 0.5, True),
        (0.5, 0.56, False),
        (93.0, 93.4, True),
        (93.0, 94.0, False),
        (1200.0, 1234.0, False),
        (0.0, 3.0, False),
        (1e-05, 1.2e-05, True),
        (1e-05, 2e-05, False),
        (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False),
        (float("inf"), float("inf"), True),
        (float("inf"), 1.0, False),
        (float(np.float32(0.1)), 0.1, True),
    ],
)
def test_a_printed_number_agrees_with_what_it_rounds(printed: float, exact: float, same: bool) -> None:
    assert agrees(printed, exact) is same
