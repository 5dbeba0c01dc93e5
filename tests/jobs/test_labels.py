"""Name, notes, tags and priority of a job: who may change them, what is refused, and what a page makes of notes (D20)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent
from jobs import labels
from jobs.models import Job, JobPin
from jobs.preview import manifests_of
from portal.templatetags.notes import markdown
from tests.factories import make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(alice: Any, vision: Any) -> Job:
    return make_job(alice, vision)


def patch(client: Client, job: Job, **values: Any) -> Any:
    return client.patch(f"/api/v1/jobs/{job.pk}/", values, content_type="application/json")


def test_alice_names_and_tags_her_job(client: Client, alice: Any, job: Job) -> None:
    client.force_login(alice)
    answer = patch(client, job, name=" digits, lr 0.1 ", tags=["mnist", "mnist", " best "], notes="**good**")
    assert answer.status_code == 200
    assert (answer.json()["name"], answer.json()["tags"]) == ("digits, lr 0.1", ["mnist", "best"])
    assert answer.json()["version"] == job.version + 1
    event = AuditEvent.objects.get(action="job.edit")
    assert (event.before["name"], event.after["name"]) == ("digits", "digits, lr 0.1")


def test_saying_the_same_again_changes_nothing(client: Client, alice: Any, job: Job) -> None:
    client.force_login(alice)
    assert patch(client, job, name="digits").json()["version"] == job.version
    assert not AuditEvent.objects.filter(action="job.edit").exists()


def test_carol_who_leads_may_and_bob_may_not(client: Client, bob: Any, carol: Any, job: Job) -> None:
    client.force_login(bob)
    assert patch(client, job, name="bobs").status_code == 403
    client.force_login(carol)
    assert patch(client, job, priority="high").json()["priority"] == "high"


def test_only_a_waiting_job_changes_its_priority(client: Client, alice: Any, vision: Any) -> None:
    client.force_login(alice)
    running = make_job(alice, vision, status="running")
    answer = patch(client, running, priority="high")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "wrong_state")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": 7}, "name"),
        ({"notes": "n" * 20_001}, "notes"),
        ({"notes": "\ud800"}, "notes"),
        ({"tags": "mnist"}, "tags"),
        ({"tags": ["x" * 61]}, "tags"),
        ({"tags": [str(number) for number in range(51)]}, "tags"),
        ({"priority": "urgent"}, "priority"),
        ({"status": "succeeded"}, "status"),
    ],
)
def test_what_cannot_be_is_refused_by_field(
    client: Client, alice: Any, job: Job, values: dict[str, Any], field: str
) -> None:
    client.force_login(alice)
    answer = patch(client, job, **values)
    assert answer.status_code in (400, 422)
    if answer.status_code == 422:
        assert field in answer.json()["error"]["fields"]
    job.refresh_from_db()
    assert job.version == 1


def test_the_form_keeps_what_was_typed(client: Client, alice: Any, job: Job) -> None:
    client.force_login(alice)
    refused = client.post(f"/jobs/{job.pk}/edit/", {"name": "x" * 300, "notes": "typed at length", "tags": "a, b"})
    assert refused.status_code == 422
    assert "typed at length" in refused.content.decode()
    assert client.post(f"/jobs/{job.pk}/edit/", {"name": "fine", "notes": "*so*", "tags": "a，b, "}).status_code == 302
    job.refresh_from_db()
    assert (job.name, job.tags) == ("fine", ["a", "b"])
    assert "<em>so</em>" in client.get(f"/jobs/{job.pk}/").content.decode()


def test_a_pin_is_ones_own(client: Client, alice: Any, bob: Any, job: Job) -> None:
    client.force_login(bob)
    for _twice in range(2):
        assert client.post(f"/jobs/{job.pk}/pin/").status_code == 302
    assert list(JobPin.objects.values_list("user__username", flat=True)) == ["bob"]
    client.post(f"/jobs/{job.pk}/unpin/")
    assert not JobPin.objects.exists()


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("<script>alert(1)</script>", "<script"),
        ("[x](javascript:alert(1))", "href"),
        ("[x](data:text/html;base64,PHNjcmlwdD4=)", "href"),
        ("![x](https://evil.example/a.png)", "<img"),
        ("<img src=x onerror=alert(1)>", "<img"),
        ('[x](https://a.example "\\" onclick=alert(1) \\"")', ' onclick="'),
    ],
)
def test_notes_run_and_load_nothing(text: str, never: str) -> None:
    assert never not in markdown(text)


def test_notes_are_markdown() -> None:
    html = markdown("# A\n\n- one\n- [two](https://a.example)\n\n|a|b|\n|-|-|\n|1|2|")
    assert "<h3>" in html
    assert 'rel="nofollow noopener noreferrer"' in html
    assert "<td>1</td>" in html


def test_a_new_priority_reaches_what_the_next_attempt_is_made_of(client: Client, alice: Any, job: Job) -> None:
    client.force_login(alice)
    told = patch(client, job, priority="high").json()
    assert told["priority"] == told["spec"]["priority"] == "high"
    (leader,) = (one for one in manifests_of(Job.objects.get(pk=job.pk)) if one["kind"] == "Job")
    assert leader["metadata"]["labels"]["trainhall.io/priority"] == "high"


def test_two_people_who_tag_at_once_both_do(alice: Any, carol: Any, job: Job) -> None:
    stale = Job.objects.for_rows().get(pk=job.pk)
    labels.tag(job, user=carol, add=["keep"], request=None)
    after = labels.tag(stale, user=alice, add=["paper"], request=None)
    assert Job.objects.get(pk=job.pk).tags == ["keep", "paper"]
    labels.tag(after, user=alice, remove=["keep"], request=None)
    assert Job.objects.get(pk=job.pk).tags == ["paper"]


def test_who_saves_notes_does_not_put_back_old_tags(client: Client, alice: Any, job: Job) -> None:
    client.force_login(alice)
    opened = {"name": job.name, "was_name": job.name, "tags": "", "was_tags": "", "was_notes": ""}
    patch(client, job, tags=["meanwhile"])
    client.post(f"/jobs/{job.pk}/edit/", {**opened, "notes": "mine"})
    job.refresh_from_db()
    assert (job.notes, job.tags) == ("mine", ["meanwhile"])
