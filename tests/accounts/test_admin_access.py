"""The admin's pages and REST of rules: shown before, written once, said in words; and the page of people."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts import admin_views
from accounts.models import AuditEvent, GroupMapping, Membership, Namespace, User
from portal.embedded.demo_people import GROUPS, PEOPLE
from portal.embedded.slapd import Slapd
from tests.accounts.test_ldap import sign_in
from tests.directory import changed, known
from tests.factories import make_job
from tests.ports import free_port

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


def test_who_gets_only_a_role_for_the_site_is_not_said_to_get_none(desk: Client, directory: Slapd) -> None:
    nothing = "None by a rule"
    assert nothing in desk.get(ACCESS, {"test": "erin"}).content.decode()
    GroupMapping.objects.create(group="ml-all", site_role="auditor")
    page = desk.get(ACCESS, {"test": "erin"}).content.decode()
    assert "auditor of the site through ml-all" in page and nothing not in page


def test_a_long_preview_says_how_much_it_leaves_out(
    desk: Client, directory: Slapd, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in("erin")
    rule = {"group": "ml-*", "namespace": "", "role": "member", "preview": "1"}
    assert "not shown" not in desk.post(ACCESS, rule).content.decode()
    monkeypatch.setattr(admin_views, "SHOWN", 1)
    page = desk.post(ACCESS, rule).content.decode()
    assert "2 changes for people" in page and "1 more is not shown" in page


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
    assert User.objects.filter(username="carol").update(is_active=False)
    assert "Carol Sato" not in stranger.get("/me/namespaces/").content.decode()  # who is gone answers nobody
    desk.post("/admin/access/projects/vision/", {"hide": ""})
    assert b"vision" not in stranger.get("/me/namespaces/").content
    told = AuditEvent.objects.filter(action="namespace.change").order_by("pk").values_list("after", flat=True)
    assert list(told) == [{"is_listed": True}, {"is_listed": False}]
    assert desk.post("/admin/access/projects/alice/", {"list": ""}).status_code == 404  # somebody's own


def test_a_site_role_through_a_group_is_shown_given_changed_and_taken(desk: Client, directory: Slapd) -> None:
    client = Client()
    sign_in("alice", client=client)
    alice = User.objects.get(source="ldap")
    rule = {"group": "vision", "namespace": "vision", "role": "site:auditor"}  # the page hides the namespace
    page = desk.post(ACCESS, {**rule, "preview": "1"}).content.decode()
    assert "becomes auditor of the site" in page and not GroupMapping.objects.exists()
    assert desk.post(ACCESS, rule).status_code == 302
    row = GroupMapping.objects.get()
    assert (row.role, row.site_role, row.namespace) == ("", "auditor", None)
    assert desk.post("/admin/access/sync/", {"dry": "1"}).content.decode().count("becomes auditor of the site") == 1
    assert client.get("/api/v1/namespaces/vision/").status_code == 404
    changes = desk.post(SYNC).json()["changes"]
    assert [(one["kind"], one["site_role"], one["through"]) for one in changes] == [("added", "auditor", "vision")]
    assert client.get("/api/v1/namespaces/vision/").status_code == 200
    assert client.get(ACCESS).status_code == 403
    assert "auditor of the site" in client.get("/me/namespaces/").content.decode()
    desk.post(f"/admin/access/{row.pk}/", {"role": "admin"})
    desk.post(SYNC)
    assert client.get(ACCESS).status_code == 200
    shown = desk.get(ACCESS, {"person": alice.username}).content.decode()
    assert "admin of the site" in shown and "through vision" in shown
    with changed(directory, f"cn=vision,{GROUPS}", "member", f"uid=alice,{PEOPLE}", add=False):
        assert "is no longer admin of the site" in desk.post("/admin/access/sync/", {"dry": "1"}).content.decode()
        desk.post(SYNC)
    assert client.get(ACCESS).status_code == 403 and client.get("/api/v1/namespaces/vision/").status_code == 404
    alice.refresh_from_db()
    assert (alice.site_role, alice.site_role_source) == ("", "manual")
    told = AuditEvent.objects.filter(target=alice.username, action__startswith="site_role.").order_by("pk")
    assert [(one.action, one.before, one.after) for one in told] == [
        ("site_role.create", None, {"site_role": "auditor", "source": "ldap:vision"}),
        (
            "site_role.change",
            {"site_role": "auditor", "source": "ldap:vision"},
            {"site_role": "admin", "source": "ldap:vision"},
        ),
        ("site_role.delete", {"site_role": "admin", "source": "ldap:vision"}, None),
    ]


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"site_role": "boss"}, "site_role"),
        ({"site_role": "\ud800"}, "site_role"),
        ({"role": "member"}, "role"),
        ({"namespace": "vision"}, "namespace"),
        ({"group": "ml-*"}, "group"),
        ({"group": ""}, "group"),
    ],
)
def test_a_rule_for_the_site_that_cannot_be_names_its_field(desk: Client, fields: dict[str, str], wrong: str) -> None:
    values = {"group": "vision-leads", "site_role": "admin", **fields}
    body = desk.post(RULES, values, content_type="application/json").json()
    assert list(body["error"]["fields"]) == [wrong] and not GroupMapping.objects.exists()


def test_a_rule_for_the_site_by_rest_keeps_its_kind(desk: Client) -> None:
    made = desk.post(RULES, {"group": "vision-leads", "site_role": "auditor"}, content_type="application/json")
    expected = {"group": "vision-leads", "namespace": None, "role": None, "site_role": "auditor"}
    assert made.status_code == 201 and made.json() == {"id": made.json()["id"], **expected}
    place = f"{RULES}{made.json()['id']}/"
    assert list(desk.patch(place, {"role": "lead"}, content_type="application/json").json()["error"]["fields"]) == [
        "role"
    ]
    assert desk.patch(place, {"site_role": "admin"}, content_type="application/json").json()["site_role"] == "admin"
    again = desk.post(RULES, {"group": "vision-leads", "site_role": "admin"}, content_type="application/json")
    assert again.status_code == 400
    both = desk.post(
        RULES, {"group": "vision-leads", "namespace": "vision", "role": "lead"}, content_type="application/json"
    )
    assert both.status_code == 201


def test_the_preview_says_which_jobs_who_loses_a_role_has(desk: Client, directory: Slapd, vision: Any) -> None:
    GroupMapping.objects.create(group="vision", namespace=vision, role="member")
    sign_in("bob")
    bob = User.objects.get(username__startswith="bob", source="ldap")
    make_job(bob, vision)
    make_job(bob, vision, status="running")
    make_job(bob, vision, status="running")
    GroupMapping.objects.all().delete()
    page = desk.post("/admin/access/sync/", {"dry": "1"}).content.decode()
    assert "2 running, 1 waiting" in page
    change = desk.post(f"{SYNC}?dry_run=1").json()["changes"][0]
    assert (change["kind"], change["running"], change["waiting"]) == ("removed", 2, 1)


def test_a_role_by_hand_is_given_and_taken_on_the_page_with_its_consequences(
    desk: Client, vision: Any, dave: User
) -> None:
    def shown() -> str:
        return unescape(desk.get(ACCESS, {"person": "dave"}).content.decode())

    assert "the own namespace" in shown()
    place = f"/admin/access/people/{dave.pk}/"
    form = {"namespace": "vision", "role": "member", "ends_at": "2100-12-31"}
    answer = desk.post(place, form, follow=True)
    assert answer.redirect_chain[0][0] == f"{ACCESS}?person=dave"
    assert "dave is member of vision from now on" in answer.content.decode()
    assert "by hand, until 31 Dec 2100" in shown()
    make_job(dave, vision)
    question = shown().split('data-confirm="Take vision')[1].split('"')[0]
    assert "1 waiting job is held for a lead" in question
    row = Membership.objects.get(user=dave, namespace=vision)
    again = desk.post(place, form)
    assert again.status_code == 422 and "by hand already" in unescape(again.content.decode())
    assert again.context["given"].values["ends_at"] == "2100-12-31"
    past = desk.post(place, {**form, "ends_at": "2020-01-01"})
    assert past.status_code == 422 and list(past.context["given"].errors) == ["ends_at", "form"]
    assert list(desk.post(place, {**form, "namespace": "dave"}).context["given"].errors) == ["namespace", "form"]
    Membership.objects.create(user=dave, namespace=vision, role="lead", source="ldap:vision-leads")
    assert "dave is still lead of vision, through vision-leads." in shown()
    noon = timezone.now().replace(hour=12, minute=30) + timedelta(days=40)
    Membership.objects.filter(pk=row.pk).update(ends_at=noon)
    desk.post(f"/admin/access/roles/{row.pk}/", {"role": "viewer", "ends_at": f"{noon:%Y-%m-%d}"})
    row.refresh_from_db()
    assert (row.role, row.ends_at) == ("viewer", noon)  # the day that was shown moves no hour
    desk.post(f"/admin/access/roles/{row.pk}/", {"role": "viewer", "ends_at": ""})
    row.refresh_from_db()
    assert row.ends_at is None
    desk.post(f"/admin/access/roles/{row.pk}/", {"take": ""})
    assert not Membership.objects.filter(pk=row.pk).exists()
    group = Membership.objects.get(user=dave, namespace=vision)
    page = desk.post(f"/admin/access/roles/{group.pk}/", {"take": ""}, follow=True).content.decode()
    assert "through the group vision-leads" in page and Membership.objects.filter(pk=group.pk).exists()


def test_people_are_found_by_any_part_of_their_names(desk: Client, vision: Any) -> None:
    User.objects.bulk_create(
        User(subject=f"x:{n}", username=f"many{n}", display_name=f"田中 {n}", source="ldap") for n in range(30)
    )
    several = desk.get(ACCESS, {"person": "田中"}).context["people"]
    assert len(several.several) == 20 and several.are_more and several.person is None
    assert desk.get(ACCESS, {"person": "田中 7"}).context["people"].person.username == "many7"
    assert desk.get(ACCESS, {"person": "carol"}).context["people"].person.username == "carol"
    for odd in ("nobody-here", "a\0b", "%", "x" * 400):
        people = desk.get(ACCESS, {"person": odd}).context["people"]
        assert people.person is None and not people.several


def test_a_namespace_is_named_once_with_the_highest_role_and_every_reason(desk: Client, vision: Any) -> None:
    alice = User.objects.get(username="alice")
    Membership.objects.create(user=alice, namespace=vision, role="lead", source="ldap:vision-leads")
    Membership.objects.create(user=alice, namespace=vision, role="viewer", source="ldap:all")
    page = unescape(desk.get("/admin/users/", {"q": "alice"}).content.decode())
    assert page.count("vision: ") == 1 and "vision: lead" in page
    assert 'title="member: by hand; lead: through vision-leads; viewer: through all"' in page


def test_ten_thousand_accounts_cost_no_query_more(
    desk: Client, vision: Any, django_assert_max_num_queries: Any
) -> None:
    people = User.objects.bulk_create(
        User(subject=f"x:{n}", username=f"many{n:05}", source="ldap") for n in range(10_000)
    )
    Membership.objects.bulk_create(
        Membership(user=person, namespace=vision, role="viewer", source=source)
        for person in people
        for source in ("manual", "ldap:all")
    )
    for place, query in (("/admin/users/", {"q": "MANY", "page": "150"}), (ACCESS, {"person": "many"})):
        with django_assert_max_num_queries(16):
            assert desk.get(place, query).status_code == 200
    page = desk.get("/admin/users/", {"page": "2"}).context["page"]
    assert page.paginator.count == 10_004
