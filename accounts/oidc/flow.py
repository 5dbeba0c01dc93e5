"""The two steps of a sign-in through the provider: sending the browser there, and taking its answer."""

from __future__ import annotations

import hmac
import logging
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from django.conf import settings
from django.contrib.auth import login
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.utils.translation import gettext as _
from mozilla_django_oidc.views import OIDCAuthenticationRequestView

from accounts import audit, throttle
from accounts.deadline import Deadline
from accounts.forms import LoginForm
from accounts.oidc.exchange import Exchange, Refused
from accounts.oidc.provider import ProviderAway, endpoints, the_provider
from accounts.openid import SOURCE, Provider
from accounts.own_paths import own_path
from accounts.views import UNTIL_THE_BROWSER_CLOSES, landing, login_page, too_many

BACKEND = "accounts.oidc.backend.ProviderBackend"
BEGUN = "oidc_states"  # in the session, by the library: what belongs to each state
LASTS = 600  # seconds from the button to the provider's answer
STATUS = {"not_begun": 400, "declined": 403, "unproven": 403, "ended": 403}
# RFC 6749 4.1.2.1 and OpenID Connect Core 3.1.2.6: what a person may do about it is to try again
TROUBLES = ("server_error", "temporarily_unavailable")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Begun:
    """What this browser was sent to the provider with."""

    nonce: str
    code_verifier: str
    wanted: str  # where the person wanted to go


class _Asking(OIDCAuthenticationRequestView):
    """The library's request: a new state, nonce and PKCE challenge, kept in the session."""

    provider: Provider
    redirect_uri: str
    authorization: str

    def get_settings(self, attr: str, *default: Any) -> Any:
        ours = {
            "OIDC_OP_AUTHORIZATION_ENDPOINT": self.authorization.partition("?")[0],
            "OIDC_RP_CLIENT_ID": self.provider.client_id,
            "OIDC_RP_SCOPES": "openid profile email",
            "OIDC_USE_PKCE": True,
            "OIDC_AUTHENTICATION_CALLBACK_URL": "accounts:openid_answer",
        }
        return ours.get(attr, *default)

    def get_extra_params(self, _request: HttpRequest) -> dict[str, str]:
        query = parse_qsl(urlsplit(self.authorization).query)
        return {**dict(query), "redirect_uri": self.redirect_uri}


def begin(request: HttpRequest) -> HttpResponse:
    """A page that goes on to the provider by itself: a redirect of a form would need each host on the way in our CSP."""
    wanted = own_path(request.POST.get("next"))
    if request.user.is_authenticated:
        return redirect(wanted)
    provider = the_provider()
    try:
        where = endpoints(provider, Deadline(provider.patience))
    except ProviderAway as error:
        return _away(request, wanted, error, attempt=_try(request))
    asking = _Asking(provider=provider, redirect_uri=_redirect_uri(request), authorization=where.authorization)
    url = str(asking.get(request)["Location"])
    state = parse_qs(urlsplit(url).query)["state"][0]
    request.session[BEGUN][state]["wanted"] = wanted
    request.session.set_expiry(LASTS)
    page = render(request, "accounts/to_provider.html", {"url": url, "host": urlsplit(url).netloc})
    page["Refresh"] = f"0;url={url}"
    return page


def answer(request: HttpRequest) -> HttpResponse:
    """The browser is back. Each try counts for its address."""
    attempt = _try(request)
    if isinstance(attempt, throttle.TooMany):
        return too_many(request, LoginForm(), own_path(None), attempt.seconds)
    provider, begun = the_provider(), _begun(request)
    wanted = begun.wanted if begun else own_path(None)
    try:
        if begun is None:
            raise Refused("not_begun", "no sign-in with this state was begun in this browser")
        _check_answer(request, provider)
        person = Exchange(provider, _redirect_uri(request)).person_of(
            request, nonce=begun.nonce, code_verifier=begun.code_verifier
        )
    except ProviderAway as error:
        return _away(request, wanted, error, attempt=attempt)
    except Refused as refusal:
        return _refused(request, wanted, refusal, attempt=attempt)
    attempt.was_right()
    with transaction.atomic():
        login(request, person, backend=BACKEND)  # gives the session a new key
        request.session.set_expiry(UNTIL_THE_BROWSER_CLOSES)
        audit.record(person, "session.login", after={"source": SOURCE}, request=request)
    return redirect(landing(person, wanted))


def _try(request: HttpRequest) -> throttle.Try | throttle.TooMany:
    """Counted apart from passwords: where the provider is away many press the button, and an admin's password must get in."""
    return throttle.begin(f"{SOURCE} {get_random_string(32)}", f"{SOURCE} {audit.address_of(request) or ''}")


def _tell_if_spent(request: HttpRequest, attempt: throttle.Try) -> None:
    """The tries that are refused from now on leave no rows."""
    if not attempt.left_here:
        after = {"source": SOURCE, "no_tries_left_for": ["address"]}
        audit.record(None, "session.throttled", after=after, request=request)


def _redirect_uri(request: HttpRequest) -> str:
    """The portal's own address: as the browser knows it where that is one of ours, for its session lives there."""
    here = f"{request.scheme}://{request.get_host()}"
    origin = here if here in settings.TRAINHALL_ORIGINS else settings.TRAINHALL_ORIGINS[0]
    return f"{origin}{reverse('accounts:openid_answer')}"


def _begun(request: HttpRequest) -> Begun | None:
    """What belongs to the state of this answer. It is good for one, whatever comes of it."""
    kept = request.session.get(BEGUN)
    found = kept.pop(request.GET.get("state", ""), None) if isinstance(kept, dict) else None
    if found is None:
        return None
    request.session.modified = True
    request.session.save()  # asking the provider takes its time, and the same answer may come twice
    if time.time() > found["added_on"] + LASTS:
        return None
    return Begun(nonce=found["nonce"], code_verifier=found["code_verifier"], wanted=own_path(found.get("wanted")))


def _check_answer(request: HttpRequest, provider: Provider) -> None:
    issuer = request.GET.get("iss", provider.issuer)  # RFC 9207: an answer of another provider is none
    if not hmac.compare_digest(issuer.encode(), provider.issuer.encode()):
        raise Refused("unproven", "the answer comes from another provider")
    error = request.GET.get("error")
    if error in TROUBLES:
        raise ProviderAway(f"It answers {error}.")
    if error is not None:
        logger.warning("The provider signs somebody not in: %r", error[:100])
        raise Refused("declined", f"the provider says {error[:100]}")


def _away(
    request: HttpRequest, wanted: str, error: ProviderAway, *, attempt: throttle.Try | throttle.TooMany
) -> HttpResponse:
    logger.warning("The OpenID Connect provider cannot be asked: %s", error)
    if isinstance(attempt, throttle.Try):  # a flood must not fill the trail
        after = {"source": SOURCE, "reason": "the provider is away"}
        audit.record(None, "session.failed", after=after, request=request)
        _tell_if_spent(request, attempt)
    words = _(
        "The provider behind this button does not answer, so its people cannot sign in just now. Who is signed in stays so. "
        "Try again in a minute."
    )
    return login_page(request, LoginForm(), wanted, error=words, status=503)


def _refused(request: HttpRequest, wanted: str, refusal: Refused, *, attempt: throttle.Try) -> HttpResponse:
    target = refusal.person.username if refusal.person else ""
    after = {"source": SOURCE, "reason": refusal.reason}
    audit.record(None, "session.failed", target=target, after=after, request=request)
    _tell_if_spent(request, attempt)
    if refusal.kind == "unproven":
        logger.warning("Somebody cannot sign in through the provider: %s", refusal.reason)
    words = {
        "not_begun": _("This sign-in was not begun in this browser, or it took longer than ten minutes. Begin again."),
        "declined": _("The provider did not sign you in."),
        "unproven": _(
            "What the provider answered does not prove who you are, so nobody was signed in. Begin again; if it stays so, "
            "tell the portal's admin."
        ),
        "ended": _("This account is disabled. An admin of the portal can say why."),
    }[refusal.kind]
    return login_page(request, LoginForm(), wanted, error=words, status=STATUS[refusal.kind])
