"""Signing in and out, one's tokens, and where one may do what."""

from __future__ import annotations

import math
import uuid
from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_not_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, audit, throttle, tokens
from accounts.auth import Refusal, is_empty_secret, refusal_of
from accounts.forms import LoginForm, TokenForm
from accounts.models import Membership, User
from accounts.own_paths import HOME, own_path

TWELVE_HOURS = 12 * 3600
UNTIL_THE_BROWSER_CLOSES = 0
LAST_PAGE = "token_page"  # in the session: from which page the last token was made


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    wanted = own_path(request.POST.get("next") or request.GET.get("next"))
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect(wanted)
        return login_page(request, LoginForm(), wanted)

    form = LoginForm(request.POST)
    if not form.is_valid() or is_empty_secret(form.cleaned_data["password"]):
        return login_page(request, form, wanted, error=_("Type your user name and your password."), status=400)
    username = form.cleaned_data["username"]
    attempt = throttle.begin(username, audit.address_of(request))
    if isinstance(attempt, throttle.TooMany):
        return too_many(request, form, wanted, attempt.seconds)
    person = authenticate(request, username=username, password=form.cleaned_data["password"])
    if person is None:
        return _refused(request, form, wanted, attempt)
    attempt.was_right()
    with transaction.atomic():
        login(request, person)  # gives the session a new key
        request.session.set_expiry(TWELVE_HOURS if form.cleaned_data["keep"] else UNTIL_THE_BROWSER_CLOSES)
        audit.record(person, "session.login", request=request)
    return redirect(landing(person, wanted))


def login_page(
    request: HttpRequest, form: LoginForm, wanted: str, *, error: str = "", status: int = 200, seconds: int = 0
) -> HttpResponse:
    context = {
        "form": form,
        "next": "" if wanted == HOME else wanted,
        "error": error,
        "wait_seconds": seconds,
        "login_help": settings.TRAINHALL_LOGIN_HELP,
        "has_directory": settings.DIRECTORY is not None,
        "openid": settings.OPENID,
    }
    return render(request, "accounts/login.html", context, status=status)


def _refused(request: HttpRequest, form: LoginForm, wanted: str, attempt: throttle.Try) -> HttpResponse:
    """What is said of an account is said only to who knew its password; the rest is the same for every name."""
    refusal = refusal_of(request)
    _record_failure(request, form.cleaned_data["username"], attempt, refusal)
    if refusal is None or refusal.kind == "wrong":
        left = attempt.left if refusal is None else min(attempt.left, refusal.left)
        return login_page(request, form, wanted, error=_wrong(left, refusal), status=401)
    if refusal.kind == "too_many":
        return too_many(request, form, wanted, refusal.seconds)
    if refusal.kind == "away":
        attempt.blame_the_directory()
    words, status = {
        "busy": (_("Too many people sign in at this moment. Try again in a few seconds."), 503),
        "away": (
            _(
                "The directory does not answer, so its people cannot sign in just now. Who is signed in stays so. "
                "Try again in a minute."
            ),
            503,
        ),
        "ended": (
            _(
                "This account has ended or is disabled. An admin of the portal, or whoever looks after the directory, "
                "can say why."
            ),
            403,
        ),
        "unusable": (
            _(
                "The directory knows you, but does not show the portal which entry you are (entryUUID). "
                "Tell the portal's admin."
            ),
            403,
        ),
    }[refusal.kind]
    return login_page(request, form, wanted, error=words, status=status)


def too_many(request: HttpRequest, form: LoginForm, wanted: str, seconds: int) -> HttpResponse:
    if seconds > 90:
        minutes = math.ceil(seconds / 60)
        words = ngettext(
            "Too many failed tries. Try again in %(minutes)s minute.",
            "Too many failed tries. Try again in %(minutes)s minutes.",
            minutes,
        ) % {"minutes": minutes}
    else:
        words = ngettext(
            "Too many failed tries. Try again in %(seconds)s second.",
            "Too many failed tries. Try again in %(seconds)s seconds.",
            seconds,
        ) % {"seconds": seconds}
    response = login_page(request, form, wanted, error=words, status=429, seconds=seconds)
    response["Retry-After"] = str(seconds)
    return response


def _wrong(left: int, refusal: Refusal | None) -> str:
    """The same for a name that exists, one that does not, and one that is disabled."""
    words = _("User name or password is wrong.")
    if refusal is not None:  # the directory was asked, which it is only so often
        if not left:
            return f"{words} " + _("No tries left for ten minutes.")
        return f"{words} " + ngettext(
            "%(left)s try left, then ten minutes of waiting.", "%(left)s tries left, then ten minutes of waiting.", left
        ) % {"left": left}
    if not left:
        return f"{words} " + _("No tries left for one minute.")
    return f"{words} " + ngettext(
        "%(left)s try left, then one minute of waiting.", "%(left)s tries left, then one minute of waiting.", left
    ) % {"left": left}


def _record_failure(request: HttpRequest, username: str, attempt: throttle.Try, refusal: Refusal | None) -> None:
    """Only a name that exists is written down: people type passwords into the wrong field.

    The tries that a flood is refused afterwards leave no rows, which nobody may ever delete; that it is, this one tells.
    """
    target = username if User.objects.filter(username=username).exists() else ""
    audit.record(None, "session.failed", target=target, request=request)
    by_directory = refusal is not None and refusal.kind == "wrong" and not refusal.left
    spent = {"name": not attempt.left, "address": not attempt.left_here, "directory": by_directory}
    if any(spent.values()):
        after = {"no_tries_left_for": [what for what, is_so in spent.items() if is_so]}
        audit.record(None, "session.throttled", target=target, after=after, request=request)


def landing(person: User, wanted: str) -> str:
    """Who has nothing but a namespace of their own is shown whom to ask, instead of an empty home page."""
    shares = Membership.objects.filter(user=person, namespace__kind="project").exists()
    if wanted == HOME and not shares and not person.sees_everything:
        return "accounts:my_namespaces"
    return wanted


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    with transaction.atomic():
        audit.record(cast(User, request.user), "session.logout", request=request)
        logout(request)
    return redirect("accounts:login")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def my_tokens(request: HttpRequest) -> HttpResponse:
    """The list, and the form for a new one, whose characters are on the answer to the POST and nowhere else."""
    person = cast(User, request.user)
    mine = list(access.namespaces_for(person).values_list("slug", flat=True))
    form, text, status = TokenForm(namespaces=mine), "", 200
    if request.method == "POST":
        form, status = TokenForm(request.POST, namespaces=mine), 400
        page = request.POST.get("page", "")[:40]
        if page and page == request.session.get(LAST_PAGE):
            # the answer to a POST was loaded again: one press of the button is one token
            messages.info(request, _("That token is made already; its characters were shown once."))
            return redirect("accounts:tokens")
        if form.is_valid():
            _token, text = tokens.issue(person, **form.cleaned_data, request=request)
            request.session[LAST_PAGE] = page
            form, status = TokenForm(namespaces=mine), 201
    context = {
        "tokens": tokens.living(person),
        "revoked": tokens.just_revoked(person),
        "form": form,
        "page": uuid.uuid4(),
        "new_token": text,
    }
    return render(request, "accounts/tokens.html", context, status=status)


@require_POST
def revoke_token(request: HttpRequest, key: str) -> HttpResponse:
    tokens.revoke(cast(User, request.user), key, request=request)
    return redirect("accounts:tokens")


@require_POST
def restore_token(request: HttpRequest, key: str) -> HttpResponse:
    """Undo a revocation while the page still offers it."""
    try:
        tokens.undo_revoke(cast(User, request.user), key, request=request)
    except Http404:
        messages.error(request, _("It is too late to undo this. Make a new token."))
    return redirect("accounts:tokens")


@require_safe
def my_namespaces(request: HttpRequest) -> HttpResponse:
    person = cast(User, request.user)
    return render(
        request,
        "accounts/my_namespaces.html",
        {
            "places": access.places_of(person),
            "offers": access.offers_for(person),
            "groups": person.directory_groups,
            "site_role": person.site_role,
        },
    )
