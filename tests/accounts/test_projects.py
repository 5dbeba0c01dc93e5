"""Projects and admins made by hand, and what ends for good when an account is disabled."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from rest_framework.test import APIClient

from accounts import people
from accounts.models import ApiToken, AuditEvent, Namespace, User
from portal import seed

pytestmark = pytest.mark.django_db
LIST = "/api/v1/namespaces/"


def inside(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_an_admin_makes_a_project_on_the_page(admin: User) -> None:
    answer = inside(admin).post("/admin/access/projects/", {"project": "nlp", "description": "Language"})
    assert answer.status_code == 302
    project = Namespace.objects.get(slug="nlp")
    assert (project.kind, project.kubernetes_name, project.description) == ("project", "p-nlp", "Language")
    assert not project.memberships.exists()
    event = AuditEvent.objects.get(action="namespace.create", namespace="nlp")
    assert (event.actor, event.after) == ("admin", {"description": "Language"})


@pytest.mark.parametrize(
    ("name", "words"),
    [("vision", "already"), ("Vision 2", "a-z"), ("", "a-z"), ("x" * 41, "a-z"), ("alice", "already"), ("a\0b", "a-z")],
)
def test_a_name_that_is_none_or_taken_is_refused_and_stays_typed(
    admin: User, alice: User, vision: Any, name: str, words: str
) -> None:
    answer = inside(admin).post("/admin/access/projects/", {"project": name, "description": "Kept as typed"})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert words in page and "Kept as typed" in page
    assert not Namespace.objects.filter(description="Kept as typed").exists()


def test_rest_makes_one_in_a_session_of_an_admin_and_not_otherwise(admin: User, alice: User) -> None:
    client = APIClient()
    client.force_login(admin)
    made = client.post(LIST, {"name": "speech-2"}, format="json")
    assert made.status_code == 201 and made.json()["name"] == "speech-2" and made.json()["role"] is None
    again = client.post(LIST, {"name": "speech-2"}, format="json")
    assert again.status_code == 400 or again.status_code == 422
    assert "already" in str(again.json()["error"]["fields"]["name"])

    client.force_login(alice)
    assert client.post(LIST, {"name": "mine"}, format="json").status_code == 403
    _token, text = ApiToken.objects.create(user=admin, scope="admin")
    by_token = APIClient(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert by_token.post(LIST, {"name": "mine"}, format="json").status_code == 403
    assert not Namespace.objects.filter(slug="mine").exists()


def test_who_was_disabled_does_not_come_back_with_an_old_session_or_token(admin: User, alice: User) -> None:
    laptop = inside(alice)
    _token, text = ApiToken.objects.create(user=alice, scope="read")
    stolen = APIClient(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert laptop.get("/me/tokens/").status_code == 200 and stolen.get(LIST).status_code == 200

    page = f"/admin/users/{alice.pk}/"
    inside(admin).post(page, {"disable": ""})
    inside(admin).post(page, {"enable": ""})

    alice.refresh_from_db()
    assert alice.is_active
    assert laptop.get("/me/tokens/").status_code == 302, "it must sign in again"
    assert stolen.get(LIST).status_code == 401
    assert inside(alice).get("/me/tokens/").status_code == 200


def test_an_account_that_the_directory_ended_needs_a_new_session_too(alice: User) -> None:
    alice.source = "ldap"
    alice.save()
    laptop = inside(alice)
    people.end([alice.subject])
    people.revive([alice.subject])
    assert laptop.get("/me/tokens/").status_code == 302


def test_sessions_from_before_there_were_generations_go_on(alice: User) -> None:
    from django.contrib.auth.base_user import AbstractBaseUser

    assert alice.get_session_auth_hash() == AbstractBaseUser.get_session_auth_hash(alice)


def test_the_first_admin_is_made_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("a long enough one\n"))
    call_command("create_admin", "root-of-all", stdout=(said := StringIO()))
    made = User.objects.get(username="root-of-all")
    assert made.is_site_admin and made.source == "local" and made.check_password("a long enough one")
    assert "is an admin" in said.getvalue()

    monkeypatch.setattr("sys.stdin", StringIO("a long enough one\n"))
    with pytest.raises(CommandError, match="already"):
        call_command("create_admin", "root-of-all")
    monkeypatch.setattr("sys.stdin", StringIO("short\n"))
    with pytest.raises(CommandError, match="12 characters"):
        call_command("create_admin", "another")
    assert not User.objects.filter(username="another").exists()


@pytest.mark.parametrize(("is_demo", "projects"), [(False, set()), (True, {"vision", "speech"})])
def test_a_directory_of_ones_own_gets_nothing_of_the_demo(
    settings: Any, tmp_path: Any, is_demo: bool, projects: set[str]
) -> None:
    settings.DIRECTORY, settings.HAS_DEMO_DIRECTORY = object(), is_demo
    settings.TRAINHALL_DATA_DIR = tmp_path
    seed.seed()
    assert set(Namespace.objects.filter(kind="project").values_list("slug", flat=True)) == projects
