"""How a request proves who it is: password, session, or a personal token with a scope. No header names a person."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from django.contrib.auth.backends import BaseBackend
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.audit import address_of
from accounts.deadline import Deadline
from accounts.hashing import NoTurn, turns
from accounts.models import ApiToken, User
from accounts.namespaces import is_canonical

if TYPE_CHECKING:
    from rest_framework.views import APIView  # which reads the settings that name this file

LONGEST_SECRET = 4096  # characters; more is no password, and hashing it would cost us
ATTEMPT_PREFIX = "ta_"
SCOPES = ("read", "submit", "admin")  # each includes the ones before it
SUBMIT_ROUTES = ("/api/v1/jobs/", "/api/v1/uploads/", "/api/v1/drafts/", "/api/v1/forecast/")
IN_A_NAMESPACE = ("/api/v1/jobs/", "/api/v1/uploads/", "/api/v1/forecast/", "/api/v1/namespaces/")
READ_BY_ALL = ("/api/v1/runtimes/", "/api/v1/clusters/", "/api/v1/tokens/current/", "/api/v1/schema/", "/api/v1/docs/")
OPERATOR_ROUTES = ("/api/v1/group-mappings/", "/api/v1/sync/")
OPERATOR_WRITES = re.compile(r"/api/v1/((runtimes|namespaces/[^/]+/(members|volumes))/|namespaces/$)")
ARRIVED = "trainhall.arrived"  # in the request's scope: when it came, by time.monotonic()
SIGN_IN = 4.4  # seconds for all that looks at a password; F22 promises an answer within five
LAST_USED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why somebody is kept out, beyond a plain wrong password; a backend can only answer with a person or None."""

    kind: Literal["wrong", "too_many", "away", "ended", "unusable", "busy"]
    seconds: int = 0  # too_many: until the next try
    left: int = 0  # wrong: tries that are left


def refuse(request: HttpRequest | None, refusal: Refusal) -> None:
    if request is not None:
        request.__dict__["sign_in_refusal"] = refusal


def refusal_of(request: HttpRequest | None) -> Refusal | None:
    return None if request is None else request.__dict__.get("sign_in_refusal")


def deadline_of(request: HttpRequest | None) -> Deadline:
    """Of a sign-in as a whole: from when the request came, for who waits counts what it waited for a thread, too.

    Where the server does not say when that was, it begins when this is first asked.
    """
    if request is None:
        return Deadline(SIGN_IN)
    arrived = getattr(request, "scope", {}).get(ARRIVED)
    found: Deadline = request.__dict__.setdefault("sign_in_deadline", Deadline(SIGN_IN, since=arrived))
    return found


def is_empty_secret(secret: str | None) -> bool:
    """Also blanks and NULs: a directory may take such a bind for an anonymous one, which succeeds."""
    return not secret or not secret.strip().strip("\0").strip()


class LocalBackend(BaseBackend):
    """People whose password is kept here."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **_credentials: Any
    ) -> User | None:
        if password is None or is_empty_secret(password) or len(password) > LONGEST_SECRET or not username:
            return None
        person = self._person(username)
        try:
            with turns.one(deadline_of(request)):
                if person is None:
                    User().set_password(password)  # an unknown name takes as long as a known one
                    return None
                # the order matters: a disabled account, too, must take as long
                return person if person.check_password(password) and person.is_active else None
        except NoTurn:
            refusal = refusal_of(request)
            if refusal is None or refusal.kind == "wrong":  # which is more than anybody knows
                refuse(request, Refusal("busy"))
            return None

    def _person(self, username: str) -> User | None:
        """Exactly this spelling: who types another width or case gets neither that account nor a new one."""
        if not is_canonical(username):
            return None
        return User.objects.filter(username=username, source="local").first()

    def get_user(self, user_id: int) -> User | None:
        """Asked by every request of a session: one who was disabled is out at once."""
        return User.objects.filter(pk=user_id, is_active=True).first()


def token_of(text: str) -> ApiToken:
    """The personal token behind these characters; raise AuthenticationFailed with words that help."""
    if text.startswith(ATTEMPT_PREFIX):
        raise AuthenticationFailed(
            _("This is the token of an attempt: it writes that attempt's metrics and nothing else."), "attempt_token"
        )
    try:
        digest = hash_token(text)
    except UnicodeEncodeError:
        raise AuthenticationFailed(_("This token is not known; it may have been revoked."), "bad_token") from None
    token: ApiToken | None = ApiToken.objects.select_related("user").filter(digest=digest, revoked_at=None).first()
    if token is None:
        raise AuthenticationFailed(_("This token is not known; it may have been revoked."), "bad_token")
    if token.expiry is not None and token.expiry <= timezone.now():
        raise AuthenticationFailed(
            _("This token expired on %(day)s. Make a new one on the tokens page.")
            % {"day": f"{token.expiry:%Y-%m-%d}"},
            "token_expired",
        )
    if not token.user.is_active:
        raise AuthenticationFailed(_("The account of this token is disabled."), "account_disabled")
    return token


class ApiTokenAuthentication(TokenAuthentication):
    """`Authorization: Bearer th_…`. Found by its digest, so an expired token can be told from an unknown one."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        found: tuple[User, ApiToken] | None = super().authenticate(request)
        if found is not None:
            self._mark_used(found[1], request)
        return found

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        known = token_of(token.decode("utf-8", "replace"))
        known.user.bound_to = known.namespace_id
        return known.user, known

    def _mark_used(self, token: ApiToken, request: Request) -> None:
        """At most once a minute, by whichever request comes first: reading must not become a stream of writes."""
        now = timezone.now()
        if token.last_used_at is not None and token.last_used_at > now - LAST_USED_EVERY:
            return
        ApiToken.objects.filter(Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_EVERY), pk=token.pk).update(
            last_used_at=now, last_used_from=address_of(request)
        )


class ApiSessionAuthentication(SessionAuthentication):
    """The session of a page, with its CSRF token on everything that changes something."""


class ScopePermission(BasePermission):
    """Deny by default: nobody without a sign-in, and a token only as far as its scope reaches."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        needed = scope_for(request.method or "", request.path)
        if isinstance(request.auth, ApiToken) and SCOPES.index(request.auth.scope) < SCOPES.index(needed):
            raise PermissionDenied(
                _("This needs a token of scope %(needed)s; this one has %(scope)s.")
                % {"needed": needed, "scope": request.auth.scope},
                "scope_too_low",
            )
        if isinstance(request.auth, ApiToken) and request.auth.namespace_id is not None:
            self._check_bound(request)
        if isinstance(request.auth, ApiToken) and is_for_operators(request.method or "", request.path):
            raise PermissionDenied(
                _(
                    "No token opens this: an admin signs in, with a password, and does it on the pages or in that session."
                ),
                "operators_only",
            )
        return True

    def _check_bound(self, request: Request) -> None:
        """What belongs to no namespace, such as drafts, tokens and the site's own, is out of reach of a bound token."""
        is_read = request.method in SAFE_METHODS
        if not request.path.startswith((*IN_A_NAMESPACE, *(READ_BY_ALL if is_read else ()))):
            raise PermissionDenied(
                _("This token works in one namespace only, and this is about more than that."), "token_is_bound"
            )


def is_for_operators(method: str, path: str) -> bool:
    """What shapes the site for everybody. A token lies in files and pods of its person, so no token reaches it."""
    return path.startswith(OPERATOR_ROUTES) or (method not in SAFE_METHODS and bool(OPERATOR_WRITES.match(path)))


def scope_for(method: str, path: str) -> str:
    """The least scope for it: reading, the verbs of jobs, and everything else that changes something."""
    if method in SAFE_METHODS:
        return "read"
    return "submit" if path.startswith(SUBMIT_ROUTES) else "admin"
