"""Saved views: one's own, and those a namespace shares; a stranger finds none of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent, Membership, User
from accounts.people import ensure_person
from accounts.roles import Role
from jobs.models import SavedView
from tests.factories import make_job

pytestmark = pytest.mark.django_db


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def send(client: Client, method: str, path: str, **body: Any) -> Any:
    return getattr(client, method)(f"/api/v1/{path}", json.dumps(body), content_type="application/json")


def test_a_view_is_kept_listed_renamed_and_deleted(world: None, alice: User) -> None:
    client = signed_in(alice)
    made = send(client, "post", "views/", name=" My  A100 ", query="?gpu=A100&status=running&page=3&cols=name&cols=age")
    assert made.status_code == 201, made.content
    view = made.json()
    assert (view["name"], view["namespace"], view["owner"]) == ("My A100", None, "alice")
    assert view["query"] == "status=running&gpu=A100&cols=name%2Cage"
    again = send(client, "post", "views/", name="My A100", query=view["query"])
    assert again.json()["id"] == view["id"]
    other = send(client, "post", "views/", name="My A100", query="status=failed")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "wrong_state")
    assert send(client, "patch", f"views/{view['id']}/", name="A100").json()["name"] == "A100"
    assert [one["name"] for one in client.get("/api/v1/views/").json()["results"]] == ["A100"]
    assert client.delete(f"/api/v1/views/{view['id']}/").status_code == 204
    assert not SavedView.objects.exists()
    assert list(
        AuditEvent.objects.filter(action__startswith="view.").order_by("pk").values_list("action", flat=True)
    ) == [
        "view.save",
        "view.change",
        "view.delete",
    ]


def test_a_shared_view_is_seen_by_the_namespace_and_changed_by_its_maker_or_a_lead(
    world: None, alice: User, bob: User, carol: User, dave: User
) -> None:
    made = send(signed_in(alice), "post", "views/", name="Team queue", query="status=queued", namespace="vision").json()
    path = f"views/{made['id']}/"
    assert [one["name"] for one in signed_in(bob).get("/api/v1/views/").json()["results"]] == ["Team queue"]
    assert signed_in(dave).get("/api/v1/views/").json()["results"] == []
    assert signed_in(dave).get(f"/api/v1/{path}").status_code == 404
    assert send(signed_in(dave), "patch", path, name="x").status_code == 404
    assert send(signed_in(bob), "patch", path, name="x").status_code == 403
    assert send(signed_in(carol), "patch", path, name="Queue").json()["name"] == "Queue"
    assert AuditEvent.objects.filter(action="view.change", namespace="vision", actor="carol").exists()
    assert signed_in(carol).delete(f"/api/v1/{path}").status_code == 204


def test_a_viewer_and_a_stranger_share_nothing(world: None, dave: User, vision: Any) -> None:
    vera = ensure_person("vera")
    Membership.objects.create(user=vera, namespace=vision, role=Role.VIEWER)
    assert send(signed_in(vera), "post", "views/", name="x", query="", namespace="vision").status_code == 403
    answer = send(signed_in(dave), "post", "views/", name="x", query="", namespace="vision")
    assert (answer.status_code, set(answer.json()["error"]["fields"])) == (422, {"namespace"})


@pytest.mark.parametrize(
    "body",
    [
        {"name": "", "query": ""},
        {"name": "x" * 61, "query": ""},
        {"name": "x", "query": "status=nonsense"},
        {"name": "x"},
    ],
)
def test_a_wrong_view_is_named(world: None, alice: User, body: dict[str, str]) -> None:
    answer = send(signed_in(alice), "post", "views/", **body)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["fields"]


def test_the_page_shows_built_in_and_saved_views_and_marks_the_present_one(
    world: None, alice: User, vision: Any
) -> None:
    make_job(alice, vision, status="failed")
    client = signed_in(alice)
    answer = client.post("/jobs/views/", {"name": "Broken", "query": "status=failed&sort=ended"})
    assert (answer.status_code, answer["Location"]) == (302, "/jobs/?status=failed&sort=ended")
    page = client.get("/jobs/?status=failed&sort=ended").content.decode()
    for name in ("My running", "Waiting", "Failed 24 h", "Broken"):
        assert f">{name}</a>" in page
    assert 'class="chip view" aria-current="true" href="?status=failed&amp;sort=ended">Broken' in page
    view = SavedView.objects.get()
    client.post(f"/jobs/views/{view.pk}/", {"name": "Broken ones", "namespace": "vision", "do": "change"})
    view.refresh_from_db()
    assert (view.name, view.namespace.slug) == ("Broken ones", "vision")
    client.post(f"/jobs/views/{view.pk}/", {"do": "delete"})
    assert not SavedView.objects.exists()


def test_who_left_a_namespace_tells_its_people_nothing_more(world: None, bob: User, vision: Any) -> None:
    client = signed_in(bob)
    view = send(client, "post", "views/", name="ours", query="status=failed", namespace="vision").json()
    Membership.objects.filter(user=bob, namespace=vision).delete()
    assert send(client, "patch", f"views/{view['id']}/", name="READ THIS").status_code in (403, 422)
    assert SavedView.objects.get().name == "ours"
    assert send(client, "patch", f"views/{view['id']}/", name="mine now", namespace="").status_code == 200
    assert SavedView.objects.get().namespace is None
