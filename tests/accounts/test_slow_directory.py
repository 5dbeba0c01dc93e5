"""A directory that answers each call just in time, or byte by byte: a sign-in and a pass have an end of their own (F22)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.db import connection
from django.test import AsyncRequestFactory, Client

from accounts.auth import ARRIVED, SIGN_IN, Refusal, refusal_of
from accounts.deadline import Deadline
from accounts.hashing import NoTurn, Turns
from accounts.models import DirectorySync, LoginAttempt, User
from portal.embedded.slapd import Slapd
from tests.cast import PASSWORD
from tests.directory import SECRET, binds, black_hole, known, slowed
from tests.ports import free_port

pytestmark = pytest.mark.django_db
BOUND = 5.0
AWAY = "does not answer"


@pytest.fixture(autouse=True)
def rested(directory: Slapd) -> Iterator[None]:
    Client().get("/login/")  # the first request of a process imports every page, which is not what is timed
    yield
    wires_end()


def wires_end() -> None:
    """No thread outlives its conversation by more than its deadline."""
    end = time.monotonic() + BOUND
    while left := [one for one in threading.enumerate() if one.name == "wire"]:
        assert time.monotonic() < end, left
        time.sleep(0.05)


def sign_in(username: str, password: str = SECRET, **more: Any) -> tuple[Any, float]:
    began = time.monotonic()
    answer = Client().post("/login/", {"username": username, "password": password}, **more)
    return answer, time.monotonic() - began


def address(port: int, tls: str) -> str:
    return f"{'ldaps' if tls == 'ldaps' else 'ldap'}://127.0.0.1:{port}"


@pytest.mark.parametrize("tls", ["off", "start", "ldaps"])
@pytest.mark.parametrize("delay", [0.5, 1.5, 4.9])
def test_however_slow_each_answer_is_a_sign_in_ends_in_time(
    directory: Slapd, settings: Any, tls: str, delay: float
) -> None:
    assert directory.tls is not None
    with slowed(directory.tls_port if tls == "ldaps" else directory.port, delay=delay) as port:
        settings.DIRECTORY = known(address(port, tls), tls=tls, ca_file=str(directory.tls[2]))
        answer, took = sign_in("alice")
    assert took < BOUND, took
    assert answer.status_code == 503 or (answer.status_code, delay) == (302, 0.5), (answer.status_code, took)
    if answer.status_code == 503:
        assert AWAY in answer.content.decode()
        assert not User.objects.exists()


@pytest.mark.parametrize("patience", [2, 30])
@pytest.mark.parametrize("tls", ["off", "start", "ldaps"])
def test_a_directory_that_drips_does_not_hold_anybody(directory: Slapd, settings: Any, tls: str, patience: int) -> None:
    assert directory.tls is not None
    with slowed(directory.tls_port if tls == "ldaps" else directory.port, drip=0.2) as port:
        settings.DIRECTORY = known(address(port, tls), tls=tls, ca_file=str(directory.tls[2]), patience=patience)
        answer, took = sign_in("alice")
    assert took < BOUND, took
    assert answer.status_code == 503 and AWAY in answer.content.decode()


def test_who_answers_slowly_but_in_time_is_no_outage(directory: Slapd, settings: Any) -> None:
    with slowed(directory.port, delay=0.2) as port:
        settings.DIRECTORY = known(f"ldap://127.0.0.1:{port}")
        assert sign_in("alice")[0].status_code == 302
        assert sign_in("alice", "not it")[0].status_code == 401


def test_of_three_addresses_two_silent_ones_cost_their_share_and_once(directory: Slapd, settings: Any) -> None:
    with black_hole() as first, black_hole() as second:
        urls = " ".join(f"ldap://127.0.0.1:{port}" for port in (first, second, directory.port))
        assert directory.tls is not None
        settings.DIRECTORY = known(urls, tls="start", ca_file=str(directory.tls[2]), patience=30)
        answer, took = sign_in("alice")
        assert answer.status_code == 302 and took < BOUND
        answer, again = sign_in("alice")
        assert answer.status_code == 302 and again < took / 2


def test_the_portals_own_admin_signs_in_beside_a_directory_that_drips(
    directory: Slapd, settings: Any, admin: User
) -> None:
    with slowed(directory.port, drip=0.2) as port:
        settings.DIRECTORY = known(f"ldap://127.0.0.1:{port}", patience=30)
        answer, took = sign_in("admin", PASSWORD)
    assert answer.status_code == 302 and took < BOUND


def test_a_password_the_directory_may_have_counted_is_counted_here(directory: Slapd, settings: Any) -> None:
    """Its answer to the person's bind is late: whether it was wrong nobody knows, and a lock there would be for everything."""
    import ldap

    from accounts.ldap.connection import Conversation, silence

    bind = Conversation.simple_bind_s

    def late(self: Any, who: str = "", *told: Any) -> Any:
        if who.startswith("uid=alice"):
            self.simple_bind(who, *told)
            raise ldap.TIMEOUT({"desc": "Timed out"})
        return bind(self, who, *told)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Conversation, "simple_bind_s", late)
        answers = []
        for _try in range(4):
            silence.ends()
            answers.append(sign_in("alice")[0].status_code)
    assert answers == [503, 503, 503, 429]
    assert LoginAttempt.objects.filter(name_digest__startswith="bind-").count() == 3


def test_a_pass_over_a_slow_directory_ends_and_is_a_problem_that_is_shown(
    directory: Slapd, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accounts.ldap import reading
    from accounts.tasks import sync_directory

    monkeypatch.setattr(reading, "FOR_EVERYBODY", 2.0)
    with slowed(directory.port, delay=0.7) as port:
        settings.DIRECTORY = known(f"ldap://127.0.0.1:{port}")
        began = time.monotonic()
        sync_directory()
        assert time.monotonic() - began < BOUND
    (row,) = DirectorySync.objects.all()
    assert not row.is_applied
    assert row.problems == [["away", {"words": "It did not answer within 2 s"}]]


@pytest.mark.django_db(transaction=True)
def test_a_directory_that_hangs_holds_few_threads_and_one_request_asks_again(directory: Slapd, settings: Any) -> None:
    from accounts.ldap.connection import MOST_AT_ONCE, silence

    done: list[tuple[int, float]] = []

    def one(number: int) -> None:
        try:
            answer, took = sign_in(f"person{number:03}", REMOTE_ADDR=f"10.0.0.{number}")
            done.append((answer.status_code, took))
        finally:
            connection.close()

    def all_at_once(first: int, count: int) -> int:
        threads = [threading.Thread(target=one, args=(first + number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            most = max(most, sum(one.name == "wire" for one in threading.enumerate()))
            time.sleep(0.01)
        return most

    with black_hole() as port:
        settings.DIRECTORY = known(f"ldap://127.0.0.1:{port}")
        assert 1 < all_at_once(0, 40) <= MOST_AT_ONCE
        wires_end()
        silence._until = time.monotonic() - 0.001  # as after the rest
        assert all_at_once(40, 10) == 1
    assert {status for status, _took in done} == {503}
    assert max(took for _status, took in done) < BOUND


class TestTurns:
    def test_who_cannot_hash_in_time_is_told_so_and_a_turn_goes_on(self) -> None:
        turns = Turns(1)
        with turns.one(Deadline(5)), pytest.raises(NoTurn), turns.one(Deadline(0.3)):
            pytest.fail("there was one turn only")
        with turns.one(Deadline(5)):
            pass
        with pytest.raises(NoTurn), turns.one(Deadline(0)):
            pytest.fail("its time was over")

    def test_who_gets_a_turn_too_late_gives_it_back(self) -> None:
        """The hash before took longer than anybody knew when this one began to wait."""
        turns = Turns(1)
        let_in: list[bool] = []

        def wait() -> None:
            with suppress(NoTurn), turns.one(Deadline(2)):
                let_in.append(True)

        with turns.one(Deadline(9)):
            waiting = threading.Thread(target=wait)
            waiting.start()
            while not turns._waiting:
                time.sleep(0.01)
            time.sleep(1.2)
        waiting.join()
        assert not let_in
        with turns.one(Deadline(9)):
            pass

    def test_one_slow_hash_does_not_shut_the_door_for_long(self) -> None:
        turns = Turns(1)
        turns._took = 60.0
        with pytest.raises(NoTurn), turns.one(Deadline(4)):
            pytest.fail("nobody knows better yet")
        turns._measured -= 15
        with turns.one(Deadline(4)):
            pass
        assert turns.takes < 4


def test_a_request_waits_from_when_it_came(directory: Slapd, admin: User) -> None:
    """What it waited for a thread is of its time, too: whoever is late by then is asked to come again, and asks nobody."""
    before = binds(directory)

    def come(*, ago: float) -> tuple[Any, Refusal | None]:
        request = AsyncRequestFactory().post("/login/")
        request.scope = {**request.scope, ARRIVED: time.monotonic() - ago}
        return authenticate(request, username="alice", password=SECRET), refusal_of(request)

    for late in (SIGN_IN, SIGN_IN - 0.6):
        assert come(ago=late) == (None, Refusal("busy"))
    assert binds(directory) == before + 1  # the one that counts them
    person, _refusal = come(ago=0)
    assert person.username == "alice"


def test_a_late_request_does_not_tell_that_the_directory_is_silent(directory: Slapd, settings: Any) -> None:
    """It had but a moment left for an answer: on a busy machine one such would shut everybody else out."""
    from accounts.ldap.connection import FAIR, DirectoryAway, asking, silence

    for seconds, is_silent in ((FAIR / 2, False), (FAIR, True)):
        with pytest.raises(DirectoryAway), asking(Deadline(seconds, since=time.monotonic() - seconds)):
            raise TimeoutError
        assert bool(silence._until) is is_silent


def test_more_passwords_than_can_be_looked_at_are_turned_away_alike(
    settings: Any, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accounts import auth

    settings.DIRECTORY = None
    settings.AUTHENTICATION_BACKENDS = ["accounts.auth.LocalBackend"]
    turns = Turns(1)
    monkeypatch.setattr(auth, "turns", turns)
    monkeypatch.setattr(auth, "SIGN_IN", 0.4)
    with turns.one(Deadline(5)):
        answers = [sign_in(name, PASSWORD)[0] for name in ("admin", "nobody-here")]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert "Too many people sign in" in answers[0].content.decode()
    told = {answer.content.decode().split('role="alert"')[1].split("</p>")[0] for answer in answers}
    assert len(told) == 1
    assert LoginAttempt.objects.count() == 2  # or a flood that keeps everybody busy would never come to its end
    monkeypatch.setattr(auth, "SIGN_IN", SIGN_IN)  # for the turn that was held looked like a slow hash
    assert sign_in("admin", PASSWORD)[0].status_code == 302


def test_nobody_waits_for_a_port_that_is_closed(directory: Slapd, settings: Any) -> None:
    settings.DIRECTORY = known(f"ldap://127.0.0.1:{free_port()}")
    answer, took = sign_in("alice")
    assert answer.status_code == 503 and took < 1
