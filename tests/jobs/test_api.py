"""REST of jobs: one documented POST does what the form does, and answers name the field and the fix."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Job
from jobs.states import JobStatus
from tests.cast import PASSWORD
from tests.factories import make_job

pytestmark = pytest.mark.django_db

LEAST = {"namespace": "vision", "runtime": "shell", "command": "true"}


@pytest.fixture
def api(world: None, alice: Any) -> Client:
    return signed_in("alice")


def signed_in(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def post(client: Client, path: str, data: Any, *, kind: str = "application/json", **headers: str) -> Any:
    body = data if isinstance(data, str | bytes) else json.dumps(data)
    return client.post(f"/api/v1/{path}", body, content_type=kind, headers=headers)


def test_json_and_yaml_are_the_same_document(api: Client) -> None:
    made = post(api, "jobs/", {**LEAST, "name": "a"})
    assert made.status_code == 201, made.content
    assert made.json()["status"] == "queued"
    text = "# mine\nnamespace: vision\nruntime: shell\ncommand: 'true'\nresources: {workers: 2}\n"
    made = post(api, "jobs/", text, kind="application/yaml")
    assert made.status_code == 201, made.content
    job = Job.objects.get(pk=made.json()["id"])
    assert (job.spec_text, job.spec_format, job.workers) == (text, "yaml", 2)


def test_a_repeat_with_the_same_key_answers_200_with_the_first_job(api: Client) -> None:
    first = post(api, "jobs/", LEAST, **{"Idempotency-Key": "k"})
    again = post(api, "jobs/", LEAST, **{"Idempotency-Key": "k"})
    other = post(api, "jobs/", {**LEAST, "command": "false"}, **{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert first.json()["id"] == again.json()["id"]
    assert other.json()["error"]["code"] == "idempotency_conflict"


def test_errors_name_every_field(api: Client) -> None:
    answer = post(api, "jobs/", {"namespace": "vision", "runtime": "shell", "resources": {"gpu": 1}})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, "invalid_spec")
    assert set(error["fields"]) == {"command", "resources.gpu"}


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"\xff\xfe", "application/json", 422),
        (b"{", "application/json", 422),
        (b"", "application/json", 422),
        (b"[]", "application/json", 422),
        (b"9" * 5000, "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b'{"namespace": "\\ud800", "runtime": "shell", "command": "x"}', "application/json", 422),
        (b'{"namespace": "a\\u0000", "runtime": "shell", "command": "x"}', "application/json", 422),
        (b'{"namespace": "vision", "runtime": "shell", "command": "x\\u0000"}', "application/json", 422),
        (
            b'{"namespace": "vision", "runtime": "shell", "command": "x", "parameters": {"a": "\\ud800"}}',
            "application/json",
            422,
        ),
        (
            b'{"namespace": "vision", "runtime": "shell", "command": "x", "parameters": {"a": 1e400}}',
            "application/json",
            422,
        ),
        (
            b'{"namespace": "vision", "runtime": "shell", "command": "x", "resources": {"gpus": 9223372036854775808}}',
            "application/json",
            422,
        ),
        (b"a: &a [*a]", "application/yaml", 422),
        (b"x=1", "application/x-www-form-urlencoded", 415),
    ],
)
def test_odd_bodies_get_a_clear_no_and_never_a_500(api: Client, body: bytes, kind: str, status: int) -> None:
    answer = post(api, "jobs/", body, kind=kind)
    assert answer.status_code == status, answer.content[:300]
    assert answer.json()["error"]["message"]
    assert not Job.objects.exists()


def test_what_alice_sees_bob_sees_and_dave_does_not(api: Client) -> None:
    job_id = post(api, "jobs/", LEAST).json()["id"]
    assert signed_in("bob").get(f"/api/v1/jobs/{job_id}/").status_code == 200
    stranger = signed_in("dave")
    for path in ("", "logs/", "events/", "manifest/", "why/"):
        theirs = stranger.get(f"/api/v1/jobs/{job_id}/{path}")
        made_up = stranger.get(f"/api/v1/jobs/zzzzzzzzzz/{path}")
        assert (theirs.status_code, theirs.content) == (404, made_up.content)
    assert stranger.get("/api/v1/jobs/").json()["results"] == []
    assert stranger.post(f"/api/v1/jobs/{job_id}/cancel/").status_code == 404
    assert signed_in("bob").post(f"/api/v1/jobs/{job_id}/cancel/").status_code == 403


def test_stopping_with_a_reason(api: Client) -> None:
    job_id = post(api, "jobs/", LEAST).json()["id"]
    answer = post(api, f"jobs/{job_id}/cancel/", {"reason": "typo"})
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert answer.json()["reason"]["text"] == "Stopped by alice. typo"
    assert api.post(f"/api/v1/jobs/{job_id}/cancel/").status_code == 200


def test_the_manifest_masks_every_secret(api: Client) -> None:
    made = post(api, "jobs/", {**LEAST, "secrets": {"HF_TOKEN": {"value": "canary-1"}}})
    assert b"canary" not in made.content
    shown = api.get(f"/api/v1/jobs/{made.json()['id']}/manifest/")
    kinds = [manifest["kind"] for manifest in shown.json()["results"]]
    assert kinds == ["Job", "Service", "Secret"]
    assert b"canary" not in shown.content and b"ta_" not in shown.content and b"signature=" not in shown.content


def test_the_list_filters_and_pages(api: Client, alice: Any, vision: Any) -> None:
    for index in range(7):
        make_job(alice, vision, name=f"run-{index}", tags=["odd"] if index % 2 else [])
    page = api.get("/api/v1/jobs/?limit=3").json()
    assert [row["name"] for row in page["results"]] == ["run-6", "run-5", "run-4"]
    following = api.get(page["next"]).json()
    assert [row["name"] for row in following["results"]] == ["run-3", "run-2", "run-1"]
    assert len(api.get("/api/v1/jobs/?tag=odd").json()["results"]) == 3
    assert [row["name"] for row in api.get("/api/v1/jobs/?q=run-2").json()["results"]] == ["run-2"]
    assert api.get("/api/v1/jobs/?status=running").json()["results"] == []
    assert set(api.get("/api/v1/jobs/?fields=name").json()["results"][0]) == {"id", "name"}
    assert api.get("/api/v1/jobs/?status=dancing").status_code == 422
    assert api.get("/api/v1/jobs/?since=yesterday").status_code == 422
    assert api.get("/api/v1/jobs/?q=%00").status_code == 422


def test_a_list_is_a_constant_number_of_queries(
    api: Client, alice: Any, bob: Any, vision: Any, django_assert_num_queries: Any
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    make_job(alice, vision)
    with CaptureQueriesContext(
        connection,
    ) as few:
        api.get("/api/v1/jobs/")
    for index in range(30):
        make_job(bob if index % 2 else alice, vision)
    with CaptureQueriesContext(connection) as many:
        assert len(api.get("/api/v1/jobs/").json()["results"]) == 31
    assert len(many) == len(few)


def test_why_tells_the_exact_place_in_the_queue(api: Client, alice: Any, vision: Any) -> None:
    from jobs.models import Cluster

    node = {"name": "n", "gpus": 1, "gpu_type": "", "cpu_millis": 1000, "memory_bytes": 2**34, "ready": True}
    Cluster.objects.update(seen_at=timezone.now(), nodes=[node])
    first, second = make_job(alice, vision, name="a"), make_job(alice, vision, name="b")
    Job.objects.filter(pk__in=[first.pk, second.pk]).update(cpu_millis=1000)
    third = make_job(alice, vision, name="c")
    answer = api.get(f"/api/v1/jobs/{second.pk}/why/").json()
    assert (answer["position"], answer["ahead"]) == (1, 0)
    assert answer["reason"]["code"] == "WaitingForCapacity"
    assert api.get(f"/api/v1/jobs/{third.pk}/why/").json()["position"] == 2
    assert api.get(f"/api/v1/jobs/{first.pk}/why/").json()["position"] is None


def test_a_forecast_stores_nothing(api: Client) -> None:
    from jobs.models import Cluster

    node = {"name": "n", "gpus": 8, "gpu_type": "", "cpu_millis": 64000, "memory_bytes": 2**40, "ready": True}
    Cluster.objects.update(seen_at=timezone.now(), nodes=[node])
    fits = post(api, "forecast/", {**LEAST, "resources": {"gpus": 8}}).json()
    assert (fits["verdict"], fits["fit"]) == ("fits_now", ["n"])
    never = post(api, "forecast/", {**LEAST, "resources": {"gpus": 16}}).json()
    assert (never["verdict"], never["alternatives"][0]) == ("never", "1 worker × 8 GPUs")
    assert post(api, "jobs/", {**LEAST, "resources": {"gpus": 16}}).json()["error"]["code"] == "never_fits"
    assert not Job.objects.exists()


def test_an_upload_is_used_by_its_digest_and_only_by_its_owner(api: Client, settings: Any, tmp_path: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path}},
    }
    from django.core.files.uploadedfile import SimpleUploadedFile

    files = [SimpleUploadedFile("a.py", b"1"), SimpleUploadedFile("b.py", b"2")]
    sent = api.post("/api/v1/uploads/", {"file": files, "path": ["a.py", "d/b.py"]})
    assert (sent.status_code, sent.json()["files"]) == (201, 2)
    document = {**LEAST, "code": {"upload": sent.json()["sha256"]}}
    assert post(api, "jobs/", document).status_code == 201
    theirs = post(signed_in("dave"), "jobs/", {**document, "namespace": "speech"})
    assert theirs.status_code == 422 and "code.upload" in theirs.json()["error"]["fields"]
    bad = api.post("/api/v1/uploads/", {"file": SimpleUploadedFile("x.py", b""), "path": ["../x"]})
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "bad_upload")


def test_lines_are_read_from_any_point(api: Client, alice: Any, vision: Any) -> None:
    from jobs.cluster.port import RawLine
    from jobs.logs.lines import store_lines
    from tests.factories import make_attempt

    job = make_job(alice, vision, status=JobStatus.RUNNING, attempt_number=1)
    attempt = make_attempt(job, workers=2)
    first, second = attempt.workers.all()
    store_lines(attempt, first, [RawLine(number, 1.0, f"a{number}") for number in (1, 2, 3)])
    store_lines(attempt, second, [RawLine(1, 1.5, "b1"), RawLine(2, 1.5, "b2", overwritten=True)])
    store_lines(attempt, first, [RawLine(4, 2.0, "a4")])

    def texts(query: str) -> list[str]:
        return [line["text"] for line in api.get(f"/api/v1/jobs/{job.pk}/logs/?{query}").json()["lines"]]

    assert texts("") == ["a1", "a2", "a3", "b1", "b2", "a4"]
    assert texts("after=2&limit=2") == ["a3", "b1"]
    assert texts("before=6&limit=2") == ["b1", "b2"]
    assert texts("worker=1") == texts("worker=worker-1") == ["b1", "b2"]
    assert texts("attempt=2") == []
    assert api.get(f"/api/v1/jobs/{job.pk}/logs/?after=-1").status_code == 422
    assert api.get(f"/api/v1/jobs/{job.pk}/logs/?worker=%2e%2e").status_code == 422
    # a watcher that comes late with lines that are stored changes nothing
    late = type(first).objects.get(pk=first.pk)
    late.log_number = 0
    store_lines(attempt, late, [RawLine(number, 1.0, f"a{number}") for number in (1, 2, 3, 4)])
    assert texts("worker=0") == ["a1", "a2", "a3", "a4"]
