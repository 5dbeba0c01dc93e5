"""Runtimes: an admin adds and changes them, jobs get them at once, and jobs that exist keep what they had (B5, B6)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent
from jobs import catalogue, submission
from jobs.exceptions import NotAllowed, SpecError
from jobs.models import Job, Runtime
from jobs.reading import document_of
from portal import seed

pytestmark = pytest.mark.django_db

PYTORCH: dict[str, Any] = {
    "title": "PyTorch 2.9",
    "image": "registry.example.com/ml/pytorch:2.9",
    "launchers": ["torchrun", "plain"],
    "defaults": {"resources": {"workers": 1, "gpus": 0}, "time_limit": "2h", "env": {"NCCL_DEBUG": "WARN"}},
    "locked": ["image", "time_limit", "env.NCCL_DEBUG"],
    "metric_rules": [{"pattern": r"it (?P<step>\d+) .*loss (?P<loss>\S+)", "group": "train"}],
}


@pytest.fixture
def place(vision: Any) -> Any:
    seed.ensure_priorities()
    seed.ensure_clusters()
    return vision


def submit(user: Any, **fields: Any) -> Job:
    document = document_of({"namespace": "vision", "runtime": "pytorch", "command": "true", **fields})
    return submission.submit(user=user, document=document, request=None, origin="api").job


def errors_of(call: Any) -> dict[str, list[str]]:
    with pytest.raises(SpecError) as caught:
        call()
    return caught.value.fields


def test_a_runtime_an_admin_adds_can_be_chosen_at_once(place: Any, admin: Any, alice: Any) -> None:
    catalogue.create(user=admin, slug="pytorch", values=PYTORCH, request=None)
    job = submit(alice)
    assert job.parsed.image == "registry.example.com/ml/pytorch:2.9"
    assert job.parsed.launcher == "torchrun"
    assert job.parsed.time_limit == 7200
    assert AuditEvent.objects.filter(action="runtime.create", target="pytorch").count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("image", "evil:latest"), ("time_limit", "24h"), ("env", {"NCCL_DEBUG": "INFO"})],
)
def test_a_locked_field_cannot_be_set(place: Any, admin: Any, alice: Any, field: str, value: Any) -> None:
    catalogue.create(user=admin, slug="pytorch", values=PYTORCH, request=None)
    fields = errors_of(lambda: submit(alice, **{field: value}))
    (text,) = next(iter(fields.values()))
    assert "locked by the runtime" in text


def test_saying_what_is_locked_anyway_is_no_error(place: Any, admin: Any, alice: Any) -> None:
    catalogue.create(user=admin, slug="pytorch", values=PYTORCH, request=None)
    assert submit(alice, image=PYTORCH["image"], time_limit="2h").parsed.time_limit == 7200


def test_a_job_keeps_what_it_was_submitted_with(place: Any, admin: Any, alice: Any) -> None:
    runtime = catalogue.create(user=admin, slug="pytorch", values=PYTORCH, request=None)
    before = submit(alice)
    catalogue.edit(runtime, user=admin, values={"image": "other:1", "locked": []}, version=1, request=None)
    before.refresh_from_db()
    assert before.runtime_snapshot["image"] == PYTORCH["image"]
    assert before.runtime_snapshot["version"] == 1
    assert submit(alice).runtime_snapshot["image"] == "other:1"
    event = AuditEvent.objects.get(action="runtime.edit")
    assert (event.before["image"], event.after["image"]) == (PYTORCH["image"], "other:1")


def test_one_that_is_not_offered_any_more_is_refused_by_name(place: Any, admin: Any, alice: Any) -> None:
    runtime = catalogue.create(user=admin, slug="pytorch", values=PYTORCH, request=None)
    catalogue.edit(runtime, user=admin, values={"is_active": False}, version=None, request=None)
    assert "pytorch" in errors_of(lambda: submit(alice))["runtime"][0]


def test_two_admins_do_not_undo_each_other(place: Any, admin: Any) -> None:
    runtime = catalogue.create(user=admin, slug="pytorch", values=PYTORCH, request=None)
    catalogue.edit(runtime, user=admin, values={"title": "first"}, version=1, request=None)
    assert "version" in errors_of(
        lambda: catalogue.edit(runtime, user=admin, values={"title": "second"}, version=1, request=None)
    )
    assert Runtime.objects.get(pk="pytorch").title == "first"


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"image": ""}, "image", "required"),
        ({"image": "two words"}, "image", "image name"),
        ({"launchers": []}, "launchers", "torchrun"),
        ({"launchers": ["horovud"]}, "launchers", "horovud"),
        ({"defaults": {"resources": {"gpus": -1}}}, "defaults", "resources.gpus"),
        ({"defaults": {"resorces": {}}}, "defaults", "resorces"),
        ({"defaults": {"code": {"files": {}}}}, "defaults", "code"),
        ({"defaults": []}, "defaults", "mapping"),
        ({"defaults": {"env": {"TRAINHALL_URL": "x"}}}, "defaults", "TRAINHALL_URL"),
        ({"locked": ["resources.gpu"]}, "locked", "resources.gpu"),
        ({"locked": "image"}, "locked", "list"),
        ({"metric_rules": [{"pattern": "(a"}]}, "metric_rules", "rule 1"),
        ({"metric_rules": [{"pattern": "loss"}]}, "metric_rules", "names no metric"),
        ({"metric_rules": [{"pattern": r"of (?P<total>\d+)"}]}, "metric_rules", "names no metric"),
        ({"metric_rules": [{"pattern": r"(?P<a>x)(?=y)"}]}, "metric_rules", "RE2"),
        ({"colour": "red"}, "colour", "known are"),
        ({"title": "x" * 101}, "title", "100"),
        ({"is_active": "yes"}, "is_active", "true or false"),
    ],
)
def test_what_no_job_could_use_is_refused_by_field(
    place: Any, admin: Any, values: dict[str, Any], field: str, words: str
) -> None:
    fields = errors_of(lambda: catalogue.create(user=admin, slug="pytorch", values=PYTORCH | values, request=None))
    assert words in " ".join(fields[field])
    assert not Runtime.objects.filter(pk="pytorch").exists()


@pytest.mark.parametrize("slug", ["", "UPPER", "a b", "-x", "x" * 64, "../etc"])
def test_a_name_that_is_no_slug_is_refused(place: Any, admin: Any, slug: str) -> None:
    assert "slug" in errors_of(lambda: catalogue.create(user=admin, slug=slug, values=PYTORCH, request=None))


def test_carol_who_leads_a_project_may_not_change_the_catalogue(place: Any, carol: Any) -> None:
    with pytest.raises(NotAllowed):
        catalogue.create(user=carol, slug="pytorch", values=PYTORCH, request=None)


def test_the_editor_shows_what_was_typed_and_saves_it(place: Any, admin: Any, client: Client) -> None:
    client.force_login(admin)
    typed = {
        "slug": "jax",
        "title": "JAX",
        "image": "jax:1",
        "launchers": ["plain"],
        "launcher_first": "plain",
        "defaults": "resources: {gpus: 1\n",
        "locked": ["image"],
        "rule_pattern": [r"loss (?P<loss>\S+)", ""],
        "rule_group": ["train", ""],
        "is_active": "on",
    }
    refused = client.post("/admin/runtimes/new/", typed)
    assert refused.status_code == 422
    assert "resources: {gpus: 1" in refused.content.decode()
    assert client.post("/admin/runtimes/new/", typed | {"defaults": "resources: {gpus: 1}"}).status_code == 302
    runtime = Runtime.objects.get(pk="jax")
    assert runtime.defaults == {"resources": {"gpus": 1}}
    assert runtime.metric_rules == [{"pattern": r"loss (?P<loss>\S+)", "group": "train"}]
    page = client.get("/admin/runtimes/jax/").content.decode()
    assert "JAX" in page
    assert "gpus: 1" in page


def test_the_list_costs_the_same_for_many(
    place: Any, admin: Any, client: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        catalogue.create(user=admin, slug=f"r-{number}", values=PYTORCH, request=None)
    client.force_login(admin)
    with django_assert_max_num_queries(10):
        assert client.get("/admin/runtimes/").status_code == 200


def test_rest_adds_and_edits_one(place: Any, admin: Any, alice: Any, client: Client) -> None:
    client.force_login(admin)
    made = client.post("/api/v1/runtimes/", {"slug": "pytorch", **PYTORCH}, content_type="application/json")
    assert made.status_code == 201, made.content
    edited = client.patch("/api/v1/runtimes/pytorch/", {"title": "new", "version": 1}, content_type="application/json")
    assert (edited.status_code, edited.json()["version"]) == (200, 2)
    client.force_login(alice)
    assert client.patch("/api/v1/runtimes/pytorch/", {"title": "x"}, content_type="application/json").status_code == 403
    assert client.get("/api/v1/runtimes/pytorch/").json()["title"] == "new"
