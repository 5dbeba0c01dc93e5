"""The page of a namespace's members: for its leads to read, for admins to give roles by hand, with the rules of REST."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEvent, Membership, Namespace, User
from tests.factories import make_job

pytestmark = pytest.mark.django_db
PAGE, GIVE = "/namespaces/vision/members/", "/admin/access/projects/vision/members/"


def as_(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def shown(client: Client, **query: Any) -> list[tuple[str, str]]:
    rows = client.get(PAGE, query).context["rows"]
    return [(one.person.username, str(one.row.held.role)) for one in rows]


def test_a_lead_sees_who_is_here_and_why_and_nothing_to_press(alice: User, carol: User, vision: Namespace) -> None:
    Membership.objects.create(user=alice, namespace=vision, role="viewer", source="ldap:vision-guests")
    make_job(alice, vision)
    desk = as_(carol)
    assert shown(desk) == [("alice", "member"), ("bob", "member"), ("carol", "lead")]
    page = desk.get(PAGE).content.decode()
    assert "through vision-guests" in page and "jobs: 1 waiting" in page
    assert "Give a role" not in page and "Take away" not in page and "asks an admin" in page
    assert PAGE in desk.get("/me/namespaces/").content.decode()


def test_a_role_that_has_ended_is_not_there(bob: User, carol: User, vision: Namespace) -> None:
    Membership.objects.filter(user=bob, namespace=vision).update(ends_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert "bob" not in dict(shown(as_(carol)))


def test_members_and_strangers_do_not_read_it(bob: User, dave: User, vision: Namespace) -> None:
    assert as_(bob).get(PAGE).status_code == 403
    assert as_(dave).get(PAGE).status_code == 404


def test_an_admin_gives_changes_and_takes_it_here(admin: User, dave: User, vision: Namespace) -> None:
    desk = as_(admin)
    given = desk.post(GIVE, {"username": "dave", "role": "viewer", "ends_at": "2100-12-31"}, follow=True)
    assert given.redirect_chain == [(PAGE, 302)]
    assert "dave is viewer of vision from now on." in given.content.decode()
    assert "by hand, until 31 Dec 2100" in given.content.decode()
    row = Membership.objects.get(user=dave, namespace=vision)
    change = f"/admin/access/roles/{row.pk}/"
    assert desk.post(change, {"here": "1", "role": "member", "ends_at": "2100-12-31"}).headers["Location"] == PAGE
    assert ("dave", "member") in shown(desk)
    assert desk.post(change, {"here": "1", "take": ""}).headers["Location"] == PAGE
    assert "dave" not in dict(shown(desk))
    told = AuditEvent.objects.filter(target="dave", namespace="vision", actor="admin").order_by("pk")
    assert [(one.action, one.via) for one in told] == [
        ("membership.create", "page"),
        ("membership.change", "page"),
        ("membership.delete", "page"),
    ]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"username": "nobody-here", "role": "member"}, "Nobody called nobody-here has an account here"),
        ({"username": "dave", "role": "owner"}, "One of viewer, member, lead."),
        ({"username": "dave", "role": "member", "ends_at": "2001-01-01"}, "This is in the past"),
        ({"username": "alice", "role": "lead"}, "alice is member of vision by hand already"),
    ],
)
def test_what_is_wrong_stands_at_its_field_with_what_was_typed(
    admin: User, alice: User, dave: User, vision: Namespace, typed: dict[str, str], said: str
) -> None:
    answer = as_(admin).post(GIVE, typed)
    page = answer.content.decode()
    assert answer.status_code == 422 and said in page
    assert f'value="{typed["username"]}"' in page
    assert not Membership.objects.filter(user=dave, namespace=vision).exists()


def test_a_lead_gives_nothing(carol: User, dave: User, vision: Namespace) -> None:
    assert as_(carol).post(GIVE, {"username": "dave", "role": "member"}).status_code == 403
    assert not Membership.objects.filter(user=dave, namespace=vision).exists()


def test_hundreds_are_shown_by_pages_in_as_many_queries(carol: User, vision: Namespace) -> None:
    desk = as_(carol)
    desk.get(PAGE)
    with CaptureQueriesContext(connection) as few:
        desk.get(PAGE)
    persons = User.objects.bulk_create(
        User(username=f"m{number:03}", subject=f"local:m{number:03}") for number in range(60)
    )
    Membership.objects.bulk_create(
        Membership(user=one, namespace=vision, role="viewer", source="ldap:all") for one in persons
    )
    with CaptureQueriesContext(connection) as many:
        assert len(shown(desk)) == 50
    assert len(many) == len(few)
    assert len(shown(desk, page=2)) == 13
    assert shown(desk, q="m04") == [(f"m{number:03}", "viewer") for number in range(40, 50)]


def test_projects_on_the_access_page_are_found_by_a_part_of_the_name(admin: User, vision: Namespace) -> None:
    Namespace.objects.bulk_create(
        Namespace(slug=f"p{number:02}", kubernetes_name=f"p-p{number:02}", kind="project") for number in range(60)
    )
    desk = as_(admin)

    def listed(**query: Any) -> list[str]:
        return [one.slug for one in desk.get("/admin/access/", query).context["listed"].object_list]

    assert len(listed()) == 50 and listed(projects=2)[-1] == "vision"
    assert listed(find="Visi") == ["vision"]
    assert "No project is called like that." in desk.get("/admin/access/?find=zzz").content.decode()
    assert "<option>p59</option>" in desk.get("/admin/access/").content.decode()  # to choose from there are all of them
