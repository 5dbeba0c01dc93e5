"""`manage.py up` with an address of their own for operators: what each of the two answers, to whom."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.flows.access_table import ADMIN, ROUTES
from tests.portal.running import Portal, Visitor, until
from tests.ports import free_port

pytestmark = pytest.mark.chaos
BOB = "2"  # the demo people are made in the order of their names, and no story here needs him
REAL = {"name": "vision", "mapping_id": "1", "user_id": BOB, "slug": "shell", "username": "bob", "volume": "datasets"}
OPERATORS = sorted(
    (
        (route, method)
        for route, methods in (*ROUTES.items(), ("/metrics", {"GET": ADMIN}))
        for method, rule in methods.items()
        if rule.who == ADMIN.who
    ),
    key=lambda one: (one[1] == "DELETE", one),  # what is asked for is removed last
)
READ_BY_ALL = {route for route, _method in OPERATORS if any(rule.who != ADMIN.who for rule in ROUTES[route].values())}
READ_BY_ALL -= {"/metrics"}


@pytest.fixture(scope="module")
def apart() -> int:
    return free_port()


@pytest.fixture(scope="module")
def portal(apart: int) -> Iterator[Portal]:
    folder = Path(tempfile.mkdtemp(prefix="trainhall operators "))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    portal = Portal(folder / "data", settings={"TRAINHALL_OPERATOR_BIND": f"127.0.0.1:{apart}"})
    portal.start()
    yield portal
    portal.interrupt()
    portal.kill_all()
    shutil.rmtree(folder)


def path_of(route: str) -> str:
    return re.sub(r"<(\w+)>", lambda found: REAL.get(found[1], "1"), route)


@pytest.mark.parametrize("who", ["", "dave", "alice", "carol", "admin"])
def test_the_main_address_has_no_operators_route_for_anybody(portal: Portal, who: str) -> None:
    visitor = portal.visitor(who)
    forged = {"Host": "127.0.0.1", "X-Forwarded-Port": "8001", "X-Forwarded-Host": "ops", "Forwarded": "host=ops"}
    wrong = []
    for route, method in OPERATORS:
        if route in READ_BY_ALL:
            continue
        for headers in ({}, forged):
            made_up = visitor.ask(method, "/made-up/", document={} if method == "PATCH" else None, **headers)
            status, body = visitor.ask(method, path_of(route), document={} if method == "PATCH" else None, **headers)
            if (status, plain(body)) != (404, plain(made_up[1])):
                wrong.append(f"{method} {route} {headers and 'forged'}: {status}")
    assert not wrong


def plain(body: str) -> str:
    body = re.sub(r'"[A-Za-z0-9]{64}"|&quot;\w{64}&quot;', "<csrf>", body)
    return re.sub(r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(\.\d+)?|nonce=\S+", "<varies>", body)


def test_their_own_address_has_all_of_them_for_an_admin_and_for_no_token(portal: Portal, apart: int) -> None:
    admin, alice = (portal.visitor(name, port=apart) for name in ("admin", "alice"))
    text = portal.manage("create_token", "admin", "--scope", "admin").stdout.strip()
    stranger = Visitor(f"http://127.0.0.1:{apart}")
    rule = {"group": "speakers", "namespace": "vision", "role": "viewer"}
    assert json.loads(admin.ask("POST", "/api/v1/group-mappings/", document=rule)[1])["id"] == int(REAL["mapping_id"])
    assert (
        admin.ask("PUT", path_of("/api/v1/namespaces/<name>/volumes/<volume>/"), document={"path": "/data"})[0] == 204
    )
    wrong = []
    for route, method in OPERATORS:
        body = None if method == "GET" or not route.startswith("/api/") else {}
        answers = [
            admin.ask(method, path_of(route), document=body)[0],
            alice.ask(method, path_of(route), document=body)[0],
            stranger.ask(method, path_of(route), document=body, Authorization=f"Bearer {text}")[0],
        ]
        # refused for what it asks, or told that no directory is connected: past the door all the same
        if answers[0] in (401, 403, 404, 405, 500):
            wrong.append(f"admin {method} {route}: {answers[0]}")
        if route != "/metrics" and answers[1] != 403:
            wrong.append(f"alice {method} {route}: {answers[1]}")
        if route != "/metrics" and answers[2] != 403 and not (answers[2] == 302 and not route.startswith("/api/")):
            wrong.append(f"token {method} {route}: {answers[2]}")
    assert not wrong
    assert "trainhall_jobs" in stranger.ask("GET", "/metrics")[1]


def test_a_form_of_theirs_is_taken_from_their_origin_only(portal: Portal, apart: int) -> None:
    admin = portal.visitor("admin", port=apart)
    rule = {"group": "robotics", "namespace": "vision", "role": "viewer"}
    assert admin.ask("POST", "/admin/access/", form=rule, Origin=f"http://127.0.0.1:{portal.port}")[0] == 403
    assert admin.ask("POST", "/admin/access/", form=rule, Origin="https://evil.example")[0] == 403
    assert admin.ask("POST", "/admin/access/", form=rule)[0] == 302
    rules = json.loads(admin.ask("GET", "/api/v1/group-mappings/")[1])["results"]
    assert "robotics" in [one["group"] for one in rules]


def test_one_sign_in_serves_both_since_cookies_know_no_port(portal: Portal, apart: int) -> None:
    admin = portal.visitor("admin")
    admin.origin = f"http://127.0.0.1:{apart}"
    assert admin.ask("GET", "/admin/users/")[0] == 200


def test_a_socket_opens_for_the_pages_of_the_address_it_is_at(portal: Portal, apart: int) -> None:
    session = portal.visitor("admin").cookie("trainhall_session")

    def opens(port: int, origin: int) -> bool:
        try:
            with connect(
                f"ws://127.0.0.1:{port}/ws/",
                origin=f"http://127.0.0.1:{origin}",  # type: ignore[arg-type]
                additional_headers={"Cookie": f"trainhall_session={session}"},
                proxy=None,
            ) as socket:
                socket.send(json.dumps({"subscribe": {"cluster": None}}))
                return bool(json.loads(socket.recv(timeout=10))["topic"] == "cluster")
        except InvalidStatus as refused:
            return refused.response.status_code != 403

    assert [opens(port, port) for port in (portal.port, apart)] == [True, True]
    assert [opens(portal.port, apart), opens(apart, portal.port)] == [False, False]


def test_the_admins_home_says_where_and_nobody_elses_does(portal: Portal, apart: int) -> None:
    address = f"http://127.0.0.1:{apart}"
    assert address in portal.visitor("admin").ask("GET", "/")[1]
    assert str(apart) not in portal.visitor("alice").ask("GET", "/")[1]
    assert address in portal.output
    assert 'href="/admin/access/"' in portal.visitor("admin", port=apart).ask("GET", "/")[1]


def test_it_comes_back_and_the_main_address_never_stands_in_for_it(portal: Portal, apart: int) -> None:
    admin = portal.visitor("admin")
    os.kill(max(pid for pid, line in portal.processes().items() if "uvicorn" in line), signal.SIGKILL)
    assert admin.ask("GET", "/admin/users/")[0] == 404
    until(lambda: "web-operator ended (exit -9)" in portal.output, seconds=10, what="the supervisor says so")
    assert portal.visitor("admin", port=apart).ask("GET", "/admin/users/")[0] == 200
