"""The Metrics tab, the overview's choice of charts, and the layouts behind both."""

from __future__ import annotations

import json
import math
import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEvent
from jobs.models import Job
from metrics import ingest, layouts, sealing
from metrics.chunks import FULL
from metrics.models import ChartLayout
from tests.metrics.makers import make_job, read, report, wire

pytestmark = pytest.mark.django_db

MANY = ["train/loss", "val/loss", "lr", "system/cpu", *[f"x/{number}" for number in range(8)]]


@pytest.fixture
def charted(alice: Any, vision: Any) -> Any:
    job = make_job(alice, vision)
    report(job, {key: [(1, 0.5)] for key in MANY})
    return job


def signed_in(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


def post(person: Any, job: Any, path: str = "", **layout: Any) -> Any:
    return signed_in(person).post(f"/jobs/{job.pk}/layout/{path}", {"layout": json.dumps(layout)})


def series(person: Any, job: Any, **query: Any) -> Any:
    [found] = signed_in(person).get(f"/api/v1/jobs/{job.pk}/series/", query).json()["series"]
    return found


def shown(person: Any, job: Any, query: str = "") -> list[str]:
    page = signed_in(person).get(f"/jobs/{job.pk}/charts/overview/{query}")
    assert page.status_code == 200
    return [one["key"] for one in page.context["chosen"]]


def test_the_metrics_tab_has_every_chart_by_group(alice: Any, charted: Any) -> None:
    page = signed_in(alice).get(f"/jobs/{charted.pk}/metrics/")
    text = page.content.decode()
    assert page.status_code == 200 and all(f'data-key="{key}"' in text for key in MANY)
    assert [group["name"] for group in page.context["charts"]["groups"]] == ["train", "val", "", "x", "system"]
    assert [group["opens"] for group in page.context["charts"]["groups"]] == [True, True, True, True, False]
    assert "format=parquet" in text and 'aria-current="page">Metrics' in text


def test_beyond_sixty_charts_groups_are_folded(alice: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    report(job, {f"{group}/{number}": [(1, 0.5)] for group in ("train", "val", "x") for number in range(31)})
    page = signed_in(alice).get(f"/jobs/{job.pk}/metrics/")
    assert [group["opens"] for group in page.context["charts"]["groups"]] == [True, False, False]


def test_an_empty_job_says_how_to_report(alice: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    for path in ("metrics/", "charts/overview/"):
        assert "No metrics yet" in signed_in(alice).get(f"/jobs/{job.pk}/{path}").content.decode()


def test_a_job_that_is_over_has_one_line_where_no_metric_will_come(alice: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    Job.objects.filter(pk=job.pk).update(status="failed", finished_at=timezone.now())
    for path in ("metrics/", "charts/overview/"):
        page = signed_in(alice).get(f"/jobs/{job.pk}/{path}").content.decode()
        assert "It reported no metrics." in page and "No metrics yet" not in page


def test_the_number_of_the_newest_points_goes_with_the_cards(alice: Any, charted: Any) -> None:
    charted.feed.refresh_from_db()
    page = signed_in(alice).get(f"/jobs/{charted.pk}/metrics/").content.decode()
    assert f'data-points-seq="{charted.feed.points_seq}"' in page and charted.feed.points_seq == 1


def test_the_overview_begins_with_what_people_look_at_first(alice: Any, charted: Any) -> None:
    assert shown(alice, charted) == ["train/loss", "val/loss", "lr", "x/0", "x/1", "x/2"]


def test_ones_own_pins_are_kept_for_every_job_of_the_namespace(alice: Any, bob: Any, vision: Any, charted: Any) -> None:
    kept = post(alice, charted, pins=["x/7", "lr"], hidden=["x/1"]).json()
    assert (kept["pins"], kept["hidden"], kept["source"]) == (["x/7", "lr"], ["x/1"], "own")
    other = make_job(bob, vision)
    report(other, {key: [(1, 0.5)] for key in MANY})
    assert shown(alice, charted) == shown(alice, other) == ["x/7", "lr"]
    assert "x/7" not in shown(bob, charted), "bob has not pinned it"
    assert shown(alice, charted, "?pin=val/loss&pin=gone") == ["val/loss"], "a link may say others"
    reset = signed_in(alice).post(f"/jobs/{charted.pk}/layout/", {"reset": "1"}).json()
    assert (reset["pins"], reset["hidden"], reset["source"]) == ([], [], "usual")
    assert shown(alice, charted)[0] == "train/loss"


def test_what_is_hidden_is_not_chosen(alice: Any, charted: Any) -> None:
    post(alice, charted, hidden=["train/loss", "lr"])
    assert shown(alice, charted)[:2] == ["val/loss", "x/0"]


def test_a_lead_shares_a_layout_and_the_audit_trail_has_it(alice: Any, bob: Any, carol: Any, charted: Any) -> None:
    post(alice, charted, pins=["x/3"])
    assert post(bob, charted, "share/", pins=["lr"]).status_code == 403
    assert post(carol, charted, "share/", pins=["x/5"]).json()["pins"] == ["x/5"]
    assert shown(bob, charted) == shown(carol, charted) == ["x/5"]
    assert shown(alice, charted) == ["x/3"], "her own goes before it"
    shared = AuditEvent.objects.get(action="layout.share")
    assert (shared.actor, shared.namespace, shared.after) == ("carol", "vision", {"pins": ["x/5"], "hidden": []})
    assert post(carol, charted, "share/", pins=["x/6"]).status_code == 200
    newest: Any = AuditEvent.objects.filter(action="layout.share").latest("pk")
    assert newest.before["pins"] == ["x/5"]
    assert ChartLayout.objects.filter(owner=None).count() == 1


@pytest.mark.parametrize(
    "fields",
    [{"pins": [f"x/{number}" for number in range(layouts.MOST_PINS + 1)]}, {"pins": [""]}, {"hidden": ["a\0b"]}],
)
def test_a_layout_that_cannot_be_is_refused(alice: Any, charted: Any, fields: Any) -> None:
    answer = post(alice, charted, **fields)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "bad_layout"
    assert not ChartLayout.objects.exists()


def test_dave_finds_none_of_it(dave: Any, charted: Any) -> None:
    client = signed_in(dave)
    for path in ("metrics/", "charts/overview/"):
        assert client.get(f"/jobs/{charted.pk}/{path}").status_code == 404
    for path in ("", "share/"):
        assert post(dave, charted, path, pins=["lr"]).status_code == 404


def test_the_curve_of_a_zoomed_view_is_that_of_the_whole(alice: Any, charted: Any) -> None:
    report(charted, {"long": [(step, float(step % 7)) for step in range(1000)]})
    whole = series(alice, charted, key="long", buckets=0, smooth="0.9")
    part = series(alice, charted, key="long", smooth="0.9", **{"from": 500, "to": 599})
    assert part["smooth"]["value"] == whole["smooth"]["value"][500:600] and part["value"] == whole["value"][500:600]
    few = series(alice, charted, key="long", buckets=10, smooth="0.9")
    assert few["smooth"]["value"] == [whole["smooth"]["value"][step] for step in few["step"]]
    usual = series(alice, charted, key="long", smooth="auto")
    assert (usual["smooth"]["mode"], usual["smooth"]["weight"]) == ("ema", 0.6)
    assert "smooth" not in series(alice, charted, key="lr", smooth="auto")


@pytest.mark.parametrize("x", ["step", "time"])
def test_a_curve_by_distance_is_that_of_the_whole_where_chunks_are_not_read(alice: Any, charted: Any, x: str) -> None:
    value = [math.sin(step / 50) for step in range(3 * FULL)]
    pairs = [(step, "NaN" if step in (0, 3 * FULL - 1) else value[step]) for step in range(3 * FULL)]
    began = time.time() - 3 * FULL
    for start in range(0, 3 * FULL, FULL):
        body = wire({"long": pairs[start : start + FULL]})
        body["series"][0]["time"] = [began + step for step in range(start, start + FULL)]
        ingest.accept(charted.pk, 1, read(body), namespace_id=charted.namespace_id)
        sealing.seal(charted.pk, 1, leave=timedelta(0))
    asked: dict[str, Any] = {"key": "long", "smooth": "0.9", "smooth_by": "distance", "x": x}
    whole = series(alice, charted, buckets=0, **asked)
    low, high = whole[x][FULL - 400], whole[x][FULL - 1]
    part = series(alice, charted, **asked, **{"from": low, "to": high})
    curve = dict(zip(whole["step"], whole["smooth"]["value"], strict=True))
    assert part["smooth"]["value"] == [curve[step] for step in part["step"]] and len(part["step"]) >= 400
    assert part["smooth"]["span"] == whole["smooth"]["span"] == whole[x][-1] - whole[x][0]


def test_a_spike_of_one_step_is_there_at_every_zoom(alice: Any, charted: Any) -> None:
    report(charted, {"long": [(step, 9.5 if step == 31_337 else 0.5) for step in range(60_000)]})
    found = series(alice, charted, key="long", buckets=100)
    assert max(found["max"]) == 9.5 and sum(found["count"]) == found["total"] == 60_000
    assert found["highest"] == {"step": 31_337, "value": 9.5} and found["lowest"]["value"] == 0.5
