"""From the code that a browser brings to an account: mozilla-django-oidc leads through the exchange, the checks are here.

The library's own would take any audience and issuer, and an account by its e-mail address.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import jwt
from django.contrib.auth.models import update_last_login
from django.db import transaction
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from accounts import people, sync
from accounts.deadline import Deadline
from accounts.models import User
from accounts.oidc.provider import ProviderAway, asked, client_secret, endpoints, signing_keys
from accounts.openid import SOURCE, ClaimsUnusable, Provider, read_groups, read_person

ALGORITHMS = {"RS256": {"kty": "RSA"}, "ES256": {"kty": "EC", "crv": "P-256"}}  # what a key must be to sign so
LEEWAY = 30  # seconds that two clocks may differ
NEEDED = ["iss", "sub", "aud", "exp", "iat"]
logger = logging.getLogger(__name__)


class Refused(Exception):
    """Nobody is signed in. `kind` chooses the words for the page, `reason` goes into the audit trail."""

    def __init__(
        self, kind: Literal["not_begun", "declined", "unproven", "ended"], reason: str, *, person: User | None = None
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.person = person


class Exchange(OIDCAuthenticationBackend):
    """One sign-in. No backend of Django's: it would take a code from whatever address the password form is sent to."""

    def __init__(self, provider: Provider, redirect_uri: str) -> None:
        self.provider = provider
        self.deadline = Deadline(provider.patience)
        self.endpoints = endpoints(provider, self.deadline)
        self.redirect_uri = redirect_uri
        super().__init__()

    def get_settings(self, attr: str, *default: Any) -> Any:
        """The library asks for its settings by these names; what is not among them is as it likes."""
        ours = {
            "OIDC_OP_TOKEN_ENDPOINT": self.endpoints.token,
            "OIDC_OP_USER_ENDPOINT": self.endpoints.userinfo,
            "OIDC_OP_JWKS_ENDPOINT": self.endpoints.keys,
            "OIDC_RP_CLIENT_ID": self.provider.client_id,
            "OIDC_RP_CLIENT_SECRET": self.provider.client_secret,
            "OIDC_RP_SIGN_ALGO": "RS256",
            "OIDC_AUTHENTICATION_CALLBACK_URL": "accounts:openid_answer",
        }
        return ours.get(attr, *default)

    def person_of(self, request: HttpRequest, *, nonce: str, code_verifier: str) -> User:
        """The account behind the code in this request. Raise Refused or ProviderAway."""
        found: User | None = self.authenticate(request, nonce=nonce, code_verifier=code_verifier)
        if found is None:
            raise Refused("unproven", "the answer brought no code")
        return found

    def get_token(self, payload: dict[str, str]) -> dict[str, Any]:
        """Redeem the code; the address is the public one, whatever host the request named."""
        auth, fields = client_secret(self.provider, self.endpoints)
        form = {**payload, "redirect_uri": self.redirect_uri}
        del form["client_secret"]
        answer = asked(self.provider, self.endpoints.token, self.deadline, form={**form, **fields}, auth=auth)
        told = answer.body if isinstance(answer.body, dict) else {}
        if answer.status == 400 and told.get("error") == "invalid_grant":
            raise Refused("unproven", "the provider does not know the code")
        if answer.status != 200:
            raise ProviderAway(f"The token endpoint answers {answer.status}: {str(told.get('error'))[:100]!r}.")
        if not isinstance(told.get("id_token"), str):
            raise Refused("unproven", "there is no ID token")
        return told

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        """What the ID token says, once its signature and all it is for hold (OpenID Connect Core 3.1.3.7)."""
        claims = self._signed_claims(token)
        audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        authorized = claims.get("azp", self.provider.client_id if len(audiences) == 1 else None)
        if authorized != self.provider.client_id:
            raise Refused("unproven", "the ID token was given to another client")
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode("utf-8", "replace"), kwargs["nonce"].encode()):
            raise Refused("unproven", "the nonce is another one")
        return claims

    def _signed_claims(self, token: str) -> dict[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
            algorithm = str(header.get("alg"))
            if algorithm not in ALGORITHMS:  # `none`, or HS256 with the public key for a secret
                raise Refused("unproven", "the ID token is signed in a way that is not allowed")
            for key in self._keys_for(header):
                try:
                    return self._decoded(token, key, algorithm)
                except jwt.InvalidSignatureError:
                    continue
        except (jwt.PyJWTError, ValueError, TypeError, ArithmeticError) as error:  # whatever PyJWT stumbles over, too
            raise Refused("unproven", f"the ID token does not hold: {type(error).__name__}") from error
        raise Refused("unproven", "no key of the provider signed the ID token")

    def _decoded(self, token: str, key: jwt.PyJWK, algorithm: str) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=self.provider.client_id,
            issuer=self.provider.issuer,
            leeway=LEEWAY,
            options={"require": NEEDED},
        )
        return claims

    def _keys_for(self, header: Mapping[str, Any]) -> Iterator[jwt.PyJWK]:
        """First those known already; the provider may have others by now."""
        for fresh in (False, True):
            for found in signing_keys(self.provider, self.deadline, fresh=fresh):
                wanted = ALGORITHMS[header["alg"]] | ({"kid": header["kid"]} if "kid" in header else {})
                if any(found.get(name) != value for name, value in wanted.items()):
                    continue
                if found.get("use", "sig") != "sig" or found.get("alg", header["alg"]) != header["alg"]:
                    continue
                try:
                    yield jwt.PyJWK(found, algorithm=header["alg"])
                except (jwt.PyJWKError, jwt.InvalidKeyError) as error:
                    logger.warning("A key of the provider cannot be read: %s", type(error).__name__)

    def get_or_create_user(self, access_token: str | None, id_token: str, payload: dict[str, Any]) -> User:
        """The account of this `sub`, brought in line with the claims. A name or an address finds nobody."""
        claims = self._with_userinfo(access_token, id_token, payload)
        try:
            entry = read_person(self.provider, claims)
        except ClaimsUnusable as error:
            raise Refused("unproven", str(error)) from error
        person = people.from_directory(entry, source=SOURCE)
        if not person.is_active:
            raise Refused("ended", "the account is disabled", person=person)
        with transaction.atomic():
            update_last_login(
                User, person
            )  # before its roles are seen, or `openid_roles` would take them for unconfirmed
            sync.give_roles(person, entry, read_groups(self.provider, claims, entry))
        return person

    def _with_userinfo(self, access_token: str | None, id_token: str, payload: dict[str, Any]) -> dict[str, Any]:
        """What the ID token left out, some providers tell only there; what is signed goes before it."""
        wanted = {self.provider.username_claim, "name", "email", self.provider.groups_claim} - {""}
        if wanted <= payload.keys() or not (access_token and self.endpoints.userinfo):
            return payload
        told = self.get_userinfo(access_token, id_token, payload)
        if told.get("sub") != payload["sub"]:
            raise Refused("unproven", "userinfo tells of somebody else")
        return {**told, **payload}

    def get_userinfo(self, access_token: str, id_token: str, payload: dict[str, Any]) -> dict[str, Any]:
        answer = asked(self.provider, self.endpoints.userinfo, self.deadline, bearer=access_token)
        if answer.status != 200 or not isinstance(answer.body, dict):
            raise ProviderAway(f"Userinfo answers {answer.status}.")
        return answer.body
