"""The form of a new job: nothing typed is lost, nothing secret comes back, and a double click is one job."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs.models import Job, Runtime
from tests.cast import PASSWORD
from tests.factories import make_job

pytestmark = pytest.mark.django_db

TYPED = {
    "namespace": "vision",
    "name": "typed",
    "runtime": "shell",
    "code_kind": "files",
    "script_name": "a.sh",
    "script": "echo 1\r\necho 2\r\n",
    "command": "sh a.sh {{lr}}\r\n",
    "param_name": ["lr", ""],
    "param_value": ["0.1", ""],
    "env_name": ["X"],
    "env_value": ["1"],
    "secret_name": ["HF_TOKEN"],
    "secret_value": ["canary-3"],
    "workers": "２",  # full-width, as an input method types it
    "gpus": "0",
    "priority": "normal",
    "idempotency_key": "form-1",
}


@pytest.fixture
def browser(world: None, settings: Any, tmp_path: Any) -> Client:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path}},
    }
    client = Client()
    assert client.login(username="alice", password=PASSWORD)
    return client


def test_it_becomes_the_document_that_rest_takes(browser: Client) -> None:
    answer = browser.post("/jobs/new/", TYPED)
    assert answer.status_code == 302, answer.content.decode()[:2000]
    job = Job.objects.get()
    spec = job.parsed
    assert (spec.resources.workers, spec.parameters, spec.env) == (2, {"lr": 0.1}, {"X": "1"})
    assert "\r" not in job.spec_text and "canary" not in job.spec_text
    assert [secret.name for secret in job.secrets.all()] == ["HF_TOKEN"]


def test_a_double_click_is_one_job(browser: Client) -> None:
    first, again = browser.post("/jobs/new/", TYPED), browser.post("/jobs/new/", TYPED)
    assert first.headers["Location"] == again.headers["Location"]
    assert Job.objects.count() == 1


def test_errors_stand_at_their_field_and_nothing_typed_is_lost_but_the_secret(browser: Client) -> None:
    answer = browser.post("/jobs/new/", {**TYPED, "memory": "lots", "workers": "many"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert {"memory", "workers"} <= set(answer.context["errors"])
    for kept in ("typed", "echo 1", "sh a.sh {{lr}}", "HF_TOKEN", "many", "lots"):
        assert kept in page, kept
    assert "canary-3" not in page
    assert not Job.objects.exists()


def test_files_sent_with_a_faulty_form_are_kept_for_the_next_try(browser: Client) -> None:
    files = [SimpleUploadedFile("a.py", b"print(1)"), SimpleUploadedFile("b.py", b"print(2)")]
    sent = {**TYPED, "code_kind": "upload", "code_files": files, "paths": '["a.py", "pack/b.py"]', "command": ""}
    answer = browser.post("/jobs/new/", sent)
    digest = answer.context["form"]["upload_sha256"]
    assert answer.status_code == 422 and len(digest) == 64
    again = {**TYPED, "code_kind": "upload", "upload_sha256": digest, "command": "python pack/b.py"}
    assert browser.post("/jobs/new/", again).status_code == 302
    assert Job.objects.get().code_id == digest


def test_a_hostile_upload_is_refused_by_name_at_its_field(browser: Client) -> None:
    sent = {**TYPED, "code_kind": "upload", "code_files": SimpleUploadedFile("x.py", b""), "paths": '["../../x.py"]'}
    answer = browser.post("/jobs/new/", sent)
    assert "../../x.py" in answer.context["errors"]["code_files"][0]


def test_forecast_and_manifest_of_the_form_as_it_stands(browser: Client) -> None:
    assert b"canary" not in browser.post("/jobs/preview/", TYPED).content
    shown = browser.post("/jobs/preview/", TYPED).content.decode()
    assert "kind: Job" in shown and "HF_TOKEN" in shown
    broken = browser.post("/jobs/forecast/", {**TYPED, "memory": "lots"})
    assert broken.status_code == 200 and b"memory" in broken.content


def test_an_empty_form_is_asked_for_its_command_and_a_faulty_one_for_what_is_wrong(browser: Client) -> None:
    empty = browser.post("/jobs/forecast/", {**TYPED, "command": ""}).content.decode()
    assert "Fill in the command to see when it would start." in empty and "required" not in empty
    faulty = browser.post("/jobs/forecast/", {**TYPED, "memory": "lots"}).content.decode()
    assert 'href="#f-memory"' in faulty and "Starts now" not in faulty and "must be" not in faulty
    told = browser.post("/jobs/new/", {**TYPED, "command": ""}).context["errors"]["command"]
    assert told == ["Is required: what to run, such as python train.py"]


def test_a_blank_form_begins_with_a_runtime_that_is_neither_locked_nor_on_its_way_out(browser: Client) -> None:
    usual = browser.get("/jobs/new/").context["form"]["runtime"]
    assert usual
    special = Runtime.objects.exclude(pk="shell")
    assert special
    special.update(locked=["image"])
    assert browser.get("/jobs/new/").context["form"]["runtime"] == "shell"
    special.update(locked=[], deprecation="Use another.")
    assert browser.get("/jobs/new/").context["form"]["runtime"] == "shell"


def test_a_clone_is_filled_from_its_parent_and_a_strangers_job_is_not_there(
    browser: Client, dave: Any, speech: Any
) -> None:
    browser.post("/jobs/new/", TYPED)
    parent = Job.objects.get()
    form = browser.get(f"/jobs/new/?from={parent.pk}").context["form"]
    assert (form["name"], form["command"], form["script"]) == ("typed-2", parent.spec["command"], "echo 1\necho 2\n")
    assert form["secret"] == [{"name": "HF_TOKEN"}]
    theirs = make_job(dave, speech)
    assert browser.get(f"/jobs/new/?from={theirs.pk}").status_code == 404


def test_every_page_of_a_job_is_a_constant_number_of_queries(browser: Client, alice: Any, vision: Any) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    counts = []
    for total in (1, 40):
        while Job.objects.count() < total:
            make_job(alice, vision)
        with CaptureQueriesContext(connection) as queries:
            assert browser.get("/jobs/").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 16
