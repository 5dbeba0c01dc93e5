"""Roles by hand: given with an end, refused with the field and what to do, taken away, and gone by themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts import members, tasks, tokens
from accounts.models import AuditEvent, Membership, MembershipChange, Namespace, User
from accounts.people import ensure_person
from accounts.reasons import until
from accounts.roles import SiteRole
from jobs.departures import hold_jobs_of_who_left
from jobs.models import Job
from tests.factories import make_job

pytestmark = pytest.mark.django_db
MEMBERS = "/api/v1/namespaces/vision/members/"
JSON = "application/json"


def as_(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def roles(person: User) -> list[tuple[str, str, Any]]:
    rows = Membership.objects.filter(user=person).exclude(source="personal")
    return list(rows.order_by("pk").values_list("namespace__slug", "role", "ends_at"))


def test_a_role_is_given_changed_and_taken_with_the_trail(admin: User, vision: Namespace, dave: User) -> None:
    desk = as_(admin)
    given = desk.post(MEMBERS, {"username": "dave", "role": "viewer", "ends_at": "2100-12-31"}, content_type=JSON)
    end = datetime(2101, 1, 1, tzinfo=UTC)
    assert given.status_code == 201
    assert given.json()["sources"] == [{"role": "viewer", "through": "manual", "ends_at": "2101-01-01T00:00:00Z"}]
    assert roles(dave) == [("vision", "viewer", end)] and until(end) == "31 Dec 2100"
    assert as_(dave).get("/api/v1/namespaces/vision/").json()["role"] == "viewer"
    assert "by hand, until 31 Dec 2100" in as_(dave).get("/me/namespaces/").content.decode()
    place = f"{MEMBERS}dave/"
    assert desk.patch(place, {"role": "member"}, content_type=JSON).json()["role"] == "member"
    assert desk.patch(place, {"role": "member"}, content_type=JSON).status_code == 200  # nothing to tell
    assert desk.patch(place, {"ends_at": None}, content_type=JSON).json()["sources"][0]["ends_at"] is None
    assert desk.delete(place).status_code == 204 and roles(dave) == []
    assert desk.delete(place).status_code == 404
    before = {"role": "viewer", "source": "manual", "ends_at": "2101-01-01T00:00:00+00:00"}
    told = AuditEvent.objects.filter(target="dave", namespace="vision", actor="admin").order_by("pk")
    assert [(row.action, row.before, row.after, row.via) for row in told] == [
        ("membership.create", None, before, "api"),
        ("membership.change", before, {**before, "role": "member"}, "api"),
        ("membership.change", {**before, "role": "member"}, {**before, "role": "member", "ends_at": None}, "api"),
        ("membership.delete", {**before, "role": "member", "ends_at": None}, None, "api"),
    ]
    changes = MembershipChange.objects.filter(user=dave).order_by("pk").values_list("before", "after")
    assert list(changes) == [("", "viewer"), ("viewer", "member"), ("member", "")]


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"username": "nobody-here"}, "username", "has an account here"),
        ({"username": ""}, "username", "Say who"),
        ({"username": "a\0b"}, "username", "has an account here"),
        ({"username": "\ud800"}, "username", "has an account here"),
        ({"\ud800": "2100-01-01"}, "?", "no such field"),
        ({"role": "boss"}, "role", "viewer, member, lead"),
        ({"role": ["lead"]}, "role", "viewer, member, lead"),
        ({"ends_at": "2020-01-01"}, "ends_at", "in the past"),
        ({"ends_at": "2020-01-01T10:00Z"}, "ends_at", "in the past"),
        ({"ends_at": "soon"}, "ends_at", "2026-12-31"),
        ({"ends_at": "2100-02-31"}, "ends_at", "2026-12-31"),
        ({"ends_at": "9999-12-31"}, "ends_at", "2026-12-31"),
        ({"ends_at": "9999-12-31T23:59-14:00"}, "ends_at", "2026-12-31"),
        ({"ends_at": "0001-01-01T00:00+14:00"}, "ends_at", "2026-12-31"),
        ({"username": "bob"}, "role", "by hand already"),
        ({"until": "2100-01-01"}, "until", "no such field"),
    ],
)
def test_what_cannot_be_names_its_field_and_what_to_do(
    admin: User, vision: Namespace, dave: User, values: dict[str, Any], field: str, words: str
) -> None:
    before = list(Membership.objects.order_by("pk").values_list())
    answer = as_(admin).post(MEMBERS, {"username": "dave", "role": "member", **values}, content_type=JSON)
    fields = answer.json()["error"]["fields"]
    assert answer.status_code == 400 and list(fields) == [field] and words in fields[field][0]
    assert list(Membership.objects.order_by("pk").values_list()) == before


def test_a_disabled_person_and_somebodys_own_namespace_are_refused(admin: User, vision: Namespace, dave: User) -> None:
    User.objects.filter(pk=dave.pk).update(is_active=False)
    answer = as_(admin).post(MEMBERS, {"username": "dave", "role": "member"}, content_type=JSON)
    assert "disabled" in answer.json()["error"]["fields"]["username"][0]
    own = as_(admin).post("/api/v1/namespaces/alice/members/", {"username": "bob", "role": "member"}, content_type=JSON)
    assert "somebody's own" in own.json()["error"]["fields"]["namespace"][0]
    away = as_(admin).delete("/api/v1/namespaces/alice/members/alice/")
    assert away.status_code == 400 and "that role stays" in away.json()["error"]["fields"]["username"][0]


def test_what_a_group_gives_is_not_taken_by_hand_and_the_group_is_said(
    admin: User, vision: Namespace, dave: User
) -> None:
    Membership.objects.create(user=dave, namespace=vision, role="lead", source="ldap:vision-leads")
    for method in ("patch", "delete"):
        answer = getattr(as_(admin), method)(f"{MEMBERS}dave/", {"role": "viewer"}, content_type=JSON)
        assert answer.status_code == 400
        assert "through the group vision-leads" in answer.json()["error"]["fields"]["username"][0]
    assert [role for _place, role, _end in roles(dave)] == ["lead"]


def test_both_sources_stand_side_by_side(admin: User, vision: Namespace, dave: User) -> None:
    Membership.objects.create(user=dave, namespace=vision, role="viewer", source="ldap:all")
    given = as_(admin).post(MEMBERS, {"username": "dave", "role": "lead"}, content_type=JSON).json()
    assert given["role"] == "lead" and [one["through"] for one in given["sources"]] == ["ldap:all", "manual"]
    as_(admin).delete(f"{MEMBERS}dave/")
    assert [role for _place, role, _end in roles(dave)] == ["viewer"]
    change = MembershipChange.objects.filter(user=dave).latest("pk")
    assert (change.before, change.after) == ("lead", "viewer")


def test_leads_auditors_and_admins_read_the_list_and_only_admins_write(
    admin: User, vision: Namespace, alice: User, carol: User, dave: User, django_assert_max_num_queries: Any
) -> None:
    auditor = ensure_person("erin", site_role=SiteRole.AUDITOR)
    seen = {person.username: as_(person).get(MEMBERS).status_code for person in (alice, carol, dave, auditor, admin)}
    assert seen == {"alice": 403, "carol": 200, "dave": 404, "erin": 200, "admin": 200}
    for person, status in ((alice, 403), (carol, 403), (dave, 404), (auditor, 403)):
        for answer in (
            as_(person).post(MEMBERS, {"username": "dave", "role": "lead"}, content_type=JSON),
            as_(person).patch(f"{MEMBERS}bob/", {"role": "lead"}, content_type=JSON),
            as_(person).delete(f"{MEMBERS}bob/"),
        ):
            assert answer.status_code == status, person
    _row, text = tokens.issue(admin, name="ci", scope="admin", days=1, namespace="vision")
    bound = Client(headers={"Authorization": f"Bearer {text}"})
    assert bound.delete(f"{MEMBERS}bob/").status_code in (403, 404)  # a bound token carries no role for the site
    assert Membership.objects.filter(namespace=vision, user__username="bob", role="member").exists()
    people = User.objects.bulk_create(User(subject=f"x:{n}", username=f"many{n}") for n in range(50))
    Membership.objects.bulk_create(Membership(user=one, namespace=vision, role="viewer") for one in people)
    desk = as_(carol)
    with django_assert_max_num_queries(6):
        assert len(desk.get(MEMBERS).json()["results"]) == 53


def test_an_end_takes_the_role_away_and_a_waiting_job_with_it(vision: Namespace, bob: User, carol: User) -> None:
    job = make_job(bob, vision)
    Membership.objects.filter(user=bob, namespace=vision).update(ends_at=timezone.now() - timedelta(seconds=1))
    Membership.objects.filter(user=carol, namespace=vision).update(ends_at=timezone.now() + timedelta(hours=1))
    tasks.end_roles()
    tasks.end_roles()  # once is enough
    assert not Membership.also_ended.filter(user=bob, namespace=vision).exists()
    assert Membership.objects.filter(user=carol, namespace=vision).exists()
    change = MembershipChange.objects.get()
    assert (change.user, change.before, change.after, change.handled_at) == (bob, "member", "", None)
    told = AuditEvent.objects.get(action="membership.delete")
    assert (told.actor, told.via, told.target, told.namespace, told.after) == ("", "system", "bob", "vision", None)
    assert told.before["role"] == "member" and told.before["ends_at"]
    assert hold_jobs_of_who_left() == 1
    assert Job.objects.get(pk=job.pk).held_by is not None


def test_who_keeps_another_role_falls_back_to_it(vision: Namespace, bob: User) -> None:
    Membership.objects.create(user=bob, namespace=vision, role="viewer", source="ldap:all")
    Membership.objects.filter(user=bob, source="manual").update(ends_at=timezone.now())
    assert members.take_away_ended() == 1
    change = MembershipChange.objects.get()
    assert (change.before, change.after) == ("member", "viewer")


def test_a_role_that_has_just_ended_is_no_hindrance_to_a_new_one(admin: User, vision: Namespace, bob: User) -> None:
    Membership.objects.filter(user=bob, namespace=vision).update(ends_at=timezone.now())
    assert as_(admin).delete(f"{MEMBERS}bob/").status_code == 404
    assert as_(admin).post(MEMBERS, {"username": "bob", "role": "viewer"}, content_type=JSON).status_code == 201
    told = AuditEvent.objects.filter(target="bob", namespace="vision").order_by("pk").values_list("action", "actor")
    assert list(told)[-2:] == [("membership.delete", ""), ("membership.create", "admin")]
    assert members.take_away_ended() == 0


def test_only_a_role_by_hand_can_have_an_end(vision: Namespace, dave: User) -> None:
    from django.db import IntegrityError, transaction

    with pytest.raises(IntegrityError), transaction.atomic():
        Membership.objects.create(
            user=dave, namespace=vision, role="viewer", source="ldap:all", ends_at=timezone.now() + timedelta(days=1)
        )
