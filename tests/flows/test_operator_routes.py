"""Operators' routes apart from the others: where they are not, they are like made-up ones; and no token opens them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.test import Client, override_settings

from accounts import tokens
from accounts.models import User
from portal.settings.operator import Operator
from tests.flows.access_table import ADMIN, CAST, ROUTES
from tests.flows.conftest import Stage
from tests.flows.routes import http_routes
from tests.flows.test_access_matrix import ask, fill, neutral, undone

pytestmark = pytest.mark.django_db
MADE_UP = "/made-up/"


@contextmanager
def main_address() -> Iterator[None]:
    elsewhere = Operator(is_here=False, host="127.0.0.1", port=8001, url="http://127.0.0.1:8001")
    with override_settings(ROOT_URLCONF="portal.public_urls", OPERATOR=elsewhere):
        yield


def operators() -> dict[str, set[str]]:
    """What is for admins only, by the approved table, and the numbers of the whole site."""
    found = {
        route: {method for method, rule in methods.items() if rule.who == ADMIN.who}
        for route, methods in ROUTES.items()
    }
    return {route: methods for route, methods in found.items() if methods} | {"/metrics": {"GET"}}


def test_the_main_address_has_everything_but_what_is_for_operators() -> None:
    everything, theirs = http_routes(), operators()
    left = {route: methods - theirs.get(route, set()) for route, methods in everything.items()}
    with main_address():
        assert http_routes() == {route: methods for route, methods in left.items() if methods}


@pytest.mark.parametrize("who", CAST)
def test_there_an_operators_route_is_like_a_made_up_one(stage: Stage, who: str) -> None:
    different: list[str] = []
    with main_address():
        for route, methods in operators().items():
            if route in http_routes():
                continue  # for readers it is there: the test below
            path = fill(route, stage.real())
            for spelling in (path, path.rstrip("/")):
                for method in {*methods, "GET", "POST", "OPTIONS"}:
                    client = stage.client(who)
                    with undone():
                        theirs = neutral(getattr(client, method.lower())(spelling), {"": spelling})
                        made_up = neutral(getattr(client, method.lower())(MADE_UP), {"": MADE_UP})
                    if theirs[0] != 404 or theirs != made_up:
                        different.append(f"{method} {spelling}: {theirs[0]} {made_up[0]}")
    assert not different


def test_what_everybody_reads_and_operators_change_is_only_read_there(stage: Stage) -> None:
    shared = {route: methods for route, methods in operators().items() if set(ROUTES[route]) - methods}
    assert shared
    client = stage.client("admin")
    with main_address():
        for route, methods in shared.items():
            before = stage.state()
            for method in methods:
                answer = ask(client, method, route, stage.real())
                assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD, OPTIONS"), (method, route)
            assert ask(client, "GET", route, stage.real()).status_code == 200
            assert stage.state() == before
        schema = client.get("/api/v1/schema/", headers={"Accept": "application/json"}).json()
    paths = schema["paths"]
    assert not [path for path in paths if path.startswith(("/api/v1/group-mappings/", "/api/v1/sync/"))]
    assert set(paths["/api/v1/runtimes/"]) == set(paths["/api/v1/namespaces/{name}/members/"]) == {"get"}


def test_no_page_there_leads_to_them(stage: Stage) -> None:
    client = stage.client("admin")
    with main_address():
        for route, methods in ROUTES.items():
            if "GET" not in methods or route not in http_routes():
                continue
            answer = client.get(fill(route, stage.real()))
            if answer.headers.get("Content-Type", "").startswith("text/html"):
                assert b'"/admin/' not in answer.content, route


@pytest.mark.parametrize("scope", ["read", "submit", "admin"])
@pytest.mark.parametrize("binding", [None, "vision"])
def test_no_token_opens_them_where_they_are(stage: Stage, admin: User, scope: str, binding: str | None) -> None:
    _token, text = tokens.issue(admin, name="ci", scope=scope, days=1, namespace=binding)
    passed: list[str] = []
    for route, methods in operators().items():
        if route == "/metrics":
            continue  # asks nobody who they are: whoever reaches the address reads it
        for method in methods:
            with undone():
                before = stage.state()
                answer = ask(Client(), method, route, stage.real(), Authorization=f"Bearer {text}")
                if answer.status_code != 403 and not (answer.status_code == 302 and "/login/" in answer["Location"]):
                    passed.append(f"{method} {route} -> {answer.status_code}")
                assert stage.state() == before
    assert not passed


def test_a_session_beside_the_token_does_not_help_it(stage: Stage, admin: User) -> None:
    """The token says who asks; the cookie of somebody else, or one's own, is not looked at."""
    _token, text = tokens.issue(admin, name="ci", scope="admin", days=1)
    answer = stage.client("admin").get("/api/v1/group-mappings/", headers={"Authorization": f"Bearer {text}"})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "operators_only"
