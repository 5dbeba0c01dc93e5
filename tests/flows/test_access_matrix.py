"""Who gets in where: everybody asks everything, and nobody gets what the approved table does not give them (F24)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from accounts import tokens
from accounts.models import User
from portal import wheel
from tests.flows.access_table import BARE, CAST, ROUTES, Rule
from tests.flows.conftest import Stage
from tests.flows.routes import ANY, bare_routes, http_routes

pytestmark = [pytest.mark.django_db, pytest.mark.long]

IDENTITY_HEADERS = {
    "X-Forwarded-User": "admin",
    "Remote-User": "admin",
    "X-Remote-User": "admin",
    "X-Auth-Request-User": "admin",
    "kubeflow-userid": "admin",
    "Impersonate-User": "admin",
    "X-Forwarded-For": "127.0.0.1",
    "X-Real-IP": "127.0.0.1",
}


MADE_UP = {
    "job_id": "zzzzzzzzzz",
    "name": "no-such",
    "key": "th_000000000000",
    "sha256": "f" * 64,
    "slug": "no-such",
    "draft_id": "00000000-0000-4000-8000-000000000000",
    "view_id": "999999999",
    "mapping_id": "999999999",
    "membership_id": "999999999",
    "user_id": "999999999",
    "username": "no-such-person",
    "path": "out/no-such",
    "secret": "no-such",
    "volume": "no-such",
}
DOCUMENT = {"namespace": "vision", "runtime": "shell", "command": "echo hello"}
FORM = {**DOCUMENT, "name": "hello", "idempotency_key": "once", "workers": "1", "gpus": "0"}
# What a route is sent; everything else gets an empty JSON object.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/login/"): {"data": {"username": "alice", "password": ""}},
    ("POST", "/logout/"): {"data": {}},
    ("POST", "/me/tokens/"): {"data": {"name": "x", "scope": "read", "days": 1}},
    ("POST", "/api/v1/tokens/"): {"data": {"name": "x"}, "content_type": "application/json"},
    ("POST", "/api/v1/jobs/"): {"data": DOCUMENT, "content_type": "application/json"},
    ("PUT", "/api/v1/namespaces/<name>/secrets/<secret>/"): {
        "data": {"values": {"wandb": "barium"}},
        "content_type": "application/json",
    },
    ("PUT", "/api/v1/namespaces/<name>/volumes/<volume>/"): {
        "data": {"path": "/elsewhere"},
        "content_type": "application/json",
    },
    ("POST", "/admin/volumes/<name>/"): {"data": {"name": "datasets", "path": "/elsewhere"}},
    ("POST", "/api/v1/forecast/"): {"data": DOCUMENT, "content_type": "application/json"},
    ("POST", "/jobs/new/"): {"data": FORM},
    ("POST", "/jobs/forecast/"): {"data": FORM},
    ("POST", "/jobs/preview/"): {"data": FORM},
    ("POST", "/jobs/document/"): {"data": FORM},
    ("POST", "/jobs/sample/"): {"data": {"namespace": "vision"}},
}
READ_NO_QUERY = {
    "/api/v1/schema/",
    "/api/v1/docs/",
    "/status/",
    "/readyz",
    "/healthz",
    "/metrics",
    "/sdk/",
    "/sdk/<name>",
}
# 503 is the answer where no worker runs, and where no directory is connected, as in these tests
TELLS_WHAT_IS_DOWN = {"/readyz", "/api/v1/sync/"}
FORMS = re.compile(r"^/(me|jobs|admin)/")


@contextmanager
def undone() -> Iterator[None]:
    """Whatever a request does is taken back, so that the next one meets the same stage."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def fill(route: str, values: dict[str, str]) -> str:
    """The path of a route. An unknown kind of parameter fails: say above what is alice's and what is made up."""
    if route == "/sdk/<name>":
        return f"/sdk/{wheel.wheel_name()}"
    return re.sub(r"<(\w+)>", lambda match: values[match.group(1)], route)


def ask(client: Client, method: str, route: str, values: dict[str, str], **headers: str) -> Any:
    body = BODIES.get((method, route), {"data": {}} if FORMS.match(route) else {"content_type": "application/json"})
    arguments = {} if method in ("GET", "DELETE") else body
    return getattr(client, method.lower())(fill(route, values), **arguments, headers=headers)


def is_turned_away(answer: Any) -> bool:
    return answer.status_code == 401 or (answer.status_code == 302 and answer["Location"].startswith("/login/"))


def neutral(answer: Any, values: dict[str, str]) -> tuple[Any, ...]:
    """An answer without the id that was asked for and without what differs between any two renderings."""
    body = answer.content.decode()
    for value in values.values():
        if not value.isdecimal() or len(value) > 3:  # the number of a person is in every other number too
            body = body.replace(value, "<id>")
    body = re.sub(r'(name="csrfmiddlewaretoken" value=|nonce=|data-csrf=|"X-CSRFToken": ?)"[^"]*"', "", body)
    body = re.sub(r"&quot;X-CSRFToken&quot;: ?&quot;\w+&quot;", "", body)
    body = re.sub(r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(\.\d+)?", "<time>", body)
    return answer.status_code, answer.headers.get("Content-Type"), body


def listed() -> list[tuple[str, str, Rule]]:
    return [(method, route, rule) for route, methods in ROUTES.items() for method, rule in methods.items()]


def test_every_route_and_method_is_listed_and_nothing_else() -> None:
    there = http_routes()
    silent = {route for route, methods in there.items() if ANY in methods}
    assert not silent, f"views that do not say which methods they take: {silent}"
    approved = {route: set(methods) for route, methods in ROUTES.items()}
    missing = {route: methods for route, methods in there.items() if methods != approved.get(route, set())}
    gone = {route: methods for route, methods in approved.items() if route not in there}
    assert not missing, f"say in access_table.py who may: {missing}"
    assert not gone, f"listed, but not there: {gone}"


def test_every_route_in_front_of_django_is_listed_and_nothing_else() -> None:
    assert bare_routes() == {route: set(methods) for route, methods in BARE.items()}


@pytest.mark.parametrize("who", CAST)
def test_each_of_the_cast_gets_exactly_what_the_table_gives(stage: Stage, who: str) -> None:
    wrong: list[str] = []
    there = http_routes()
    for method, route, rule in listed():
        if route not in there:
            continue  # the test above says so
        with undone():
            client = stage.client(who)
            before = stage.state()
            answer = ask(client, method, route, stage.real())
            status = answer.status_code
            if who in rule.who:
                fine = (
                    (status < 500 or route in TELLS_WHAT_IS_DOWN)
                    and status not in (401, 403, 404, 405)
                    and not (is_turned_away(answer) and route != "/logout/")
                )
            elif rule.hides and not rule.who:
                fine = status == 404
            elif who == "nobody":
                fine = is_turned_away(answer)
            elif rule.asks:
                fine = status < 500
            elif rule.hides and (who == "stranger" or rule.who == {"owner"}):
                fine = status == 404
            else:
                fine = status == 403
            if who not in rule.who and stage.state() != before:
                fine = False
            if not fine:
                wrong.append(f"{method} {route} -> {status}")
    assert not wrong, f"{who}: {wrong}"


def test_a_stranger_cannot_tell_what_is_alices_from_what_is_made_up(stage: Stage) -> None:
    different: list[str] = []
    for method, route, rule in listed():
        if not rule.hides or route not in http_routes():
            continue
        client = stage.client("stranger")
        for verb in {method, "OPTIONS"}:
            with undone():
                theirs = neutral(ask(client, verb, route, stage.real()), stage.real())
                made_up = neutral(ask(client, verb, route, MADE_UP), MADE_UP)
            if theirs != made_up:
                different.append(f"{verb} {route}: {theirs[0]} {made_up[0]}")
    assert not different


def test_an_id_that_no_database_can_hold_is_like_a_made_up_one(stage: Stage) -> None:
    wrong: list[str] = []
    for method, route, rule in listed():
        if not rule.hides or route not in http_routes():
            continue
        for odd in ("a%00b", "x" * 300, "%F0%9F%A6%8A", "-1", "..", "%27%22"):
            with undone():
                answer = ask(stage.client("admin"), method, route, dict.fromkeys(MADE_UP, odd))
            if answer.status_code != 404 and not (odd == ".." and answer.status_code < 500):
                wrong.append(f"{method} {route} {odd[:8]} -> {answer.status_code}")
    assert not wrong


def test_an_odd_query_string_is_an_answer_and_no_crash(stage: Stage) -> None:
    names = (
        "namespace",
        "status",
        "user",
        "tag",
        "q",
        "since",
        "cursor",
        "limit",
        "page",
        "after",
        "worker",
        "from",
        "next",
    )
    wrong: list[str] = []
    client = stage.client("owner")
    for method, route, _rule in listed():
        if method != "GET" or route in READ_NO_QUERY or route not in http_routes():
            continue
        path = fill(route, stage.real())
        for query in (f"{name}={odd}" for name in names for odd in ("a%00b", "9" * 30)):
            with undone():
                status = client.get(f"{path}?{query}").status_code
            if status >= 500:
                wrong.append(f"{route}?{query[:20]} -> {status}")
    assert not wrong


def test_no_header_names_a_person(stage: Stage) -> None:
    """R93: what a pod can send changes nothing, for nobody and for a stranger."""
    believed: list[str] = []
    for method, route, _rule in listed():
        if route not in http_routes():
            continue
        for who in ("nobody", "stranger"):
            with undone():
                plain = ask(stage.client(who), method, route, stage.real()).status_code
            with undone():
                dressed = ask(stage.client(who), method, route, stage.real(), **IDENTITY_HEADERS).status_code
            if plain != dressed:
                believed.append(f"{who} {method} {route}: {plain} became {dressed}")
    assert not believed


def test_a_read_token_changes_nothing(stage: Stage, admin: User) -> None:
    """Even an admin's: its scope is the limit."""
    _token, text = tokens.issue(admin, name="read only", scope="read", days=1)
    passed: list[str] = []
    for method, route, rule in listed():
        if method == "GET" or not route.startswith("/api/") or route not in http_routes() or not rule.who:
            continue
        with undone():
            before = stage.state()
            answer = ask(Client(), method, route, stage.real(), Authorization=f"Bearer {text}")
            if answer.status_code != 403 or answer.json()["error"]["code"] != "scope_too_low":
                passed.append(f"{method} {route} -> {answer.status_code}")
            assert stage.state() == before
    assert not passed


def test_a_session_changes_nothing_without_its_csrf_token(stage: Stage) -> None:
    passed: list[str] = []
    for method, route, rule in listed():
        if method == "GET" or route not in http_routes() or not rule.who:
            continue
        browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
        browser.force_login(stage.people["owner"])
        with undone():
            if (status := ask(browser, method, route, stage.real()).status_code) != 403:
                passed.append(f"{method} {route} -> {status}")
    assert not passed
