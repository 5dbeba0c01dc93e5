"""UX-B14: what is over can be put away and brought back. It leaves the lists; every link to it goes on working."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEvent, User
from jobs.models import Job, JobEvent
from tests.factories import make_job
from tests.jobs.test_list import names

pytestmark = pytest.mark.django_db


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def over(owner: User, namespace: Any, **fields: Any) -> Job:
    return make_job(owner, namespace, **{"status": "succeeded", "finished_at": timezone.now(), **fields})


def bulk(client: Client, action: str, jobs: list[Job], **more: Any) -> dict[str, Any]:
    wish = {"action": action, "ids": [job.pk for job in jobs], **more}
    answer = client.post("/api/v1/jobs/bulk/", json.dumps(wish), content_type="application/json")
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def test_ux_b14_an_archived_job_leaves_the_lists_and_comes_back(world: None, alice: User, vision: Any) -> None:
    away, here = over(alice, vision, name="away"), over(alice, vision, name="here")
    client = signed_in(alice)
    answer = client.post(f"/api/v1/jobs/{away.pk}/archive/")
    assert answer.status_code == 200
    assert (answer.json()["archived_by"], answer.json()["status"]) == ("alice", "succeeded")
    assert names(client, "") == ["here"]
    assert names(client, "archived=1") == ["here", "away"]
    assert names(client, "archived=only") == ["away"]
    assert names(client, "q=away") == []
    listed = client.get("/api/v1/jobs/").json()["results"]
    assert [row["id"] for row in listed] == [here.pk]
    assert len(client.get("/api/v1/jobs/?archived=1").json()["results"]) == 2
    assert "away" not in client.get("/").content.decode()
    assert client.post(f"/api/v1/jobs/{away.pk}/unarchive/").json()["archived_at"] is None
    assert names(client, "") == ["here", "away"]


def test_ux_b14_its_pages_go_on_and_say_who_archived_it_and_when(
    world: None, alice: User, carol: User, vision: Any
) -> None:
    job = over(alice, vision)
    lead = signed_in(carol)
    assert lead.post(f"/jobs/{job.pk}/archive/").status_code == 302
    job.refresh_from_db()
    assert job.archived_by == carol
    client = signed_in(alice)
    for tab in ("", "logs/", "metrics/", "events/", "files/", "spec/", "workers/"):
        page = client.get(f"/jobs/{job.pk}/{tab}")
        assert page.status_code == 200, tab
        assert f"archived by carol on {timezone.localdate(job.archived_at):%Y-%m-%d}" in page.content.decode(), tab
    assert client.get(f"/api/v1/jobs/{job.pk}/").json()["archived_by"] == "carol"
    assert client.post(f"/jobs/{job.pk}/unarchive/").status_code == 302
    assert "archived by" not in client.get(f"/jobs/{job.pk}/").content.decode()


def test_ux_b14_only_what_is_over_and_only_its_owner_or_a_lead(
    world: None, alice: User, bob: User, dave: User, vision: Any
) -> None:
    runs, job = make_job(alice, vision, status="running", started_at=timezone.now()), over(alice, vision)
    assert signed_in(alice).post(f"/api/v1/jobs/{runs.pk}/archive/").status_code == 409
    assert signed_in(bob).post(f"/api/v1/jobs/{job.pk}/archive/").status_code == 403
    assert signed_in(dave).post(f"/api/v1/jobs/{job.pk}/archive/").status_code == 404
    assert not Job.objects.exclude(archived_at=None).exists()
    page = signed_in(bob).get(f"/jobs/{job.pk}/").content.decode()
    assert f"/jobs/{job.pk}/archive/" not in page
    assert f"/jobs/{runs.pk}/archive/" not in signed_in(alice).get(f"/jobs/{runs.pk}/").content.decode()


def test_ux_b14_each_leaves_one_trace_and_a_repeat_none(world: None, alice: User, vision: Any) -> None:
    job, client = over(alice, vision), signed_in(alice)
    for verb in ("archive", "archive", "unarchive", "unarchive"):
        assert client.post(f"/api/v1/jobs/{job.pk}/{verb}/").status_code == 200
    assert list(AuditEvent.objects.filter(target=job.pk).order_by("pk").values_list("action", flat=True)) == [
        "job.archive",
        "job.unarchive",
    ]
    assert list(JobEvent.objects.filter(job=job).values_list("reason", flat=True)) == [
        "Archived by alice.",
        "Brought back from the archive by alice.",
    ]


def test_ux_b14_many_are_archived_with_an_answer_each_and_undone(
    world: None, alice: User, bob: User, vision: Any
) -> None:
    mine, bobs = [over(alice, vision), over(alice, vision)], over(bob, vision)
    runs = make_job(alice, vision, status="running", started_at=timezone.now())
    client = signed_in(alice)
    answer = bulk(client, "archive", [*mine, bobs, runs])
    assert answer["counts"] == {"done": 2, "skipped": 1, "refused": 1}
    by_id = {result["id"]: result for result in answer["results"]}
    assert by_id[mine[0].pk]["why"] == "Archived: out of the lists; nothing is deleted."
    assert by_id[runs.pk]["why"] == "Only a job that is over can be archived."
    assert bulk(client, "archive", mine)["counts"]["skipped"] == 2
    assert bulk(client, "unarchive", mine)["counts"]["done"] == 2
    assert set(Job.objects.values_list("archived_at", flat=True)) == {None}


def test_ux_b14_the_filter_stands_as_a_chip_and_a_wrong_one_is_named(world: None, alice: User, vision: Any) -> None:
    over(alice, vision, archived_at=timezone.now() - timedelta(days=1), archived_by=alice, name="away")
    client = signed_in(alice)
    page = client.get("/jobs/?archived=1&status=succeeded").content.decode()
    assert 'href="?status=succeeded" title="Take this filter away">archived too ×</a>' in page
    assert 'data-topic="jobs?status=succeeded&amp;archived=1"' in page
    wrong = client.get("/jobs/?archived=maybe").content.decode()
    assert "archived: must be 1 or only, not &#x27;maybe&#x27;" in wrong
    assert client.get("/api/v1/jobs/?archived=maybe").status_code == 422


def test_b24_the_priority_of_many_waiting_jobs_with_an_answer_each(
    world: None, alice: User, bob: User, vision: Any
) -> None:
    waits, already, bobs = make_job(alice, vision), make_job(alice, vision), make_job(bob, vision)
    Job.objects.filter(pk=already.pk).update(priority_id="high")
    runs = make_job(alice, vision, status="running", started_at=timezone.now())
    client = signed_in(alice)
    answer = bulk(client, "priority", [waits, already, bobs, runs], priority="high")
    by_id = {result["id"]: (result["outcome"], result["why"]) for result in answer["results"]}
    assert by_id[waits.pk] == ("done", "Priority: high; it was normal.")
    assert by_id[already.pk] == ("skipped", "It has this priority already.")
    assert by_id[bobs.pk][0] == "refused"
    assert by_id[runs.pk][0] == "skipped"
    waits.refresh_from_db()
    assert (waits.priority_id, waits.spec["priority"]) == ("high", "high")
    wrong = {"action": "priority", "ids": [waits.pk], "priority": "top"}
    refused = client.post("/api/v1/jobs/bulk/", json.dumps(wrong), content_type="application/json")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (422, ["priority"])


def test_ux_b14_without_scripts_the_answer_has_the_way_back(world: None, alice: User, vision: Any) -> None:
    job, client = over(alice, vision, name="away"), signed_in(alice)
    page = client.post("/jobs/bulk/", {"action": "archive", "ids": [job.pk], "query": "user=me"}).content.decode()
    assert "1 done, 0 skipped, 0 refused" in page
    assert 'name="action" value="unarchive"' in page
    assert f'name="ids" value="{job.pk}"' in page
    page = client.post("/jobs/bulk/", {"action": "unarchive", "ids": [job.pk]}).content.decode()
    assert "Back in the lists." in page
    assert names(client, "") == ["away"]
