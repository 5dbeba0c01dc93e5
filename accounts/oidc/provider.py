"""Asking the provider: one deadline for all of a sign-in, a limit of size, no redirects, and what it says is checked before use.

A provider that cannot be asked raises ProviderAway: nothing here takes silence for a refusal.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlsplit

import requests
import urllib3
from django.conf import settings
from requests.auth import HTTPBasicAuth

from accounts.deadline import Deadline
from accounts.openid import Provider

LARGEST = 1 << 20  # bytes of one answer
PRINTABLE = re.compile(r"[!-~]+")
KEPT = 600.0  # seconds for which what the provider says of itself is taken as it was: a key it withdraws is dead after that
MOST_AT_ONCE = 16  # calls of a process; one that never ends keeps its place
REST = 3.0  # seconds in which a provider that was silent is not asked again: others would wait for nothing


class ProviderAway(Exception):
    """The provider did not answer, or not as one the portal may use; the words say why."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any  # what the JSON said

    def __repr__(self) -> str:  # tokens must not reach a log
        return f"Answer({self.status})"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What the provider says of itself (OpenID Connect Discovery 3)."""

    authorization: str
    token: str
    keys: str
    userinfo: str  # may be empty
    takes_basic: bool  # how the portal shows its secret: in the header, else in the form


class Known:
    """What was learnt from the provider, for all threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[tuple[str, Provider], tuple[float, Any]] = {}
        self._silent_until = 0.0

    def get(self, what: str, provider: Provider, ask: Callable[[], Any], *, fresh: bool) -> Any:
        with self._lock:
            found = self._told.get((what, provider))
        if found is not None and not fresh and time.monotonic() < found[0] + KEPT:
            return found[1]
        answer = ask()  # outside the lock: one who waits for the provider must not make all wait
        with self._lock:
            self._told[what, provider] = time.monotonic(), answer
        return answer

    def check_silence(self) -> None:
        """After a rest one asks again, and the others wait for what it finds."""
        with self._lock:
            now = time.monotonic()
            if now < self._silent_until:
                raise ProviderAway("It did not answer a moment ago.")
            if self._silent_until:
                self._silent_until = now + REST

    def was_silent(self) -> None:
        with self._lock:
            self._silent_until = time.monotonic() + REST

    def has_answered(self) -> None:
        with self._lock:
            self._silent_until = 0.0

    def forget(self) -> None:
        with self._lock:
            self._told.clear()
            self._silent_until = 0.0


known = Known()
_turns = threading.BoundedSemaphore(MOST_AT_ONCE)


def the_provider() -> Provider:
    found: Provider | None = settings.OPENID
    if found is None:
        raise ProviderAway("No provider is set up (OIDC_ISSUER).")
    return found


def endpoints(provider: Provider, deadline: Deadline) -> Endpoints:
    found: Endpoints = known.get("endpoints", provider, lambda: _discovered(provider, deadline), fresh=False)
    return found


def signing_keys(provider: Provider, deadline: Deadline, *, fresh: bool) -> list[dict[str, Any]]:
    """The keys of the provider, as JSON Web Keys; `fresh` where the ones of before do not fit."""
    found: list[dict[str, Any]] = known.get("keys", provider, lambda: _keys(provider, deadline), fresh=fresh)
    return found


def client_secret(provider: Provider, where: Endpoints) -> tuple[HTTPBasicAuth | None, dict[str, str]]:
    """How the portal shows who it is, as the header and as fields of the form (RFC 6749 2.3.1)."""
    if where.takes_basic:
        return HTTPBasicAuth(quote_plus(provider.client_id), quote_plus(provider.client_secret)), {}
    return None, {"client_secret": provider.client_secret}


def asked(
    provider: Provider,
    url: str,
    deadline: Deadline,
    *,
    form: Mapping[str, str] | None = None,
    auth: HTTPBasicAuth | None = None,
    bearer: str = "",
) -> Answer:
    """GET, or POST where there is a form. Only a whole answer in JSON, in time, is one."""
    known.check_silence()
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {bearer}"} if bearer else {})

    def call() -> tuple[int, bytes]:
        with requests.request(
            "GET" if form is None else "POST",
            url,
            data=form,
            headers=headers,
            auth=auth or _as_it_is,
            timeout=deadline.left(),
            verify=provider.ca_file or True,
            allow_redirects=False,
            stream=True,
        ) as answer:
            return answer.status_code, _read(answer, deadline)

    try:
        status, body = _in_time(call, deadline)
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        if isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError | TimeoutError):
            known.was_silent()
        raise ProviderAway(f"{_place(url)}: {type(error).__name__}") from error
    known.has_answered()
    if status >= 500 or 300 <= status < 400:
        raise ProviderAway(f"{_place(url)} answers {status}.")
    try:
        return Answer(status, json.loads(body))
    except (ValueError, RecursionError):
        raise ProviderAway(f"{_place(url)} answers {status} without JSON.") from None


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Without it a password for that host in somebody's .netrc would take the place of the header."""
    return request


def _in_time(call: Callable[[], tuple[int, bytes]], deadline: Deadline) -> tuple[int, bytes]:
    """In a thread of its own: names are looked up and headers read without a time-out that counts for the whole."""
    if not _turns.acquire(timeout=deadline.left()):
        raise TimeoutError("Too many ask it at once")
    done: Future[tuple[int, bytes]] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # whatever it is, it is raised where somebody waits for it
            done.set_exception(error)
        finally:
            _turns.release()

    threading.Thread(target=run, name="asks the OpenID Connect provider", daemon=True).start()
    return done.result(max(0.0, deadline.rest))


def _read(answer: requests.Response, deadline: Deadline) -> bytes:
    """A time-out is for each read: who sends a byte a second would never reach it."""
    body = bytearray()
    while chunk := answer.raw.read1(65536, decode_content=True):
        body += chunk
        if len(body) > LARGEST:
            raise ProviderAway(f"{_place(answer.url)} answers with more than {LARGEST} bytes.")
        deadline.left()
    return bytes(body)


def _discovered(provider: Provider, deadline: Deadline) -> Endpoints:
    url = f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration"
    answer = asked(provider, url, deadline)
    told = answer.body
    if answer.status != 200 or not isinstance(told, dict):
        raise ProviderAway(f"{_place(url)} answers {answer.status}: it is no OpenID Connect provider.")
    if told.get("issuer") != provider.issuer:
        raise ProviderAway(f"OIDC_ISSUER is {provider.issuer!r}, but the provider calls itself {told.get('issuer')!r}.")
    methods = told.get("token_endpoint_auth_methods_supported") or [
        "client_secret_basic"
    ]  # the default of the standard
    return Endpoints(
        authorization=_endpoint(told, "authorization_endpoint", provider),
        token=_endpoint(told, "token_endpoint", provider),
        keys=_endpoint(told, "jwks_uri", provider),
        userinfo=_endpoint(told, "userinfo_endpoint", provider) if told.get("userinfo_endpoint") else "",
        takes_basic=isinstance(methods, list) and "client_secret_basic" in methods,
    )


def _endpoint(told: Mapping[str, Any], name: str, provider: Provider) -> str:
    """A URL that is as safe as the issuer's own: plain http only where that is on this machine."""
    url = told.get(name)
    try:
        parts = urlsplit(url if isinstance(url, str) and PRINTABLE.fullmatch(url) else "")
    except ValueError:
        parts = urlsplit("")
    schemes = ("https", "http") if provider.issuer.startswith("http:") else ("https",)
    if parts.scheme not in schemes or not parts.hostname or parts.fragment:
        raise ProviderAway(f"The provider's {name} cannot be used: {url!r}.")
    return str(url)


def _keys(provider: Provider, deadline: Deadline) -> list[dict[str, Any]]:
    url = endpoints(provider, deadline).keys
    answer = asked(provider, url, deadline)
    found = answer.body.get("keys") if answer.status == 200 and isinstance(answer.body, dict) else None
    if not isinstance(found, list):
        raise ProviderAway(f"{_place(url)} answers {answer.status} without keys.")
    return [key for key in found if isinstance(key, dict)]


def _place(url: str) -> str:
    """Without the query, which may hold what is nobody's business."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
