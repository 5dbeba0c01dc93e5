"""Giving and revoking personal tokens; the page, the API and the command are doors to this."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from accounts import audit
from accounts.models import ApiToken, User

LONGEST_DAYS = 365
USUAL_DAYS = 90


@transaction.atomic
def issue(
    user: User, *, name: str, scope: str, days: int, request: HttpRequest | Request | None = None
) -> tuple[ApiToken, str]:
    """A new token and its characters, which exist nowhere else from now on."""
    if not 1 <= days <= LONGEST_DAYS:
        raise ValueError(f"a token lives 1 to {LONGEST_DAYS} days, not {days}")
    token, text = ApiToken.objects.create(user=user, expiry=timedelta(days=days), name=name, scope=scope)
    audit.record(
        user,
        "token.create",
        target=token.token_key,
        after={"name": name, "scope": scope, "days": days},
        request=request,
    )
    return token, text


@transaction.atomic
def revoke(user: User, key: str, *, request: HttpRequest | Request | None = None) -> None:
    """It fails from the next request on. Raise Http404 if this person has no such token."""
    token = ApiToken.objects.filter(user=user, token_key=key.replace("\0", "\ufffd")).first()
    if token is None:
        raise Http404
    before = {"name": token.name, "scope": token.scope}
    audit.record(user, "token.revoke", target=token.token_key, before=before, request=request)
    token.delete()
