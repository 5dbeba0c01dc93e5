"""Where operators are answered: read from the environment, and loud when wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, override_settings

from accounts.models import User
from portal.settings.operator import Operator, read_operator
from tests.portal.running import CHECKOUT

PUBLIC = "https://hall.example.org"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("BIND", "URL"):
        monkeypatch.delenv(f"TRAINHALL_OPERATOR_{name}", raising=False)
    monkeypatch.delenv("TRAINHALL_SURFACE", raising=False)
    return monkeypatch


def test_unless_said_otherwise_they_are_beside_everything_else(told: pytest.MonkeyPatch) -> None:
    assert read_operator(public=PUBLIC) == Operator(is_here=True)


def test_off_is_nowhere(told: pytest.MonkeyPatch) -> None:
    told.setenv("TRAINHALL_OPERATOR_BIND", "off")
    assert read_operator(public=PUBLIC) == Operator(is_here=False)


@pytest.mark.parametrize(
    ("bind", "host", "url"),
    [
        ("127.0.0.1:8001", "127.0.0.1", "http://127.0.0.1:8001"),
        ("[::1]:8001", "::1", "http://[::1]:8001"),
        ("ops.example.org:8001", "ops.example.org", "http://ops.example.org:8001"),
    ],
)
def test_an_address_of_their_own_is_answered_by_the_process_that_is_told_so(
    told: pytest.MonkeyPatch, bind: str, host: str, url: str
) -> None:
    told.setenv("TRAINHALL_OPERATOR_BIND", bind)
    main = read_operator(public=PUBLIC)
    assert main == Operator(is_here=False, host=host, port=8001, url=url)
    assert main.authority == bind
    told.setenv("TRAINHALL_SURFACE", "operator")
    assert read_operator(public=PUBLIC) == replace(main, is_here=True, is_apart=True)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"TRAINHALL_OPERATOR_BIND": "8001"}, "TRAINHALL_OPERATOR_BIND"),
        ({"TRAINHALL_OPERATOR_BIND": ":8001"}, "TRAINHALL_OPERATOR_BIND"),
        ({"TRAINHALL_OPERATOR_BIND": "on"}, "TRAINHALL_OPERATOR_BIND"),
        ({"TRAINHALL_OPERATOR_BIND": "ops:0"}, "TRAINHALL_OPERATOR_BIND"),
        ({"TRAINHALL_OPERATOR_BIND": "ops:70000"}, "TRAINHALL_OPERATOR_BIND"),
        ({"TRAINHALL_OPERATOR_BIND": "0.0.0.0:8001"}, "TRAINHALL_OPERATOR_URL must say"),
        ({"TRAINHALL_OPERATOR_BIND": "ops:1", "TRAINHALL_OPERATOR_URL": "ops"}, "TRAINHALL_OPERATOR_URL"),
        ({"TRAINHALL_OPERATOR_BIND": "ops:1", "TRAINHALL_OPERATOR_URL": PUBLIC}, "are one address"),
        ({"TRAINHALL_OPERATOR_BIND": "hall.example.org:8001"}, "must begin with https://"),
        ({"TRAINHALL_SURFACE": "operator"}, "TRAINHALL_SURFACE=operator needs"),
        ({"TRAINHALL_SURFACE": "operator", "TRAINHALL_OPERATOR_BIND": "off"}, "TRAINHALL_SURFACE=operator needs"),
        ({"TRAINHALL_SURFACE": "both"}, "TRAINHALL_SURFACE"),
    ],
)
def test_what_cannot_be_is_named(told: pytest.MonkeyPatch, values: dict[str, str], named: str) -> None:
    for name, value in values.items():
        told.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=named):
        read_operator(public=PUBLIC)


def test_a_wrong_one_stops_the_start() -> None:
    wrong = {"DJANGO_SETTINGS_MODULE": "portal.settings.test", "TRAINHALL_OPERATOR_BIND": "everywhere"}
    answer = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=CHECKOUT,
        env={**os.environ, **wrong},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode != 0
    assert "TRAINHALL_OPERATOR_BIND must be off, or host:port" in answer.stderr


def test_manage_up_keeps_to_loopback() -> None:
    answer = subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=CHECKOUT,
        env={**os.environ, "TRAINHALL_OPERATOR_BIND": "192.0.2.1:8001", "PORT": "18437"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith("TRAINHALL_OPERATOR_BIND=192.0.2.1:8001: manage.py up listens on loopback only")


@pytest.mark.django_db
class TestHome:
    ELSEWHERE = Operator(is_here=False, host="127.0.0.1", port=8001, url="http://127.0.0.1:8001")

    def page(self, person: User, operator: Operator) -> str:
        client = Client()
        client.force_login(person)
        root = "portal.urls" if operator.is_here else "portal.public_urls"
        with override_settings(OPERATOR=operator, ROOT_URLCONF=root):
            return client.get("/").content.decode()

    def test_an_admin_is_told_where_to_go(self, admin: User) -> None:
        page = self.page(admin, self.ELSEWHERE)
        assert 'href="http://127.0.0.1:8001/"' in page
        assert "/admin/" not in page
        page = self.page(admin, Operator(is_here=False))
        assert "switched off" in page and "/admin/" not in page
        page = self.page(admin, settings.OPERATOR)
        assert "/admin/access/" in page and "address of their own" not in page

    def test_nobody_else_is(self, alice: User) -> None:
        for operator in (self.ELSEWHERE, Operator(is_here=False)):
            page = self.page(alice, operator)
            assert "8001" not in page and "switched off" not in page and "address of their own" not in page
