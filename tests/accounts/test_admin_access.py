"""The admin's pages and REST of rules: shown before, written once, said in words; and the page of people."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent, GroupMapping, Membership, Namespace, User
from portal.embedded.demo_people import GROUPS
from portal.embedded.slapd import Slapd
from tests.accounts.test_ldap import sign_in
from tests.directory import free_port, known

pytestmark = pytest.mark.django_db
ACCESS, RULES, SYNC = "/admin/access/", "/api/v1/group-mappings/", "/api/v1/sync/"


@pytest.fixture
def desk(admin: User, vision: Any) -> Client:
    client = Client()
    client.force_login(admin, backend="accounts.auth.LocalBackend")
    return client


def roles() -> set[tuple[str, str]]:
    return set(Membership.objects.filter(source__startswith="ldap:").values_list("user__display_name", "role"))


def test_a_rule_is_shown_before_it_is_added_and_takes_effect_with_a_pass(desk: Client, directory: Slapd) -> None:
    sign_in("person000")
    rule = {"group": "robotics", "namespace": "vision", "role": "viewer"}
    page = desk.post(ACCESS, {**rule, "preview": "1"}).content.decode()
    assert "1 change for people who have signed in" in page and "becomes viewer" in page
    assert not GroupMapping.objects.exists() and not roles()
    assert desk.post(ACCESS, rule).status_code == 302
    assert desk.post("/admin/access/sync/", {"dry": "1"}).content.decode().count("becomes viewer") == 1
    desk.post("/admin/access/sync/")
    assert roles() == {("Person 0", "viewer")}
    row = GroupMapping.objects.get()
    desk.post(f"/admin/access/{row.pk}/", {"role": "member"})
    desk.post("/admin/access/sync/")
    assert roles() == {("Person 0", "member")}
    desk.post(f"/admin/access/{row.pk}/", {"role": "member", "remove": ""})
    desk.post("/admin/access/sync/")
    assert not roles()
    told = AuditEvent.objects.filter(action__startswith="group_mapping.").order_by("pk").values_list("action", "actor")
    assert list(told) == [(f"group_mapping.{verb}", "admin") for verb in ("create", "change", "delete")]


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"group": ""}, "group"),
        ({"group": "*"}, "group"),
        ({"group": "a" * 301}, "group"),
        ({"role": "boss"}, "role"),
        ({"namespace": "no-such"}, "namespace"),
        ({"namespace": "alice"}, "namespace"),
        ({"namespace": ""}, "namespace"),
    ],
)
def test_a_rule_that_cannot_be_names_its_field_and_keeps_what_was_typed(
    desk: Client, fields: dict[str, str], wrong: str
) -> None:
    values = {"group": "robotics", "namespace": "vision", "role": "member", **fields}
    answer = desk.post(ACCESS, values)
    assert answer.status_code == 422 and list(answer.context["errors"]) == [wrong]
    assert answer.context["values"]["group"] == values["group"]
    body = desk.post(RULES, values, content_type="application/json").json()
    assert list(body["error"]["fields"]) == [wrong]
    assert not GroupMapping.objects.exists()


def test_the_same_by_rest_and_one_rule_for_a_group_and_namespace(desk: Client, directory: Slapd) -> None:
    sign_in("alice")
    rule = {"group": f"cn=vision,{GROUPS}", "namespace": "vision", "role": "member"}
    made = desk.post(RULES, rule, content_type="application/json")
    assert made.status_code == 201
    again = desk.post(RULES, rule, content_type="application/json")
    assert again.status_code == 400 and "already" in again.json()["error"]["fields"]["group"][0]
    dry = desk.post(f"{SYNC}?dry_run=1").json()
    assert not dry["is_applied"] and [one["kind"] for one in dry["changes"]] == ["added"] and not roles()
    assert desk.post(SYNC).json()["is_applied"]
    assert roles() == {("Alice Arai", "member")}
    place = f"{RULES}{made.json()['id']}/"
    assert desk.patch(place, {"role": "lead"}, content_type="application/json").json()["role"] == "lead"
    assert desk.delete(place).status_code == 204 and desk.delete(place).status_code == 404


def test_a_directory_that_is_away_is_said_and_nothing_changes(desk: Client, directory: Slapd, settings: Any) -> None:
    settings.DIRECTORY = known(f"ldap://127.0.0.1:{free_port()}")
    answer = desk.post(SYNC)
    assert answer.status_code == 503 and answer.json()["error"]["code"] == "directory_unavailable"
    page = desk.post("/admin/access/sync/", follow=True).content.decode()
    assert "The directory cannot be asked" in page


def test_why_somebody_has_access_also_before_they_ever_signed_in(desk: Client, directory: Slapd) -> None:
    GroupMapping.objects.create(group="ml-*", namespace=None, role="member")
    tested = desk.get(ACCESS, {"test": "erin"}).context["tested"]
    assert tested.roles == (("ml-all", "member", "ml-all"), ("ml-kernels", "member", "ml-kernels"))
    assert desk.get(ACCESS, {"test": "zoe"}).context["tested"].has_ended
    assert "nobody" in desk.get(ACCESS, {"test": "no*"}).context["tested"].problem
    assert not User.objects.filter(source="ldap").exists() and not Namespace.objects.filter(slug="ml-all").exists()


def test_who_is_disabled_is_out_and_only_who_disabled_enables(desk: Client, alice: User, client: Client) -> None:
    client.force_login(alice)
    place = f"/admin/users/{alice.pk}/"
    desk.post(place, {"disable": ""})
    assert client.get("/me/tokens/").status_code == 302
    assert "disabled by an admin" in desk.get("/admin/users/", {"state": "disabled"}).content.decode()
    desk.post(place, {"enable": ""})
    assert User.objects.get(pk=alice.pk).is_active
    User.objects.filter(pk=alice.pk).update(is_active=False, disabled_by="directory")
    page = desk.post(place, {"enable": ""}, follow=True).content.decode()
    assert "it is enabled there" in page and not User.objects.get(pk=alice.pk).is_active
    me = User.objects.get(username="admin")
    desk.post(f"/admin/users/{me.pk}/", {"disable": ""})
    assert User.objects.get(pk=me.pk).is_active


def test_the_page_of_people_costs_the_same_for_many(desk: Client, django_assert_max_num_queries: Any) -> None:
    User.objects.bulk_create(User(subject=f"x:{n}", username=f"many{n}", source="ldap") for n in range(120))
    with django_assert_max_num_queries(12):
        page = desk.get("/admin/users/", {"q": "MANY", "page": "2"})
    assert page.context["page"].paginator.count == 120


def test_only_a_listed_project_is_named_to_strangers_with_its_groups_and_leads(
    desk: Client, vision: Any, dave: User
) -> None:
    GroupMapping.objects.create(group="vision-crowd", namespace=vision, role="member")
    stranger = Client()
    stranger.force_login(dave)
    assert b"vision" not in stranger.get("/me/namespaces/").content
    desk.post("/admin/access/projects/vision/", {"list": ""})
    page = stranger.get("/me/namespaces/").content.decode()
    assert "You could ask for" in page and "vision-crowd" in page and "Carol Sato" in page
    assert stranger.get("/api/v1/namespaces/vision/").status_code == 404  # named, and still not theirs
    desk.post("/admin/access/projects/vision/", {"hide": ""})
    assert b"vision" not in stranger.get("/me/namespaces/").content
    told = AuditEvent.objects.filter(action="namespace.change").order_by("pk").values_list("after", flat=True)
    assert list(told) == [{"is_listed": True}, {"is_listed": False}]
    assert desk.post("/admin/access/projects/alice/", {"list": ""}).status_code == 404  # somebody's own
