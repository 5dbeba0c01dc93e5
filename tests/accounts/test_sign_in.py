"""Signing in and out on the page: a new session key, a throttle, and no word about which names exist."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import throttle
from accounts.models import AuditEvent, LoginAttempt, User
from tests.accounts.test_own_paths import HOSTILE
from tests.cast import PASSWORD

LOGIN = "/login/"
pytestmark = pytest.mark.django_db


def sign_in(client: Client, username: str = "alice", password: str = PASSWORD, **more: Any) -> Any:
    address = more.pop("address", "127.0.0.1")
    return client.post(LOGIN, {"username": username, "password": password, **more}, REMOTE_ADDR=address)


def is_signed_in(client: Client) -> bool:
    return client.get("/me/tokens/").status_code == 200


def test_alice_signs_in_and_out(vision: Any, client: Client) -> None:
    assert client.get(LOGIN).status_code == 200
    answer = sign_in(client)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert is_signed_in(client)
    assert client.get("/logout/").status_code == 405  # an image tag cannot sign anybody out
    assert client.post("/logout/").status_code == 302
    assert not is_signed_in(client)
    actions = list(
        AuditEvent.objects.filter(action__startswith="session.").values_list("action", "actor").order_by("pk")
    )
    assert actions == [("session.login", "alice"), ("session.logout", "alice")]


def test_a_page_keeps_its_address_through_the_sign_in(vision: Any, client: Client) -> None:
    answer = client.get("/me/tokens/")
    assert answer["Location"] == "/login/?next=/me/tokens/"
    assert sign_in(client, next="/me/tokens/")["Location"] == "/me/tokens/"


@pytest.mark.parametrize("wanted", [text for text in HOSTILE if text])
def test_next_never_leaves_the_site(vision: Any, client: Client, wanted: str) -> None:
    assert sign_in(client, next=wanted)["Location"] == "/"
    assert client.get(LOGIN, {"next": wanted})["Location"] == "/"  # already signed in


def test_who_has_only_a_namespace_of_their_own_is_shown_whom_to_ask(dave: User, client: Client) -> None:
    assert sign_in(client, "dave")["Location"] == "/me/namespaces/"


def test_the_session_key_changes(alice: User, client: Client) -> None:
    session = client.session
    session["planted"] = True
    session.save()
    before = client.cookies["trainhall_session"].value
    sign_in(client)
    assert client.cookies["trainhall_session"].value != before


def test_twelve_hours_or_until_the_browser_closes(alice: User) -> None:
    kept, closed = Client(), Client()
    sign_in(kept, keep="on")
    sign_in(closed)
    assert kept.cookies["trainhall_session"]["max-age"] == 12 * 3600
    assert closed.cookies["trainhall_session"]["max-age"] == ""
    for cookie in (kept.cookies["trainhall_session"], closed.cookies["trainhall_session"]):
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"


def test_without_its_csrf_token_the_form_does_nothing(alice: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    assert sign_in(browser).status_code == 403
    assert not is_signed_in(browser)


@pytest.mark.parametrize("password", ["", "  ", "\t"])
def test_an_empty_password_is_refused_before_anything(alice: User, client: Client, password: str) -> None:
    assert sign_in(client, password=password).status_code == 400
    assert not LoginAttempt.objects.exists()


def test_the_words_do_not_say_which_names_exist(alice: User, bob: User) -> None:
    User.objects.filter(username="bob").update(is_active=False)
    answers = [sign_in(Client(), name, "wrong") for name in ("alice", "nobody", "bob", "Alice2")]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.context["error"] for answer in answers}) == 1
    assert "4 tries left" in answers[0].context["error"]


def test_a_mistyped_name_is_not_written_down(alice: User, client: Client) -> None:
    sign_in(client, "my-secret-passphrase", "x")
    sign_in(client, "alice", "x")
    targets = AuditEvent.objects.filter(action="session.failed").values_list("target", flat=True)
    assert set(targets) == {"", "alice"}
    assert not LoginAttempt.objects.filter(name_digest__contains="secret").exists()


class TestThrottle:
    def test_the_sixth_failure_of_a_name_waits_also_with_the_right_password(self, alice: User) -> None:
        left = [sign_in(Client(), password="wrong", address=f"10.0.0.{n}").context["error"] for n in range(5)]
        assert "4 tries left" in left[0]
        assert "No tries left" in left[4]
        answer = sign_in(Client(), address="10.0.0.99")
        assert answer.status_code == 429
        assert 1 <= int(answer["Retry-After"]) <= 60
        assert answer["Retry-After"] in answer.context["error"]

    def test_another_spelling_is_no_way_around_it(self, alice: User) -> None:
        for name in ("alice", "Alice", "ALICE", "ａlice", "alicE"):
            sign_in(Client(), name, "wrong")
        assert sign_in(Client()).status_code == 429

    def test_other_names_go_on(self, alice: User, bob: User) -> None:
        for _try in range(6):
            sign_in(Client(), "alice", "wrong", address="10.0.0.1")
        assert sign_in(Client(), "bob", address="10.0.0.1").status_code == 302

    def test_the_21st_failure_from_an_address_waits(self, alice: User) -> None:
        for number in range(20):
            assert sign_in(Client(), f"name{number}", "wrong", address="10.0.0.1").status_code == 401
        assert sign_in(Client(), address="10.0.0.1").status_code == 429
        assert sign_in(Client(), address="10.0.0.2").status_code == 302

    def test_a_forwarded_address_is_not_believed(self, alice: User) -> None:
        for number in range(20):
            Client().post(
                LOGIN,
                {"username": f"name{number}", "password": "wrong"},
                headers={"X-Forwarded-For": f"10.9.8.{number}", "X-Real-IP": f"10.9.8.{number}"},
            )
        assert sign_in(Client()).status_code == 429

    def test_after_the_window_the_right_password_works(self, alice: User) -> None:
        for _try in range(6):
            sign_in(Client(), password="wrong")
        LoginAttempt.objects.update(at=timezone.now() - timedelta(seconds=61))
        assert sign_in(Client()).status_code == 302

    def test_a_success_forgets_the_failures(self, alice: User) -> None:
        for _try in range(4):
            sign_in(Client(), password="wrong")
        assert sign_in(Client()).status_code == 302
        assert "4 tries left" in sign_in(Client(), password="wrong").context["error"]

    def test_an_address_that_tries_names_is_not_forgiven_when_their_people_come(self, alice: User, bob: User) -> None:
        for number in range(18):
            sign_in(Client(), f"name{number}", "wrong", address="10.0.0.1")
        for name in ("alice", "bob"):
            sign_in(Client(), name, "wrong", address="10.0.0.1")
            assert sign_in(Client(), name, address="10.0.0.2").status_code == 302
        assert sign_in(Client(), "another", "wrong", address="10.0.0.1").status_code == 429
        assert "4 tries left" in sign_in(Client(), "alice", "wrong", address="10.0.0.3").context["error"]

    def test_a_flood_leaves_few_rows_that_say_so(self, alice: User) -> None:
        for number in range(30):
            sign_in(Client(), "alice", "wrong", address=f"10.0.0.{number}")
        for number in range(30):
            sign_in(Client(), f"name{number}", "wrong", address="10.0.1.1")
        rows = AuditEvent.objects.order_by("id").filter(action="session.throttled")
        assert [*rows.values_list("target", "address", "after")] == [
            ("alice", "10.0.0.4", {"no_tries_left_for": ["name"]}),
            ("", "10.0.1.1", {"no_tries_left_for": ["address"]}),
        ]
        assert AuditEvent.objects.filter(action="session.failed").count() == 5 + 20

    def test_rows_are_pruned(self, alice: User) -> None:
        sign_in(Client(), "old", "wrong")
        LoginAttempt.objects.update(at=timezone.now() - 2 * throttle.BIND_WINDOW - timedelta(minutes=1))
        sign_in(Client(), "new", "wrong")
        assert LoginAttempt.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_many_at_once_cannot_all_pass_the_count_together() -> None:
    """F29: 40 tries of one name at the same moment, from 40 addresses: 5 go on, 35 wait."""

    def attempt(number: int) -> bool:
        try:
            return isinstance(throttle.begin("alice", f"10.0.1.{number}"), throttle.Try)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        passed = list(pool.map(attempt, range(40)))
    assert sum(passed) == 5


def test_an_admins_words_stand_on_the_page_as_text(client: Client, settings: Any, alice: User) -> None:
    settings.TRAINHALL_LOGIN_HELP = "Ask <b>ml-infra@example.com</b>"
    settings.TRAINHALL_MAINTENANCE = "Saturday 06:00-08:00 UTC <script>"
    page = client.get(LOGIN).content.decode()
    assert 'href="mailto:ml-infra@example.com"' in page and "&lt;b&gt;" in page
    assert "Saturday 06:00-08:00 UTC &lt;script&gt;" in page
    client.force_login(alice)
    assert "Saturday 06:00-08:00 UTC" in client.get("/me/tokens/").content.decode()
