"""A name, a tag or a path that looks like another one is refused, with the character that nobody sees; notes are kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.models import Job
from tests.cast import PASSWORD
from tests.factories import make_job

pytestmark = pytest.mark.django_db

RLO = "\u202e"


@pytest.fixture
def client(world: None) -> Client:
    client = Client()
    assert client.login(username="alice", password=PASSWORD)
    return client


def send(client: Client, method: str, path: str, document: Any) -> Any:
    call = client.post if method == "POST" else client.patch
    return call(f"/api/v1/{path}", json.dumps(document), content_type="application/json")


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"name": f"run{RLO}1"}, "name"),
        ({"name": "run\u200b1"}, "name"),
        ({"tags": ["good", f"{RLO}dab"]}, "tags"),
        ({"code": {"files": {f"train{RLO}yp.exe": "1"}}}, "code.files.train[U+202E]yp.exe"),
        ({"code": {"git": f"https://git.example.org/{RLO}x"}}, "git"),
    ],
)
def test_a_document_is_refused_by_the_field(client: Client, more: dict[str, Any], field: str) -> None:
    document = {"namespace": "vision", "runtime": "shell", "command": "true", **more}
    answer = send(client, "POST", "jobs/", document)
    assert answer.status_code == 422
    fields = answer.json()["error"]["fields"]
    assert field in fields or f"code.{field}" in fields
    assert "which nobody sees" in json.dumps(fields)
    assert not Job.objects.exists()


def test_a_new_name_and_a_tag_are_refused_and_notes_show_it(client: Client, alice: Any, vision: Any) -> None:
    job = make_job(alice, vision)
    for labels in ({"name": f"a{RLO}b"}, {"tags": [f"a{RLO}b"]}):
        assert send(client, "PATCH", f"jobs/{job.pk}/", labels).status_code == 422
    assert send(client, "PATCH", f"jobs/{job.pk}/", {"notes": f"see {RLO}gnp.exe"}).status_code == 200
    page = client.get(reverse("jobs:detail", args=[job.pk])).content.decode()
    assert f'see <bdi class="odd" data-code="U+202E">{RLO}</bdi>gnp.exe' in page
    assert f"see {RLO}gnp.exe</textarea>" in page, "who edits it gets it as it is"


def test_a_name_from_before_is_shown_in_page_title_and_words(client: Client, alice: Any, vision: Any) -> None:
    job = make_job(alice, vision, name=f"run{RLO}1")
    page = client.get(reverse("jobs:detail", args=[job.pk])).content.decode()
    assert "run[U+202E]1 · Trainhall</title>" in page
    assert f'<h1>run<bdi class="odd" data-code="U+202E">{RLO}</bdi>1</h1>' in page
    assert f'value="run{RLO}1"' in page


def test_a_saved_view_is_refused(client: Client) -> None:
    answer = send(client, "POST", "views/", {"name": f"mine{RLO}", "query": "status=failed"})
    assert answer.status_code == 422
    assert "U+202E" in str(answer.json()["error"]["fields"]["name"])
