"""Layouts: sizes, goals, order and directions are kept; a person's goes before the namespace's, that before the job's own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent
from jobs.models import Job
from jobs.spec import ChartGoal, Charts, JobSpec, spec_to_dict
from metrics import layouts
from metrics.layouts import Layout
from metrics.models import ChartLayout
from tests.metrics.makers import make_job, report

pytestmark = pytest.mark.django_db

KEYS = ["train/acc", "train/loss", "val/acc", "val/loss", "lr", "system/cpu"]


@pytest.fixture
def charted(alice: Any, vision: Any) -> Any:
    job = make_job(alice, vision)
    report(job, {key: [(1, 0.5)] for key in KEYS})
    return job


def with_charts(job: Job, **charts: Any) -> Job:
    spec = JobSpec(job.namespace.slug, job.name, "shell", "shell:1", "true", charts=Charts(**charts))
    Job.objects.filter(pk=job.pk).update(spec=spec_to_dict(spec))
    return job


def client_of(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


def post(person: Any, job: Any, path: str = "", **layout: Any) -> Any:
    return client_of(person).post(f"/jobs/{job.pk}/layout/{path}", {"layout": json.dumps(layout)})


def seen(person: Any, job: Any) -> Any:
    return client_of(person).get(f"/jobs/{job.pk}/charts/").context["charts"]


def keys_on(page: Any) -> list[str]:
    return [one["key"] for group in page["groups"] for one in group["keys"]]


def test_a16_a_size_is_kept_for_oneself_and_shared_by_a_lead(alice: Any, bob: Any, carol: Any, charted: Any) -> None:
    kept = post(alice, charted, sizes={"train/loss": "full", "val/loss": "wide", "lr": "small"}).json()
    assert kept["sizes"] == {"train/loss": "full", "val/loss": "wide"}, "small is what is usual"
    assert (
        'data-key="train/loss" data-size="full"' in client_of(alice).get(f"/jobs/{charted.pk}/charts/").content.decode()
    )
    assert seen(bob, charted)["layout"]["sizes"] == {}
    assert post(carol, charted, "share/", sizes={"lr": "wide"}).status_code == 200
    assert seen(bob, charted)["layout"]["sizes"] == {"lr": "wide"}
    assert seen(alice, charted)["layout"]["sizes"]["train/loss"] == "full", "her own goes before it"


def test_a16_an_order_holds_within_groups_and_lifts_their_group(alice: Any, charted: Any) -> None:
    usual = ["train/acc", "train/loss", "val/acc", "val/loss", "lr", "system/cpu"]
    assert keys_on(seen(alice, charted)) == usual
    post(alice, charted, order=["val/loss", "train/loss"])
    assert keys_on(seen(alice, charted)) == ["val/loss", "val/acc", "train/loss", "train/acc", "lr", "system/cpu"]


@pytest.mark.parametrize(
    "layout",
    [
        {"sizes": {"lr": "huge"}},
        {"sizes": ["lr"]},
        {"better": {"lr": "best"}},
        {"goals": {"lr": 1}},
        {"goals": {"lr": {"value": "1", "label": ""}}},
        {"goals": {"lr": {"value": 10**400, "label": ""}}},
        {"goals": {"lr": {"value": 1, "label": "a" * 61}}},
        {"goals": {"lr": {"value": 1, "label": "\0"}}},
        {"goals": {"lr": {"value": 1, "label": "paper\u202e"}}},
        {"goals": {"": {"value": 1, "label": ""}}},
        {"order": "lr"},
        {"order": [f"x/{number}" for number in range(layouts.MOST + 1)]},
        {"colours": {}},
        [],
        None,
    ],
)
def test_a_layout_that_cannot_be_is_refused(alice: Any, charted: Any, layout: Any) -> None:
    answer = client_of(alice).post(f"/jobs/{charted.pk}/layout/", {"layout": json.dumps(layout)})
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "bad_layout"
    assert client_of(alice).post(f"/jobs/{charted.pk}/layout/", {"layout": "{"}).status_code == 422
    assert not ChartLayout.objects.exists()


def test_a21_goals_and_directions_are_kept(alice: Any, charted: Any) -> None:
    goals = {"val/acc": {"value": 0.97, "label": "paper"}}
    kept = post(alice, charted, goals=goals, better={"lr": "max"}).json()
    assert (kept["goals"], kept["better"]) == (goals, {"lr": "max"})
    assert seen(alice, charted)["layout"]["goals"] == goals
    audited: Any = AuditEvent.objects.get(action="layout.keep")
    assert audited.after["goals"] == goals


def test_a17_globs_become_keys_and_the_longest_that_matches_wins() -> None:
    charts = Charts(
        pin=("val/*", "train/loss"),
        order=("*loss",),
        hide=("system/*", "nothing"),
        size={"*": "wide", "train/*": "full", "train/loss": "small"},
        goals={"*/acc": ChartGoal(0.9), "val/acc": ChartGoal(0.97, "paper")},
        best={"lr": "max"},
    )
    assert layouts.of_job(charts, KEYS) == Layout(
        pins=["val/acc", "val/loss", "train/loss"],
        order=["train/loss", "val/loss"],
        hidden=["system/cpu"],
        sizes={
            "train/acc": "full",
            "train/loss": "small",
            "val/acc": "wide",
            "val/loss": "wide",
            "lr": "wide",
            "system/cpu": "wide",
        },
        goals={"train/acc": {"value": 0.9, "label": ""}, "val/acc": {"value": 0.97, "label": "paper"}},
        better={"lr": "max"},
        source="job",
    )
    many = layouts.of_job(Charts(pin=("*",)), [f"x/{number}" for number in range(9)])
    assert len(many.pins) == layouts.MOST_PINS


def test_a17_ones_own_goes_before_the_namespaces_before_the_jobs(alice: Any, carol: Any, charted: Any) -> None:
    assert seen(alice, charted)["layout"]["source"] == "usual"
    with_charts(charted, pin=("val/*",), order=("val/*",))
    found = seen(alice, charted)
    assert (found["layout"]["source"], found["layout"]["pins"]) == ("job", ["val/acc", "val/loss"])
    assert keys_on(found)[:2] == ["val/acc", "val/loss"]
    overview = client_of(alice).get(f"/jobs/{charted.pk}/charts/overview/").context["chosen"]
    assert [one["key"] for one in overview] == ["val/acc", "val/loss"]
    post(carol, charted, "share/", pins=["lr"])
    assert (seen(alice, charted)["layout"]["source"], seen(alice, charted)["layout"]["pins"]) == ("namespace", ["lr"])
    post(alice, charted, pins=["train/acc"])
    assert (seen(alice, charted)["layout"]["source"], seen(alice, charted)["layout"]["pins"]) == ("own", ["train/acc"])
    reset = {"reset": "1"}
    assert client_of(alice).post(f"/jobs/{charted.pk}/layout/", reset).json()["source"] == "namespace"
    assert client_of(alice).post(f"/jobs/{charted.pk}/layout/share/", reset).status_code == 403
    assert client_of(carol).post(f"/jobs/{charted.pk}/layout/share/", reset).json()["source"] == "job"
    assert AuditEvent.objects.get(action="layout.unshare").before == {"pins": ["lr"], "hidden": []}


def test_a_layout_from_before_there_were_sizes_is_read(alice: Any, vision: Any, charted: Any) -> None:
    ChartLayout.objects.create(namespace=vision, owner=alice, layout={"pins": ["lr"], "hidden": []})
    assert layouts.layout_of(alice, charted, keys=KEYS) == Layout(pins=["lr"], source="own")
