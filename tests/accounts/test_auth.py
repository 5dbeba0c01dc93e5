"""How a request proves who it is: exact names, tokens that expire and are revoked, scopes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.test import Client
from django.utils import timezone

from accounts import tokens
from accounts.auth import scope_for
from accounts.models import ApiToken, User
from jobs.credentials import attempt_token
from tests.cast import PASSWORD

pytestmark = pytest.mark.django_db
CURRENT = "/api/v1/tokens/current/"


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def ask(text: str, path: str = CURRENT, method: str = "get", **data: Any) -> Any:
    return getattr(Client(), method)(path, headers=bearer(text), **data)


@pytest.fixture
def token(alice: User) -> str:
    return tokens.issue(alice, name="laptop", scope="read", days=30)[1]


class TestPassword:
    def test_the_right_one(self, alice: User) -> None:
        assert authenticate(None, username="alice", password=PASSWORD) == alice

    @pytest.mark.parametrize("secret", ["", " ", "\0", " \0 ", "\t\n", "x" * 5000, None])
    def test_an_empty_or_absurd_one_is_refused_whatever_is_stored(self, alice: User, secret: Any) -> None:
        alice.set_password(secret or "")
        alice.save()
        assert authenticate(None, username="alice", password=secret) is None

    @pytest.mark.parametrize(
        "name", ["Alice", "ALICE", "ａlice", "alice ", " alice", "ali\u200bce", "alice\0", "al", ""]
    )
    def test_another_spelling_is_nobody_and_makes_no_account(self, alice: User, name: str) -> None:
        before = User.objects.count()
        assert authenticate(None, username=name, password=PASSWORD) is None
        assert User.objects.count() == before

    def test_a_disabled_person_is_refused_and_their_session_ends(self, alice: User, client: Client) -> None:
        client.force_login(alice)
        assert client.get(CURRENT).status_code == 200
        User.objects.update(is_active=False)
        assert authenticate(None, username="alice", password=PASSWORD) is None
        assert client.get(CURRENT).status_code == 401

    def test_a_person_of_the_directory_has_no_password_here(self, alice: User) -> None:
        User.objects.update(source="ldap")
        assert authenticate(None, username="alice", password=PASSWORD) is None

    def test_an_unknown_name_costs_one_hash_like_a_known_one(
        self, alice: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from django.contrib.auth.hashers import MD5PasswordHasher

        hashed: list[str] = []
        real = MD5PasswordHasher.encode
        monkeypatch.setattr(
            MD5PasswordHasher, "encode", lambda self, password, salt: hashed.append("") or real(self, password, salt)
        )
        authenticate(None, username="alice", password="wrong")
        known = len(hashed)
        authenticate(None, username="mallory", password="wrong")
        assert len(hashed) - known == known == 1


class TestToken:
    def test_it_is_the_person(self, token: str) -> None:
        answer = ask(token)
        assert answer.status_code == 200
        assert answer.json()["username"] == "alice"

    def test_only_its_digest_is_kept(self, token: str) -> None:
        row = ApiToken.objects.get()
        assert token.startswith("th_")
        assert token not in "".join(str(value) for value in row.__dict__.values())

    def test_revoked_it_fails_at_once(self, token: str, alice: User) -> None:
        tokens.revoke(alice, token[:15])
        answer = ask(token)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "bad_token"
        assert answer["WWW-Authenticate"] == "Bearer"

    def test_expired_it_says_so(self, token: str) -> None:
        ApiToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
        answer = ask(token)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "token_expired"
        assert "expired" in answer.json()["error"]["message"]

    def test_of_a_disabled_person_it_fails(self, token: str) -> None:
        User.objects.update(is_active=False)
        assert ask(token).json()["error"]["code"] == "account_disabled"

    def test_the_token_of_an_attempt_is_told_what_it_is(self) -> None:
        answer = ask(attempt_token("b1c2d3f4g5", 1))
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "attempt_token"

    @pytest.mark.parametrize("text", ["th_", "th_" + "0" * 64, "x", "th_\xff\xfe", "'; --"])
    def test_made_up_ones_are_refused(self, token: str, text: str) -> None:
        assert ask(text).status_code == 401

    @pytest.mark.parametrize("header", ["Bearer", "Bearer a b", "Basic YWxpY2U6eA==", "Token x", ""])
    def test_odd_headers_are_refused(self, alice: User, header: str) -> None:
        assert Client().get(CURRENT, headers={"Authorization": header}).status_code == 401

    def test_its_last_use_is_written_at_most_once_a_minute(
        self, token: str, django_assert_max_num_queries: Any
    ) -> None:
        ask(token)
        first = ApiToken.objects.get().last_used_at
        assert first is not None
        assert ApiToken.objects.get().last_used_from == "127.0.0.1"
        ask(token)
        assert ApiToken.objects.get().last_used_at == first
        ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
        ask(token)
        assert ApiToken.objects.get().last_used_at > first

    def test_a_wrong_token_is_not_saved_by_a_session(self, alice: User, client: Client) -> None:
        client.force_login(alice)
        assert client.get(CURRENT, headers=bearer("th_wrong")).status_code == 401


class TestScope:
    @pytest.mark.parametrize(
        ("method", "path", "scope"),
        [
            ("GET", "/api/v1/jobs/", "read"),
            ("HEAD", "/api/v1/audit/", "read"),
            ("OPTIONS", "/api/v1/tokens/", "read"),
            ("POST", "/api/v1/jobs/", "submit"),
            ("POST", "/api/v1/jobs/b1/cancel/", "submit"),
            ("PATCH", "/api/v1/jobs/b1/", "submit"),
            ("POST", "/api/v1/uploads/", "submit"),
            ("POST", "/api/v1/forecast/", "submit"),
            ("POST", "/api/v1/tokens/", "admin"),
            ("PUT", "/api/v1/namespaces/vision/quota/", "admin"),
            ("POST", "/api/v1/jobsx/", "admin"),
        ],
    )
    def test_what_each_route_needs(self, method: str, path: str, scope: str) -> None:
        assert scope_for(method, path) == scope

    @pytest.mark.parametrize("scope", ["read", "submit"])
    def test_a_token_cannot_make_a_stronger_one(self, alice: User, scope: str) -> None:
        weak = tokens.issue(alice, name="weak", scope=scope, days=1)[1]
        answer = ask(weak, "/api/v1/tokens/", "post", data={"name": "x"}, content_type="application/json")
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "scope_too_low"
        assert "scope admin" in answer.json()["error"]["message"]
        assert ApiToken.objects.count() == 1

    def test_a_session_changes_nothing_without_its_csrf_token(self, alice: User) -> None:
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(alice)
        answer = browser.post("/api/v1/tokens/", {"name": "x"}, content_type="application/json")
        assert answer.status_code == 403
        assert not ApiToken.objects.exists()


IDENTITY_HEADERS = {
    "X-Forwarded-User": "admin",
    "Remote-User": "admin",
    "X-Remote-User": "admin",
    "kubeflow-userid": "admin",
    "X-Forwarded-For": "127.0.0.1",
    "X-Auth-Request-User": "admin",
    "Impersonate-User": "admin",
}


@pytest.mark.parametrize("name", IDENTITY_HEADERS)
def test_no_header_names_a_person(admin: User, name: str, token: str) -> None:
    header = {name: IDENTITY_HEADERS[name]}
    assert Client().get(CURRENT, headers=header).status_code == 401
    assert Client().get(CURRENT, headers=header | bearer(token)).json()["username"] == "alice"
