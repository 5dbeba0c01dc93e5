"""REST of tokens, namespaces and the audit trail, and the two pages about oneself."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts import audit, tokens
from accounts.models import ApiToken, AuditEvent, Membership, Namespace, User
from accounts.people import ensure_person
from accounts.roles import Role, SiteRole

pytestmark = pytest.mark.django_db


def as_(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, body, content_type="application/json")


class TestTokens:
    def test_made_shown_once_used_listed_and_revoked(self, alice: User) -> None:
        browser = as_(alice)
        made = post(browser, "/api/v1/tokens/", {"name": "ci", "scope": "submit", "days": 7})
        assert made.status_code == 201
        assert made["Cache-Control"] == "no-store"
        text, key = made.json()["token"], made.json()["key"]
        listed = browser.get("/api/v1/tokens/")
        assert text not in listed.content.decode()
        assert [(row["key"], row["name"], row["scope"]) for row in listed.json()["results"]] == [(key, "ci", "submit")]
        header = {"Authorization": f"Bearer {text}"}
        assert Client().get("/api/v1/tokens/current/", headers=header).json()["scope"] == "submit"
        assert browser.delete(f"/api/v1/tokens/{key}/").status_code == 204
        assert Client().get("/api/v1/tokens/current/", headers=header).status_code == 401
        rows = AuditEvent.objects.filter(action__startswith="token.").order_by("pk")
        assert [(row.action, row.target, row.via) for row in rows] == [
            ("token.create", key, "api"),
            ("token.revoke", key, "api"),
        ]
        assert text not in str([row.after for row in rows])

    def test_nobody_sees_or_revokes_anothers(self, alice: User, dave: User) -> None:
        token, _text = tokens.issue(alice, name="ci", scope="read", days=1)
        assert as_(dave).get("/api/v1/tokens/").json()["results"] == []
        theirs = as_(dave).delete(f"/api/v1/tokens/{token.token_key}/")
        made_up = as_(dave).delete("/api/v1/tokens/th_000000000000/")
        assert theirs.status_code == made_up.status_code == 404
        assert theirs.content == made_up.content
        assert ApiToken.objects.count() == 1

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"name": ""},
            {"name": "x" * 101},
            {"name": "x", "days": 366},
            {"name": "x", "days": 0},
            {"name": "x", "days": "soon"},
            {"name": "x", "scope": "root"},
            {"name": "x", "scopes": "read"},
            {"name": "a\0b"},
            [],
            [1],
        ],
    )
    def test_what_cannot_be_is_refused_by_name(self, alice: User, body: Any) -> None:
        answer = post(as_(alice), "/api/v1/tokens/", body)
        assert answer.status_code == 400
        assert answer.json()["error"]["fields"]
        assert not tokens.living(alice).exists()

    def test_the_page_shows_a_new_one_once(self, alice: User) -> None:
        browser = as_(alice)
        made = browser.post("/me/tokens/", {"name": "laptop", "scope": "read", "days": 30})
        text = made.context["new_token"]
        assert made.status_code == 201
        assert text in made.content.decode()
        assert "no-store" in made["Cache-Control"]
        again = browser.get("/me/tokens/").content.decode()
        assert text not in again
        assert "laptop" in again
        assert browser.post("/me/tokens/", {"name": "x", "scope": "read", "days": 400}).status_code == 400
        assert browser.post(f"/me/tokens/{text[:15]}/revoke/").status_code == 302
        assert not tokens.living(alice).exists()

    def test_a_session_says_who_it_is(self, alice: User, vision: Namespace) -> None:
        answer = as_(alice).get("/api/v1/tokens/current/").json()
        assert (answer["username"], answer["scope"]) == ("alice", "admin")
        assert set(answer["namespaces"]) == {"alice", "vision"}
        assert answer["expires"]


class TestNamespaces:
    def test_each_sees_their_own_and_their_role(self, vision: Namespace, carol: User, dave: User) -> None:
        rows = {row["name"]: row for row in as_(carol).get("/api/v1/namespaces/").json()["results"]}
        assert rows["vision"]["role"] == "lead"
        assert rows["vision"]["kubernetes_name"] == "p-vision"
        assert rows["vision"]["gpu_limit"] is None
        assert set(rows) == {"carol", "vision"}
        assert {row["name"] for row in as_(dave).get("/api/v1/namespaces/").json()["results"]} == {"dave"}

    @pytest.mark.parametrize("tail", ["", "members/", "quota/"])
    def test_a_stranger_cannot_tell_it_from_a_made_up_name(self, vision: Namespace, dave: User, tail: str) -> None:
        theirs = as_(dave).get(f"/api/v1/namespaces/vision/{tail}")
        made_up = as_(dave).get(f"/api/v1/namespaces/no-such/{tail}")
        assert theirs.status_code == made_up.status_code == 404
        assert theirs.content == made_up.content
        assert as_(dave).get(f"/api/v1/namespaces/a%00b/{tail}").status_code == 404

    def test_members_with_every_source(self, vision: Namespace, alice: User) -> None:
        Membership.objects.create(user=alice, namespace=vision, role=Role.LEAD, source="cn=leads")
        rows = {row["username"]: row for row in as_(alice).get("/api/v1/namespaces/vision/members/").json()["results"]}
        assert set(rows) == {"alice", "bob", "carol"}
        assert rows["alice"]["role"] == "lead"
        assert {source["through"] for source in rows["alice"]["sources"]} == {"manual", "cn=leads"}

    def test_limits(self, vision: Namespace, alice: User) -> None:
        Namespace.objects.filter(pk=vision.pk).update(gpu_limit=8)
        body = as_(alice).get("/api/v1/namespaces/vision/quota/").json()
        assert body == {"namespace": "vision", "limits": {"gpus": 8, "cpu_millis": None, "memory_bytes": None}}

    def test_a_list_of_many_costs_no_more_queries(
        self, vision: Namespace, admin: User, django_assert_max_num_queries: Any
    ) -> None:
        for number in range(20):
            ensure_person(f"person{number}")
        browser = as_(admin)
        with django_assert_max_num_queries(5):
            assert len(browser.get("/api/v1/namespaces/").json()["results"]) > 20

    def test_the_page_says_through_which_source(self, vision: Namespace, alice: User) -> None:
        answer = as_(alice).get("/me/namespaces/")
        assert answer.status_code == 200
        places = {place.namespace.slug: place for place in answer.context["places"]}
        assert set(places) == {"alice", "vision"}
        assert [lead.username for lead in places["vision"].leads] == ["carol"]
        assert "vision" in answer.content.decode()


class TestAudit:
    @pytest.fixture(autouse=True)
    def rows(self, vision: Namespace, speech: Namespace, alice: User, dave: User) -> None:
        for number in range(5):
            audit.record(alice, "job.submit", target=f"v{number}", namespace="vision")
        audit.record(dave, "job.submit", target="s", namespace="speech")
        audit.record(alice, "session.login")

    def ask(self, person: User, **query: Any) -> Any:
        return as_(person).get("/api/v1/audit/", query)

    def test_admins_and_auditors_see_all(self, admin: User) -> None:
        auditor = ensure_person("erin", site_role=SiteRole.AUDITOR)
        for person in (admin, auditor):
            actions = {row["action"] for row in self.ask(person, limit=200).json()["results"]}
            assert {"job.submit", "session.login"} <= actions

    def test_a_lead_sees_their_namespace(self, carol: User) -> None:
        rows = self.ask(carol, limit=200).json()["results"]
        assert {row["namespace"] for row in rows} == {"vision"}
        assert self.ask(carol, namespace="speech").json()["results"] == []

    def test_others_are_refused(self, bob: User, dave: User) -> None:
        assert self.ask(bob).status_code == self.ask(dave).status_code == 403
        assert Client().get("/api/v1/audit/").status_code == 401

    def test_filters_and_pages(self, admin: User) -> None:
        browser = as_(admin)
        url: str | None = "/api/v1/audit/?actor=alice&action=job.submit&namespace=vision&limit=2"
        targets: list[str] = []
        while url:
            page = browser.get(url).json()
            targets += [row["target"] for row in page["results"]]
            url = page["next"]
        assert targets == ["v4", "v3", "v2", "v1", "v0"]

    @pytest.mark.parametrize("query", [{"actor": "a\0"}, {"actor": "x" * 151}])
    def test_what_cannot_be_asked_is_refused(self, admin: User, query: dict[str, str]) -> None:
        assert self.ask(admin, **query).status_code == 400

    def test_it_cannot_be_written(self, admin: User) -> None:
        for method in ("post", "put", "patch", "delete"):
            assert getattr(as_(admin), method)("/api/v1/audit/").status_code == 405
