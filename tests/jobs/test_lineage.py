"""A clone is the same job again but for what was changed, and says what that is (B13)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEvent
from jobs import clones, lineage, submission
from jobs.models import Job
from jobs.reading import read_document
from tests.cast import PASSWORD
from tests.factories import make_job

pytestmark = pytest.mark.django_db

TEXT = """# the run we compare with
name: digits
namespace: vision   # the team's
runtime: shell
command: sh train.sh --lr {{lr}} --epochs {{epochs}}
parameters:
  epochs: 90        # long enough
  lr: 0.1
code:
  files: {train.sh: "echo $@"}
secrets: {HF_TOKEN: {value: canary-7}}
resources: {memory: 64Mi}
tags: [mnist, "b,c"]
"""


@pytest.fixture
def storage(settings: Any, tmp_path: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path}},
    }


@pytest.fixture
def parent(world: None, storage: None, alice: Any) -> Job:
    document = read_document(TEXT, format="yaml")
    return submission.submit(user=alice, document=document, request=None, origin="api").job


def client_of(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def clone(client: Client, job: Job, changes: dict[str, Any] | None = None, **more: Any) -> Any:
    body = {"set": {"secrets.HF_TOKEN": {"value": "canary-8"}, **(changes or {})}, **more}
    return client.post(f"/api/v1/jobs/{job.pk}/clone/", body, content_type="application/json")


def test_a_clone_of_a_clone_of_anothers_job_is_filled_and_never_takes_a_name_twice(parent: Job) -> None:
    bob, carol = client_of("bob"), client_of("carol")
    first = clone(bob, parent, {"parameters.epochs": 120})
    assert first.status_code == 201, first.content
    assert first.json()["name"] == "digits-2"
    assert first.json()["parent"] == {"id": parent.pk, "name": "digits"}
    assert [(one["label"], one["before"], one["after"]) for one in first.json()["changes"]] == [("epochs", "90", "120")]
    second = clone(carol, Job.objects.get(pk=first.json()["id"]))
    assert second.json()["name"] == "digits-3" and second.json()["changes"] == []
    assert clone(bob, parent).json()["name"] == "digits-4"
    shown = carol.get(f"/jobs/new/?from={second.json()['id']}").context["form"]
    assert (shown["name"], shown["param"][0]) == ("digits-5", {"name": "epochs", "value": "120"})
    assert shown["secret"] == [{"name": "HF_TOKEN"}] and shown["memory"] == "64Mi" and shown["cpus"] == ""
    assert '"tags"' in shown["extra"], "a tag with a comma has no field: it is kept as it is"
    assert AuditEvent.objects.filter(action="job.submit").count() == 4


def test_what_was_written_stays_as_it_was_written(parent: Job) -> None:
    job = Job.objects.get(pk=clone(client_of("bob"), parent, {"parameters.epochs": 120}).json()["id"])
    for kept in ("# the run we compare with", "# the team's", "# long enough", 'files: {train.sh: "echo $@"}', '"b,c"'):
        assert kept in job.spec_text, kept
    assert "canary" not in job.spec_text
    assert job.code_id == parent.code_id
    assert job.parsed.command == parent.parsed.command and job.parsed.parameters["epochs"] == 120


def test_one_parameter_changes_only_its_value_in_the_command(parent: Job) -> None:
    from jobs.parsing import argv_of

    job = Job.objects.get(pk=clone(client_of("bob"), parent, {"parameters.epochs": "120; id"}).json()["id"])
    before = argv_of(parent.parsed.command, parent.parsed.parameters)[3]
    after = argv_of(job.parsed.command, job.parsed.parameters)[3]
    assert after == before.replace("--epochs 90", "--epochs '120; id'")


def test_secret_values_must_come_again_or_be_left_out(parent: Job) -> None:
    bob = client_of("bob")
    answer = bob.post(f"/api/v1/jobs/{parent.pk}/clone/", {}, content_type="application/json")
    assert answer.status_code == 422
    assert "secrets.HF_TOKEN" in answer.json()["error"]["fields"]
    assert clone(bob, parent, {"secrets.HF_TOKEN": None}).json()["changes"] == [
        {"field": "secrets", "label": "secrets", "before": "HF_TOKEN", "after": "", "lines": ""}
    ]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"set": {"parameters.lr.x.y": 1, "command.x": 2}}, "command.x"),
        ({"set": {"resources.gpu": 2}}, "resources.gpu"),
        ({"set": {"a..b": 2}}, "a..b"),
        ({"parameters": {"lr": 1}}, "parameters"),
        ({"set": {}, "code": "other"}, "code"),
    ],
)
def test_what_cannot_be_set_is_named(parent: Job, body: dict[str, Any], named: str) -> None:
    if isinstance(body.get("set"), dict):
        body = {**body, "set": {"secrets.HF_TOKEN": None, **body["set"]}}
    answer = client_of("bob").post(f"/api/v1/jobs/{parent.pk}/clone/", body, content_type="application/json")
    assert answer.status_code in (400, 422), answer.content
    assert named in answer.json()["error"]["fields"], answer.content
    assert Job.objects.count() == 1


def test_a_parent_one_may_not_see_is_not_told(parent: Job, dave: Any, speech: Any) -> None:
    child = make_job(dave, speech, name="theirs", parent=parent)
    dave_sees = client_of("dave").get(f"/api/v1/jobs/{child.pk}/").json()
    assert dave_sees["parent"] is None and dave_sees["changes"] == []
    page = client_of("dave").get(f"/jobs/{child.pk}/").content.decode()
    assert parent.pk not in page
    dave_posts = client_of("dave").post(
        "/jobs/new/", {"namespace": "speech", "runtime": "shell", "command": "echo", "parent": parent.pk}
    )
    assert dave_posts.status_code == 302
    assert Job.objects.filter(owner=dave, parent=None).count() == 1
    assert clone(client_of("dave"), parent).status_code == 404


def test_names_count_on_but_a_number_that_belongs_to_the_name_stays(alice: Any, vision: Any) -> None:
    resnet = make_job(alice, vision, name="resnet-50")
    assert clones.next_name(resnet) == "resnet-50-2"
    second = make_job(alice, vision, name="resnet-50-2")
    assert clones.next_name(second) == "resnet-50-3"
    long = make_job(alice, vision, name="x" * 200)
    assert len(clones.next_name(long)) <= 200


def test_the_next_name_is_the_first_that_is_free_and_other_names_are_not_read(
    alice: Any, vision: Any, speech: Any
) -> None:
    parent = make_job(alice, vision, name="digits")
    for name in ("digits-2", "digits-2", "digits-3", "digits-5", "digits-04", "digits-x", "digits-4-a", "digit_-4"):
        make_job(alice, vision, name=name)
    make_job(alice, speech, name="digits-4")
    with CaptureQueriesContext(connection) as queries:
        assert clones.next_name(parent) == "digits-4"
    [query] = [one["sql"] for one in queries.captured_queries]
    assert "LIKE 'digits-%'" in query


def test_code_from_git_is_the_commit_that_ran_unless_the_latest_is_asked_for(alice: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    job.spec_text = '{"command": "x", "code": {"git": "https://git.example.com/r.git", "ref": "main"}}'
    job.code_label = f"https://git.example.com/r.git@{'a' * 40}"
    job.save()
    same = clones.data_to_clone(job)
    assert same["code"]["ref"] == "a" * 40
    assert [change.field for change in lineage.changes_from(job, {**same, "namespace": None, "runtime": None})] == []
    assert clones.data_to_clone(job, code="latest")["code"]["ref"] == "main"


def test_a_changed_script_is_told_by_its_lines(parent: Job) -> None:
    data = lineage.data_of(parent)
    data["code"] = {"files": {"train.sh": "echo $@\necho more\n"}}
    (change,) = lineage.changes_from(parent, data)
    assert change.field == "code.files.train.sh" and change.lines == "1 line more and 0 lines fewer"


def test_a_clone_asked_for_again_with_its_key_is_the_same_job(parent: Job) -> None:
    bob = client_of("bob")
    body = {"set": {"secrets.HF_TOKEN": {"value": "mine"}, "parameters.epochs": 5}}
    path, key = f"/api/v1/jobs/{parent.pk}/clone/", {"Idempotency-Key": "once"}
    first = bob.post(path, body, content_type="application/json", headers=key)
    again = bob.post(path, body, content_type="application/json", headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    other = bob.post(
        path, {"set": {**body["set"], "parameters.epochs": 6}}, content_type="application/json", headers=key
    )
    assert other.status_code == 409


def test_lines_of_two_long_texts_are_counted_and_not_aligned() -> None:
    before = "".join(f"a{number}\n" for number in range(20_000))
    after = "".join(f"b{number}\n" for number in range(20_001))
    (change,) = lineage._differences({"command": before}, {"command": after}, "")
    assert change.lines == "20001 lines more and 20000 lines fewer"
    (moved,) = lineage._differences({"command": "x\ny\n"}, {"command": "y\nx\n"}, "")
    assert moved.lines == "the same lines in another order"
