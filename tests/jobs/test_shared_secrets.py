"""Secrets of a namespace: a lead sets them, a job uses them by name, and no door shows a value again."""

from __future__ import annotations

import base64
import io
import json
import logging
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.models import AuditEvent, Membership
from jobs import dispatch, shared_secrets, submission
from jobs.exceptions import SpecError
from jobs.form.commandline import submit_line
from jobs.logs.lines import read_lines
from jobs.models import Job, NamespaceSecret
from jobs.reading import document_of
from jobs.states import JobStatus, Reason
from tests.factories import make_attempt
from tests.jobs.test_api import LEAST, signed_in
from tests.jobs.test_journey import Hall

pytestmark = pytest.mark.django_db
PATH = "/api/v1/namespaces/vision/secrets/"
CANARY = "cadmium-7f3k2p9m"
BY_NAME = {"WANDB_API_KEY": {"from": "team-keys", "key": "wandb"}}


def put(client: Client, name: str, body: Any) -> Any:
    return client.put(f"{PATH}{name}/", json.dumps(body), content_type="application/json")


@pytest.fixture
def lead(world: None, carol: Any) -> Client:
    return signed_in("carol")


def test_a_lead_sets_and_everybody_there_sees_names(lead: Client) -> None:
    assert put(lead, "team-keys", {"values": {"wandb": CANARY, "hf": "x"}}).status_code == 204
    for name in ("alice", "carol"):
        answer = signed_in(name).get(PATH)
        (secret,) = answer.json()["results"]
        assert (secret["name"], secret["kind"], [one["key"] for one in secret["keys"]]) == (
            "team-keys",
            "values",
            ["hf", "wandb"],
        )
        assert secret["keys"][0]["set_by"] == "carol"
        assert CANARY.encode() not in answer.content
    assert signed_in("dave").get(PATH).status_code == 404
    assert put(signed_in("alice"), "team-keys", {"values": {"wandb": "y"}}).status_code == 403
    assert put(signed_in("dave"), "team-keys", {"values": {"wandb": "y"}}).status_code == 404


def test_keys_are_set_and_removed_one_by_one_and_the_trail_says_which(lead: Client, vision: Any) -> None:
    put(lead, "team-keys", {"values": {"wandb": CANARY, "hf": "x"}})
    before = bytes(NamespaceSecret.objects.get(key="wandb").ciphertext)
    assert put(lead, "team-keys", {"values": {"hf": None, "other": "z"}}).status_code == 204
    assert [row.key for row in NamespaceSecret.objects.all()] == ["other", "wandb"]
    assert bytes(NamespaceSecret.objects.get(key="wandb").ciphertext) == before
    assert put(lead, "team-keys", {"values": {"wandb": None, "other": None}}).status_code == 422
    events = AuditEvent.objects.filter(action="secret.set").order_by("pk")
    assert [event.after for event in events] == [
        {"kind": "values", "set": ["hf", "wandb"], "removed": []},
        {"kind": "values", "set": ["other"], "removed": ["hf"]},
    ]
    assert lead.delete(f"{PATH}team-keys/").status_code == 204
    assert lead.delete(f"{PATH}team-keys/").status_code == 404
    assert AuditEvent.objects.get(action="secret.delete").after == {"removed": ["other", "wandb"]}
    assert CANARY not in str(list(AuditEvent.objects.values()))


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("Team", {"values": {"a": "b"}}, "name"),
        ("x" * 64, {"values": {"a": "b"}}, "name"),
        ("t", {"values": {}}, "values"),
        ("t", {"values": "cadmium"}, "values"),
        ("t", {"values": {"a b": "cadmium"}}, "values"),
        ("t", {"values": {"a": ""}}, "values.a"),
        ("t", {"values": {"a": 5}}, "values.a"),
        ("t", {"values": {"a": "cadmium\0"}}, "values.a"),
        ("t", {"values": {"a": "cadmium" * 10_000}}, "values.a"),
        ("t", {"value": {"a": "cadmium"}}, "value"),
        ("t", {"kind": "tls", "values": {"a": "cadmium"}}, "kind"),
        ("t", {"kind": "registry", "registry": "https://ghcr.io", "username": "u", "password": "cadmium"}, "registry"),
        ("t", {"kind": "registry", "registry": "ghcr.io", "username": "", "password": "cadmium"}, "username"),
    ],
)
def test_what_cannot_be_is_named_without_its_value(lead: Client, name: str, body: Any, field: str) -> None:
    answer = put(lead, name, body)
    assert answer.status_code == 422
    assert field in answer.json()["error"]["fields"]
    assert b"cadmium" not in answer.content
    assert not NamespaceSecret.objects.exists()


def test_a_secret_keeps_its_kind(lead: Client) -> None:
    put(lead, "t", {"values": {"a": "b"}})
    account = {"kind": "registry", "registry": "ghcr.io", "username": "u", "password": "p"}
    assert put(lead, "t", account).status_code == 422
    assert put(lead, "r", account).status_code == 204


def test_a_job_names_only_what_its_namespace_has(lead: Client, alice: Any, vision: Any, carol: Any) -> None:
    put(lead, "team-keys", {"values": {"wandb": CANARY}})
    api = signed_in("alice")
    for source, key in (("team-keys", "hf"), ("other", "wandb"), ("j-7f3k2p9m4x-1", "token")):
        body = {**LEAST, "secrets": {"X": {"from": source, "key": key}}}
        answer = api.post("/api/v1/jobs/", json.dumps(body), content_type="application/json")
        assert answer.status_code == 422
        assert "there are team-keys/wandb" in answer.json()["error"]["fields"]["secrets.X"][0]
    own = {**LEAST, "namespace": "alice", "secrets": BY_NAME}
    answer = api.post("/api/v1/jobs/", json.dumps(own), content_type="application/json")
    assert "a lead sets them" in answer.json()["error"]["fields"]["secrets.WANDB_API_KEY"][0]
    named_like_its_variable = {**LEAST, "secrets": {"wandb": {"from": "team-keys"}}}
    made = api.post("/api/v1/jobs/", json.dumps(named_like_its_variable), content_type="application/json")
    assert made.status_code == 201, made.content


def test_a_clone_keeps_the_name(lead: Client, alice: Any) -> None:
    put(lead, "team-keys", {"values": {"wandb": CANARY}})
    api = signed_in("alice")
    made = api.post("/api/v1/jobs/", json.dumps({**LEAST, "secrets": BY_NAME}), content_type="application/json")
    assert made.status_code == 201, made.content
    again = api.post(f"/api/v1/jobs/{made.json()['id']}/clone/", "{}", content_type="application/json")
    assert again.status_code == 201, again.content
    assert Job.objects.get(pk=again.json()["id"]).parsed.secrets[0].from_secret == "team-keys"
    page = api.get(f"/jobs/new/?from={made.json()['id']}").content.decode()
    assert 'value="team-keys/wandb"' in page
    assert CANARY not in page


def test_the_form_offers_the_names_and_takes_one(lead: Client, alice: Any) -> None:
    put(lead, "team-keys", {"values": {"wandb": CANARY}})
    browser = signed_in("alice")
    page = browser.get("/jobs/new/").content.decode()
    assert '<option value="team-keys/wandb" label="vision">' in page
    typed = {**LEAST, "code_kind": "none", "shared_name": ["WANDB_API_KEY"], "shared_value": ["team-keys/wandb"]}
    assert browser.post("/jobs/new/", typed).status_code == 302
    assert Job.objects.get().spec_text.count("team-keys") == 1
    (secret,) = Job.objects.get().parsed.secrets
    assert (secret.name, secret.from_secret, secret.key) == ("WANDB_API_KEY", "team-keys", "wandb")


def test_the_page_is_for_its_people_and_sets_for_its_leads(lead: Client, vision: Any, bob: Any) -> None:
    page = "/namespaces/vision/secrets/"
    assert lead.post(page, {"kind": "values", "name": "team-keys", "key": "wandb", "value": CANARY}).status_code == 302
    shown = lead.get(page).content.decode()
    assert "team-keys" in shown and "Set a value" in shown and CANARY not in shown
    Membership.objects.filter(user=bob).update(role="viewer")
    looked = signed_in("bob").get(page).content.decode()
    assert "team-keys" in looked and "Set a value" not in looked and 'name="remove"' not in looked
    assert signed_in("dave").get(page).status_code == 404
    refused = lead.post(page, {"kind": "values", "name": "Team Keys", "key": "wandb", "value": CANARY})
    assert refused.status_code == 422
    assert CANARY not in refused.content.decode() and 'value="Team Keys"' in refused.content.decode()
    assert lead.post(page, {"name": "team-keys", "remove": "1"}).status_code == 302
    assert not NamespaceSecret.objects.exists()


def test_accounts_of_registries_go_with_the_images_they_are_for(
    lead: Client, vision: Any, alice: Any, carol: Any
) -> None:
    for name, registry in (("ours", "registry.example.com:5000"), ("hub", "docker.io"), ("other", "ghcr.io")):
        body = {"kind": "registry", "registry": registry, "username": "robot", "password": CANARY}
        assert put(lead, name, body).status_code == 204
    assert b"robot" not in lead.get(PATH).content
    found = json.loads(shared_secrets.pull_config(vision, ["registry.example.com:5000/ml/torch:2"]))
    assert list(found["auths"]) == ["registry.example.com:5000"]
    assert base64.b64decode(found["auths"]["registry.example.com:5000"]["auth"]).decode() == f"robot:{CANARY}"
    assert list(json.loads(shared_secrets.pull_config(vision, ["debian:13"]))["auths"]) == [
        "https://index.docker.io/v1/"
    ]
    assert shared_secrets.pull_config(vision, ["quay.io/x/y"]) == ""
    assert shared_secrets.pull_config(alice.personal_namespace, ["debian:13"]) == ""

    data = {**LEAST, "image": "registry.example.com:5000/ml/torch:2"}
    job = submission.submit(user=alice, document=document_of(data), request=None, origin="api").job
    objects = dispatch.objects_of(make_attempt(job))
    assert objects.leader["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": f"j-{job.pk}-1"}]
    assert objects.secret is not None
    assert objects.secret["type"] == "kubernetes.io/dockerconfigjson"
    assert CANARY in objects.secret["stringData"][".dockerconfigjson"]
    assert CANARY not in json.dumps(objects.jobs)
    manifest = signed_in("alice").get(f"/api/v1/jobs/{job.pk}/manifest/")
    assert CANARY.encode() not in manifest.content


@pytest.mark.django_db(transaction=True)
def test_the_value_reaches_the_process_and_nothing_else(
    world: None, local_cluster: Any, alice: Any, carol: Any, vision: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hall = Hall(local_cluster)
    lead, api = signed_in("carol"), signed_in("alice")
    assert put(lead, "team-keys", {"values": {"wandb": CANARY}}).status_code == 204
    script = f'test "$WANDB_API_KEY" = {CANARY.replace("7f", chr(39) + "7f" + chr(39))} && echo had it'
    job = hall.submit(alice, script, secrets=BY_NAME)
    hall.go()
    job = hall.over(job)
    assert (job.status, [line["text"] for line in read_lines(job.pk)]) == (JobStatus.SUCCEEDED, ["had it"])
    hall.mirror.look()
    for client in (lead, api):
        for path in (
            PATH,
            "/namespaces/vision/secrets/",
            f"/api/v1/jobs/{job.pk}/",
            f"/api/v1/jobs/{job.pk}/manifest/",
            f"/api/v1/jobs/{job.pk}/logs/",
            f"/api/v1/jobs/{job.pk}/events/",
            f"/jobs/{job.pk}/",
            f"/jobs/{job.pk}/spec/",
            f"/jobs/new/?from={job.pk}",
            "/audit/",
        ):
            answer = client.get(path)
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content
            assert CANARY.encode() not in body, path
    dumped = io.StringIO()
    call_command("dumpdata", stdout=dumped)
    assert CANARY not in dumped.getvalue()
    assert CANARY not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_job_whose_secret_was_removed_is_held_and_says_what_to_do(
    world: None, local_cluster: Any, alice: Any, carol: Any, vision: Any
) -> None:
    hall = Hall(local_cluster)
    shared_secrets.put(vision, "team-keys", {"values": {"wandb": CANARY}}, by=carol, request=None)
    job = hall.submit(alice, "true", secrets=BY_NAME)
    shared_secrets.remove(vision, "team-keys", by=carol, request=None)
    hall.go()
    job = Job.objects.get(pk=job.pk)
    assert (job.status, job.reason_code, job.held_by) == (JobStatus.QUEUED, Reason.SECRET_GONE, alice)
    assert "vision has no secret team-keys/wandb any more" in job.reason
    shared_secrets.put(vision, "team-keys", {"values": {"wandb": CANARY}}, by=carol, request=None)
    submission.release(job, user=alice)
    hall.go()
    assert hall.over(job).status == JobStatus.SUCCEEDED


def test_the_limits_are_counted(lead: Client, vision: Any, carol: Any) -> None:
    for number in range(shared_secrets.MOST_SECRETS):
        shared_secrets.put(vision, f"s{number}", {"values": {"a": "b"}}, by=carol, request=None)
    with pytest.raises(SpecError, match="at most 50 secrets"):
        shared_secrets.put(vision, "one-more", {"values": {"a": "b"}}, by=carol, request=None)
    shared_secrets.put(vision, "s1", {"values": {f"k{n}": "b" for n in range(49)}}, by=carol, request=None)
    with pytest.raises(SpecError, match="at most 50 keys"):
        shared_secrets.put(vision, "s1", {"values": {"more": "b"}}, by=carol, request=None)


def test_no_option_of_the_command_stands_for_a_secret_of_the_namespace() -> None:
    assert submit_line({**LEAST, "secrets": {"HF_TOKEN": {"value": ""}}}).startswith("trainhall submit --namespace")
    assert submit_line({**LEAST, "secrets": BY_NAME}) == "trainhall submit job.yaml"
