"""Giving and revoking personal tokens; the page, the API and the command are doors to this."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.utils import timezone
from rest_framework.request import Request

from accounts import audit
from accounts.access import get_namespace
from accounts.models import ApiToken, User

LONGEST_DAYS = 365
USUAL_DAYS = 90
UNDO_FOR = timedelta(seconds=15)  # the page offers it for 10; the rest is the way there and back


@transaction.atomic
def issue(
    user: User,
    *,
    name: str,
    scope: str,
    days: int,
    namespace: str | None = None,
    request: HttpRequest | Request | None = None,
) -> tuple[ApiToken, str]:
    """A new token and its characters, which exist nowhere else from now on.

    `namespace` is the slug of the only one it works in. Raise Http404 for one that this person does not see.
    """
    if not 1 <= days <= LONGEST_DAYS:
        raise ValueError(f"a token lives 1 to {LONGEST_DAYS} days, not {days}")
    place = get_namespace(user, namespace) if namespace else None
    token, text = ApiToken.objects.create(
        user=user, expiry=timedelta(days=days), name=name, scope=scope, namespace=place
    )
    audit.record(
        user,
        "token.create",
        target=token.token_key,
        after={"name": name, "scope": scope, "days": days, "namespace": namespace or None},
        request=request,
    )
    return token, text


def living(user: User) -> QuerySet[ApiToken]:
    """This person's tokens, newest first, also those that have expired; without the revoked."""
    found: QuerySet[ApiToken] = ApiToken.objects.filter(user=user, revoked_at=None).order_by("-created")
    return found.select_related("namespace")


def just_revoked(user: User) -> QuerySet[ApiToken]:
    """Those whose revocation can still be undone."""
    limit = timezone.now() - UNDO_FOR
    found: QuerySet[ApiToken] = ApiToken.objects.filter(user=user, revoked_at__gt=limit).order_by("-revoked_at")
    return found


@transaction.atomic
def revoke(user: User, key: str, *, request: HttpRequest | Request | None = None) -> None:
    """It fails from the next request on. Raise Http404 if this person has no such token."""
    token = living(user).filter(token_key=key.replace("\0", "\ufffd")).select_for_update(of=("self",)).first()
    if token is None:
        raise Http404
    before = {"name": token.name, "scope": token.scope}
    audit.record(user, "token.revoke", target=token.token_key, before=before, request=request)
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])


@transaction.atomic
def undo_revoke(user: User, key: str, *, request: HttpRequest | Request | None = None) -> None:
    """Bring back a token revoked by mistake, within a few seconds. Raise Http404 afterwards."""
    token = just_revoked(user).filter(token_key=key.replace("\0", "\ufffd")).select_for_update(of=("self",)).first()
    if token is None:
        raise Http404
    audit.record(user, "token.restore", target=token.token_key, after={"name": token.name}, request=request)
    token.revoked_at = None
    token.save(update_fields=["revoked_at"])
