"""Several clusters of one portal: a job says where it runs, or its namespace does; the pages say which one it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone

from jobs.cluster.kubernetes.setting import KubernetesSetting
from jobs.models import Cluster, Job
from jobs.snapshot import take_snapshot
from tests.jobs.test_api import LEAST, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def two(world: None, settings: Any) -> None:
    settings.KUBERNETES_CLUSTERS = (
        KubernetesSetting(name="north"),
        KubernetesSetting(name="south", namespaces=("speech",)),
    )
    nodes = [{"name": "n", "gpus": 2, "gpu_type": "H200", "cpu_millis": 8000, "memory_bytes": 2**36, "ready": True}]
    for name in ("north", "south"):
        Cluster.objects.create(name=name, kind="kubernetes", nodes=nodes, seen_at=timezone.now())


def submit(name: str, **more: Any) -> Any:
    return signed_in(name).post("/api/v1/jobs/", json.dumps({**LEAST, **more}), content_type="application/json")


def test_a_job_goes_where_it_says_or_where_its_namespace_is_at_home(two: None) -> None:
    assert submit("alice").json()["cluster"] == "local"
    assert submit("alice", cluster="south").json()["cluster"] == "south"
    assert submit("dave", namespace="speech").json()["cluster"] == "south"
    assert submit("dave", namespace="speech", cluster="north").json()["cluster"] == "north"
    waiting = {name: len(snapshot.waiting) for name, snapshot, _jobs in take_snapshot()}
    assert waiting == {"local": 1, "north": 1, "south": 2}


def test_a_cluster_that_is_not_there_is_named_with_those_that_are(two: None) -> None:
    answer = submit("alice", cluster="east")
    assert answer.status_code == 422
    assert answer.json()["error"]["fields"]["cluster"] == ["there is no cluster 'east'; there are local, north, south"]
    assert not Job.objects.exists()


def test_the_forecast_is_of_the_cluster_that_was_chosen(two: None) -> None:
    asked = {**LEAST, "resources": {"gpus": 2, "gpu_type": "H200"}}

    def verdict(**more: str) -> str:
        body = json.dumps({**asked, **more})
        answer = signed_in("alice").post("/api/v1/forecast/", body, content_type="application/json")
        return str(answer.json()["verdict"])

    assert verdict(cluster="north") == "fits_now"
    assert verdict() != "fits_now"


def test_the_form_offers_them_and_the_pages_say_which_one_it_was(two: None) -> None:
    browser = signed_in("alice")
    form = browser.get("/jobs/new/").content.decode()
    assert 'name="cluster"' in form and "<option>south</option>" in form
    assert browser.post("/jobs/new/", {**LEAST, "code_kind": "none", "cluster": "south"}).status_code == 302
    job = Job.objects.get()
    assert (job.cluster_id, job.parsed.cluster) == ("south", "south")
    assert "The cluster it runs on" in browser.get(f"/jobs/{job.pk}/").content.decode()
    assert 'data-bind="cluster">south<' in browser.get("/jobs/").content.decode()
    again = browser.get(f"/jobs/new/?from={job.pk}").content.decode()
    assert "<option selected>south</option>" in again


def test_where_there_is_one_nothing_is_said_of_it(world: None, alice: Any) -> None:
    browser = signed_in("alice")
    assert 'name="cluster"' not in browser.get("/jobs/new/").content.decode()
    job = submit("alice").json()
    assert "The cluster it runs on" not in browser.get(f"/jobs/{job['id']}/").content.decode()
    assert 'data-bind="cluster"' not in browser.get("/jobs/").content.decode()
