"""Drafts are kept on the portal for their writer alone, never with a secret's value, until their job is made."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent
from jobs.form import drafts
from jobs.models import Draft, Job
from tests.cast import PASSWORD

pytestmark = pytest.mark.django_db

TYPED = {
    "name": "half",
    "namespace": "vision",
    "runtime": "shell",
    "code_kind": "none",
    "command": "echo {{lr}}",
    "param": [{"name": "lr", "value": "$(id) '"}],
    "env": [{"name": "A", "value": "1"}],
    "secret": [{"name": "HF_TOKEN", "value": "canary-1"}],
    "secret_value": "canary-2",
    "csrfmiddlewaretoken": "canary-3",
    "env_text": "HF_TOKEN=canary-4",
    "yaml": "name: half  # mine\nsecrets: {HF_TOKEN: {value: canary-5}}\n",
}


def client_of(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def put(client: Client, path: str, values: Any) -> Any:
    return client.put(path, values, content_type="application/json")


def post(client: Client, values: Any) -> Any:
    return client.post("/api/v1/drafts/", values, content_type="application/json")


def test_a_draft_follows_its_writer_to_another_device(world: None) -> None:
    first, other = client_of("alice"), client_of("alice")
    made = post(first, TYPED)
    assert made.status_code == 201, made.content
    path = f"/api/v1/drafts/{made.json()['id']}/"
    assert put(first, path, {**TYPED, "name": "half done"}).status_code == 200
    (listed,) = other.get("/api/v1/drafts/").json()["results"]
    assert listed["name"] == "half done" and "values" not in listed
    form = other.get(f"/jobs/new/?draft={listed['id']}").context["form"]
    assert (form["name"], form["command"]) == ("half done", "echo {{lr}}")
    assert form["param"] == TYPED["param"] and form["draft"] == listed["id"]
    assert "half done" in other.get("/jobs/new/").content.decode()


def test_no_value_of_a_secret_is_kept(world: None) -> None:
    alice = client_of("alice")
    path = f"/api/v1/drafts/{post(alice, TYPED).json()['id']}/"
    kept = alice.get(path)
    assert b"canary" not in kept.content
    assert kept.json()["values"]["secret"] == [{"name": "HF_TOKEN"}]
    assert "# mine" in kept.json()["values"]["yaml"]
    half = "name: x\nsecrets: {HF_TOKEN: {value: canary-6"
    assert put(alice, path, {"yaml": half}).status_code == 200
    assert "canary" not in str(Draft.objects.get().values)
    assert "canary" not in str(list(AuditEvent.objects.values_list("before", "after")))


def test_to_others_a_draft_is_not_there(world: None) -> None:
    path = f"/api/v1/drafts/{post(client_of('alice'), TYPED).json()['id']}/"
    made_up = f"/api/v1/drafts/{uuid.uuid4()}/"
    for name in ("bob", "carol", "dave", "admin"):
        them = client_of(name)
        answers = [them.get(path), put(them, path, {"name": "theirs"}), them.delete(path)]
        assert [answer.status_code for answer in answers] == [404, 404, 404]
        assert them.get(made_up).content == answers[0].content
        page = them.get(f"/jobs/new/?draft={path.split('/')[-2]}")
        assert page.status_code == 200 and b"half" not in page.content.replace(b"half of", b"")
        assert them.get("/api/v1/drafts/").json()["results"] == []
    assert Draft.objects.get().values["name"] == "half"


def test_it_goes_when_its_job_is_made_and_does_not_come_back(world: None) -> None:
    alice = client_of("alice")
    draft = post(alice, TYPED).json()["id"]
    sent = {"namespace": "vision", "runtime": "shell", "command": "echo", "draft": draft, "idempotency_key": "k"}
    assert alice.post("/jobs/new/", {**sent, "command": ""}).status_code == 422
    assert Draft.objects.count() == 1, "a refused form keeps its draft"
    assert alice.post("/jobs/new/", sent).status_code == 302
    assert Draft.objects.count() == 0 and Job.objects.count() == 1
    late = put(alice, f"/api/v1/drafts/{draft}/", TYPED)
    assert late.status_code == 404 and Draft.objects.count() == 0
    back = alice.get(f"/jobs/new/?draft={draft}")
    job, page = Job.objects.get(), back.content.decode()
    assert f"/jobs/{job.pk}/" in page and f"?from={job.pk}" in page and "That draft is gone" not in page
    assert (back.context["form"]["command"], back.context["form"]["draft"]) == ("", "")
    assert alice.post("/jobs/new/", sent).headers["Location"] == f"/jobs/{job.pk}/" and Job.objects.count() == 1
    assert job.pk not in client_of("dave").get(f"/jobs/new/?draft={draft}").content.decode()
    assert list(AuditEvent.objects.filter(action__startswith="draft").values_list("action", flat=True)) in (
        ["draft.create", "draft.delete"],
        ["draft.delete", "draft.create"],
    )


def test_the_oldest_makes_room_and_only_forms_of_a_bearable_size_are_kept(
    world: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "MAX_DRAFTS", 3)
    alice = client_of("alice")
    for number in range(5):
        assert post(alice, {"name": str(number)}).status_code == 201
    assert [one["name"] for one in alice.get("/api/v1/drafts/").json()["results"]] == ["4", "3", "2"]
    for wrong in ([1], {"name": 5}, {"param": "x"}, {"param": [{"name": "a"}] * 501}, {"script": "\ud800"}):
        assert post(alice, wrong).status_code == 422, wrong
    assert post(alice, {"script": "x" * (7 * 2**20)}).status_code == 422
    assert post(alice, {"script": "x" * 2**20, "name": "nul\0"}).status_code == 201


@pytest.mark.parametrize(
    "secrets",
    [
        "{HF_TOKEN: canary-7}",
        "{HF_TOKEN: {val: canary-7}}",
        "{HF_TOKEN: {value: canary-7, valeu: canary-7}}",
        "{HF_TOKEN: [canary-7]}",
        "[canary-7]",
        "canary-7",
        "{HF_TOKEN: {from: team, key: k, value: canary-7}}",
    ],
)
def test_a_secret_in_the_wrong_place_is_not_kept_either(world: None, secrets: str) -> None:
    alice = client_of("alice")
    extra = json.dumps({"secrets": {"HF_TOKEN": "canary-8"}, "volumes": []})
    assert post(alice, {"yaml": f"name: kept  # mine\nsecrets: {secrets}\n", "extra": extra}).status_code == 201
    values = Draft.objects.get().values
    assert "canary" not in str(values)
    assert "kept" in values["yaml"]
    assert "volumes" in values["extra"]


def test_a_reference_to_a_secret_of_the_namespace_is_kept(world: None) -> None:
    text = "secrets: {HF_TOKEN: {from: team-keys, key: hf}}  # ours\n"
    post(client_of("alice"), {"yaml": text})
    assert Draft.objects.get().values["yaml"] == text
