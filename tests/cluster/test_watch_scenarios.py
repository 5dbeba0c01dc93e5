"""F10 through a real API server: every scenario is played anew, and understood.

TRAINHALL_RECORD=1 writes what was seen to tests/data/observed/, where tests/jobs/test_observed_recorded.py reads it.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cluster.observed import observe_attempt
from tests.cluster.control_plane import ControlPlane
from tests.cluster.scenarios import SCENARIOS
from tests.cluster.scene import Stage

pytestmark = pytest.mark.cluster

RECORDED = Path(__file__).parent.parent / "data" / "observed"


@pytest.fixture(scope="module")
def stage(plane: ControlPlane) -> Iterator[Stage]:
    with Stage(plane, f"scenes-{uuid.uuid4().hex[:6]}").open() as stage:
        yield stage


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_seen_is_understood(stage: Stage, name: str) -> None:
    one = SCENARIOS[name]
    scene = one.play(stage)
    job = scene.kept_job if one.deleted else scene.job()
    pods = scene.kept_pods or ([] if one.deleted else scene.pods())
    events = scene.events()
    expected = {
        "status": one.status,
        "reason_code": one.reason_code,
        "exit_code": one.exit_code,
        "ended": one.ended,
    }
    if os.environ.get("TRAINHALL_RECORD"):
        RECORDED.mkdir(exist_ok=True)
        path = RECORDED / f"{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')}.json"
        record = {
            "name": name,
            "deleted": one.deleted,
            "stopped": one.stopped,
            "expected": expected,
            "job": job,
            "pods": pods,
            "events": events,
        }
        path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")

    seen = observe_attempt(job, pods, events=events, deleted=one.deleted, stopped=one.stopped)

    found = {
        "status": seen.status,
        "reason_code": seen.reason,
        "exit_code": seen.exit_code,
        "ended": seen.ended,
    }
    assert found == expected, seen.text
