"""OIDC_ISSUER and its companions: absent is off, and a wrong value stops the start with a sentence that names it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.settings.openid import read_openid
from tests.openid import needs_openid
from tests.portal.running import CHECKOUT

GOOD = {
    "OIDC_ISSUER": "https://login.example.org/realms/lab/",
    "OIDC_CLIENT_ID": "trainhall",
    "OIDC_CLIENT_SECRET": "canary",
}


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    needs_openid()
    for name in [name for name in os.environ if name.startswith("OIDC_")]:
        monkeypatch.delenv(name)
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_absent_is_off(env: pytest.MonkeyPatch) -> None:
    env.delenv("OIDC_ISSUER")
    assert read_openid() is None


def test_the_issuer_is_kept_as_the_provider_writes_it(env: pytest.MonkeyPatch) -> None:
    found = read_openid()
    assert found is not None and found.issuer == GOOD["OIDC_ISSUER"]
    assert (found.username_claim, found.groups_claim, found.button) == ("preferred_username", "", "")
    assert "canary" not in repr(found)


@pytest.mark.parametrize(("name", "field"), [("OIDC_CLIENT_SECRET", "client_secret"), ("OIDC_CLIENT_ID", "client_id")])
def test_what_the_provider_gave_may_lie_in_a_file(
    env: pytest.MonkeyPatch, tmp_path: Path, name: str, field: str
) -> None:
    (tmp_path / "given").write_text("from the file\n")
    env.delenv(name)
    env.setenv(f"{name}_FILE", str(tmp_path / "given"))
    assert getattr(read_openid(), field) == "from the file"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OIDC_ISSUER", "http://login.example.org"),
        ("OIDC_ISSUER", "login.example.org"),
        ("OIDC_ISSUER", "https://"),
        ("OIDC_ISSUER", "https://login.example.org?x=1"),
        ("OIDC_ISSUER", "https://login.example.org#x"),
        ("OIDC_ISSUER", "https://user:pw@login.example.org"),
        ("OIDC_ISSUER", "https://login.example.org:port"),
        ("OIDC_ISSUER", "https://[::1"),
        ("OIDC_CLIENT_ID", ""),
        ("OIDC_CLIENT_SECRET", ""),
        ("OIDC_CLIENT_SECRET_FILE", "/no/such/file"),
        ("OIDC_CA_FILE", "/no/such/file"),
        ("OIDC_TIMEOUT", "soon"),
        ("OIDC_TIMEOUT", "0"),
    ],
)
def test_a_wrong_value_is_named(env: pytest.MonkeyPatch, name: str, value: str) -> None:
    env.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=name):
        read_openid()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_plain_http_is_for_this_machine(env: pytest.MonkeyPatch, host: str) -> None:
    env.setenv("OIDC_ISSUER", f"http://{host}:9400")
    assert read_openid() is not None


def test_without_the_extra_a_sentence_says_how_to_get_it(env: pytest.MonkeyPatch) -> None:
    find: Any = importlib.util.find_spec
    env.setattr(importlib.util, "find_spec", lambda name: None if name == "mozilla_django_oidc" else find(name))
    with pytest.raises(ImproperlyConfigured, match=r"pip install -r requirements/oidc\.txt"):
        read_openid()


def test_the_portal_starts_without_the_extra_and_loads_nothing_of_it() -> None:
    """As where it was never installed: nothing but accounts/oidc asks for it, and only once somebody comes."""
    program = (
        "import sys\n"
        "for name in ('mozilla_django_oidc', 'jwt'):\n"
        "    sys.modules[name] = None\n"
        "import django\n"
        "django.setup()\n"
        "from django.test import Client\n"
        "assert Client().get('/login/').status_code == 200\n"
        "assert Client().post('/login/oidc/').status_code == 404\n"
        "assert not any(name.startswith('accounts.oidc.') for name in sys.modules)\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OIDC_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=CHECKOUT,
        env={**clean, "DJANGO_SETTINGS_MODULE": "portal.settings.test"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
