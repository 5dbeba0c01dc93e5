"""Revoking a token, and undoing that within seconds (A12)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts import tokens
from accounts.models import ApiToken, AuditEvent, User
from portal.tasks import clear_expired

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(alice: User) -> tuple[ApiToken, str]:
    return tokens.issue(alice, name="laptop", scope="read", days=30)


def status(text: str) -> int:
    return Client().get("/api/v1/tokens/current/", headers={"Authorization": f"Bearer {text}"}).status_code


def test_it_fails_at_once_and_lives_again_after_an_undo(
    client: Client, alice: User, token: tuple[ApiToken, str]
) -> None:
    row, text = token
    client.force_login(alice)
    assert status(text) == 200
    client.post(f"/me/tokens/{row.token_key}/revoke/")
    assert status(text) == 401
    page = client.get("/me/tokens/").content.decode()
    assert "laptop is revoked" in page
    assert client.get("/api/v1/tokens/").json()["results"] == []
    client.post(f"/me/tokens/{row.token_key}/restore/")
    assert status(text) == 200
    assert list(AuditEvent.objects.filter(target=row.token_key).values_list("action", flat=True)) == [
        "token.restore",
        "token.revoke",
        "token.create",
    ]


def test_later_it_stays_revoked_and_the_page_says_so(client: Client, alice: User, token: tuple[ApiToken, str]) -> None:
    row, text = token
    client.force_login(alice)
    tokens.revoke(alice, row.token_key)
    ApiToken.objects.update(revoked_at=timezone.now() - tokens.UNDO_FOR)
    answer = client.post(f"/me/tokens/{row.token_key}/restore/", follow=True)
    assert "too late" in answer.content.decode()
    assert status(text) == 401


def test_nobody_else_undoes_it(client: Client, bob: User, alice: User, token: tuple[ApiToken, str]) -> None:
    row, text = token
    tokens.revoke(alice, row.token_key)
    client.force_login(bob)
    client.post(f"/me/tokens/{row.token_key}/restore/")
    assert status(text) == 401


def test_the_row_goes_after_a_while(alice: User, token: tuple[ApiToken, str]) -> None:
    tokens.revoke(alice, token[0].token_key)
    clear_expired()
    assert ApiToken.objects.exists()
    ApiToken.objects.update(revoked_at=timezone.now() - timedelta(hours=2))
    clear_expired()
    assert not ApiToken.objects.exists()


def test_loading_the_answer_again_makes_no_second_token(client: Client, alice: User) -> None:
    client.force_login(alice)
    page = client.get("/me/tokens/").context["page"]
    wanted = {"name": "ci", "scope": "read", "days": 30, "page": page}
    assert client.post("/me/tokens/", wanted).status_code == 201
    again = client.post("/me/tokens/", wanted, follow=True)
    assert "made already" in again.content.decode()
    assert tokens.living(alice).count() == 1
    assert client.post("/me/tokens/", wanted | {"page": again.context["page"]}).status_code == 201
