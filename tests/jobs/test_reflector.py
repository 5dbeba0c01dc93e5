"""Lists beside a watch: news wait for none of them, and neither's errors are lost (RELIABILITY R14, R15, R17, R19)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobs.cluster.kubernetes import reflector as module
from jobs.cluster.kubernetes.reflector import Gate, Reflector
from jobs.cluster.port import Manifest
from tests.jobs.listing_server import PATH, ListingServer, listing_server

UIDS = ["a", "b", "c", "d", "e"]


@pytest.fixture
def server() -> Iterator[ListingServer]:
    with listing_server(*UIDS) as server:
        yield server


class Follower(Reflector):
    """With what it told, in order."""

    def __init__(self, server: ListingServer, gate: Gate) -> None:
        self.told: list[tuple[Manifest | None, Manifest | None]] = []
        super().__init__(server.api, PATH, gate=gate, changed=lambda old, new: self.told.append((old, new)), page=2)

    @property
    def versions(self) -> dict[str, str]:
        return {uid: one["metadata"]["resourceVersion"] for uid, one in list(self.objects.items())}


@pytest.fixture
def follower(server: ListingServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    """It has listed, watches for a second at a time, and lists every few seconds."""
    monkeypatch.setattr(module, "RELIST", 3.0)
    monkeypatch.setattr(module, "CATCH_UP", 0.5)
    monkeypatch.setattr(module, "WATCH", 1)
    follower = Follower(server, Gate(spacing=0.1))
    follower.start()
    within(lambda: server.watches and follower.is_complete)
    yield follower
    follower.stop()


def within(question: Callable[[], Any], seconds: float = 20) -> None:
    began = time.monotonic()
    while not question():
        assert time.monotonic() - began < seconds
        time.sleep(0.01)


def stand_still(server: ListingServer) -> None:
    """Until a list beside the watch has its first page, and gets no other."""
    server.pages.clear()
    within(lambda: server.waiting)


def test_news_do_not_wait_for_a_list(server: ListingServer, follower: Follower) -> None:
    stand_still(server)
    lists = follower.lists
    server.put("e")
    server.delete("d")
    server.put("new")
    within(lambda: follower.versions == server.versions)
    assert follower.lists == lists, "the list still stands still"
    server.pages.set()
    within(lambda: follower.lists > lists)
    assert follower.versions == server.versions, "and it took nothing of that back"


def test_what_the_watch_was_never_told_comes_with_the_next_list(server: ListingServer, follower: Follower) -> None:
    server.put("b", lost=True)
    server.delete("c", lost=True)
    server.put("new", lost=True)
    watches = server.watches
    within(lambda: follower.versions == server.versions)
    assert server.watches - watches < 5, "and the watch went on"


def test_what_a_list_found_first_is_told_once(server: ListingServer, follower: Follower) -> None:
    """The watch is behind: what it says later of the same is no news, and nothing goes back."""
    server.news.clear()
    for uid in ("a", "a", "b"):
        server.put(uid)
    listed = len(server.lists)
    within(lambda: follower.versions == server.versions)
    assert len(server.lists) > listed
    server.news.set()
    server.put("e")
    within(lambda: follower.versions == server.versions)
    versions = [int(new["metadata"]["resourceVersion"]) for _old, new in follower.told if new]
    assert versions == sorted(set(versions))


def test_who_is_gone_is_told_in_its_last_form_though_a_list_was_first(
    server: ListingServer, follower: Follower
) -> None:
    """R19: a list has no form of what is gone, so the watch has a moment to tell it."""
    server.news.clear()
    listed = len(server.lists)
    server.delete("c", phase="Succeeded")
    within(lambda: len(server.lists) > listed)
    time.sleep(0.2)  # its pages were read, and the moment is not over
    server.news.set()
    within(lambda: "c" not in follower.versions)
    last, new = follower.told[-1]
    assert new is None and last is not None and last["status"] == {"phase": "Succeeded"}


def test_the_watch_dies_while_a_list_stands_still(server: ListingServer, follower: Follower) -> None:
    stand_still(server)
    lists = follower.lists
    server.cut()
    within(lambda: server.waiting == 2)  # the list of who lost its watch
    server.put("a", lost=True)
    server.delete("e", lost=True)
    server.pages.set()
    within(lambda: follower.lists > lists and not follower.error)
    within(lambda: follower.versions == server.versions)


@pytest.mark.parametrize("code", ["410", "500"])
def test_a_list_beside_a_watch_that_fails_is_read_again(server: ListingServer, follower: Follower, code: str) -> None:
    server.put("b", lost=True)
    server.fails_page = code
    lists, listed = follower.lists, len(server.lists)
    within(lambda: len(server.lists) > listed + 1)
    within(lambda: follower.error if code == "500" else True)
    assert follower.lists == lists
    assert len(follower.versions) == len(UIDS), "what is known is kept"
    server.fails_page = ""
    within(lambda: follower.versions == server.versions and not follower.error, seconds=40)


def test_those_of_one_cluster_list_one_after_the_other(server: ListingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RELIST", 3.0)
    monkeypatch.setattr(module, "WATCH", 1)
    gate = Gate(spacing=0.1)
    followers = [Follower(server, gate) for _one in range(3)]
    for follower in followers:
        follower.start()
    within(lambda: server.watches >= 3 and all(follower.is_complete for follower in followers))
    stand_still(server)
    time.sleep(2)
    assert server.waiting == 1
    server.pages.set()
    within(lambda: all(follower.lists >= 2 for follower in followers))
    for follower in followers:
        follower.stop()


def test_lists_leave_time_between_them(server: ListingServer, follower: Follower) -> None:
    within(lambda: follower.lists >= 5, seconds=40)
    gaps = [later - earlier for earlier, later in itertools.pairwise(server.lists[:5])]
    assert min(gaps) > 0.5, f"a flood: {gaps}"
