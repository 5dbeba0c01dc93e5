"""A list that is read while a watch goes on: whoever knows better is believed (RELIABILITY R17, R18, R19)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.cluster.kubernetes.inventory import Inventory, Listing, Overtaken
from jobs.cluster.port import Manifest

Change = tuple[str, str, str]  # uid, old version, new version; "" is none


def item(uid: str, version: int | str, **fields: Any) -> Manifest:
    return {"metadata": {"uid": uid, "name": uid, "resourceVersion": str(version)}, **fields}


class Told:
    """An inventory and what it told."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.last: dict[str, Manifest | None] = {}
        self.inventory = Inventory(self._changed)

    def _changed(self, old: Manifest | None, new: Manifest | None) -> None:
        one = new or old
        assert one is not None
        self.last[one["metadata"]["uid"]] = one
        self.changes.append((one["metadata"]["uid"], version(old), version(new)))

    def start(self, *items: Manifest) -> Told:
        listing = self.inventory.begin()
        listing.add(items)
        listing.finish()
        self.changes.clear()
        return self

    @property
    def versions(self) -> dict[str, str]:
        return {uid: version(one) for uid, one in self.inventory.objects.items()}


def version(one: Manifest | None) -> str:
    return one["metadata"]["resourceVersion"] if one else ""


@pytest.fixture
def told() -> Told:
    return Told().start(item("a", 1), item("b", 2), item("c", 3))


def read(listing: Listing, *items: Manifest) -> None:
    listing.add(items)
    listing.finish()


class TestBesideAWatch:
    def test_a_list_mends_what_the_watch_lost(self, told: Told) -> None:
        read(told.inventory.begin(), item("a", 1), item("b", 5), item("d", 6))
        assert told.versions == {"a": "1", "b": "5", "d": "6"}
        assert sorted(told.changes) == [("b", "2", "5"), ("c", "3", ""), ("d", "", "6")]

    def test_what_changed_since_it_began_stays_as_the_watch_told_it(self, told: Told) -> None:
        listing = told.inventory.begin()
        told.inventory.tell(item("a", 7))
        read(listing, item("a", 1), item("b", 2), item("c", 3))
        assert told.versions["a"] == "7"
        assert told.changes == [("a", "1", "7")]

    def test_what_came_since_it_began_is_not_taken_for_gone(self, told: Told) -> None:
        listing = told.inventory.begin()
        told.inventory.tell(item("new", 7))
        read(listing, item("a", 1), item("b", 2), item("c", 3))
        assert "new" in told.versions

    def test_what_went_since_it_began_does_not_come_back(self, told: Told) -> None:
        listing = told.inventory.begin()
        told.inventory.tell_deleted(item("a", 7))
        read(listing, item("a", 1), item("b", 2), item("c", 3))
        assert told.changes == [("a", "7", "")]

    def test_what_was_made_again_by_the_same_name_is_another(self, told: Told) -> None:
        listing = told.inventory.begin()
        told.inventory.tell_deleted(item("a", 7))
        told.inventory.tell(item("a-again", 8))
        read(listing, item("a", 1), item("b", 2), item("c", 3))
        assert told.versions == {"a-again": "8", "b": "2", "c": "3"}

    def test_came_and_went_between_two_pages(self, told: Told) -> None:
        listing = told.inventory.begin()
        listing.add([item("a", 1)])
        told.inventory.tell(item("b", 7))
        told.inventory.tell_deleted(item("b", 8))
        listing.add([item("b", 2), item("c", 3)])
        told.inventory.tell_deleted(item("a", 9))  # of a page that was read already
        listing.finish()
        assert told.versions == {"c": "3"}

    def test_of_a_list_that_is_ahead_the_watch_takes_nothing_back(self, told: Told) -> None:
        listing = told.inventory.begin()
        listing.add([item("a", 9), item("b", 2), item("c", 3)])
        told.inventory.tell(item("a", 5))
        told.inventory.tell(item("a", 9))
        listing.finish()
        told.inventory.tell(item("a", 4))
        assert told.changes == [("a", "1", "9")]

    def test_what_a_list_took_away_does_not_come_back_by_news_that_are_late(self, told: Told) -> None:
        read(told.inventory.begin(), item("a", 1), item("b", 2))
        told.inventory.tell(item("c", 5))
        told.inventory.begin()
        told.inventory.tell(item("c", 6))
        assert told.changes == [("c", "3", "")]

    def test_its_last_form_is_told_also_after_a_list_took_it_away(self, told: Told) -> None:
        """R19: it alone says how a pod ended."""
        read(told.inventory.begin(), item("a", 1), item("b", 2))
        told.inventory.tell_deleted(item("c", 6, status={"phase": "Succeeded"}))
        last = told.last["c"]
        assert last is not None and last["status"] == {"phase": "Succeeded"}
        assert "c" not in told.versions

    def test_a_server_that_lost_its_newest_data_is_believed(self, told: Told) -> None:
        """A store put back from a copy: versions are lower than those that were told, and what was deleted is there."""
        told.inventory.tell_deleted(item("c", 8))
        told.inventory.tell(item("a", 9))
        read(told.inventory.begin(), item("a", 1), item("c", 3))
        told.inventory.tell(item("c", 4))
        assert told.versions == {"a": "1", "c": "4"}

    def test_versions_that_are_no_numbers_are_believed_in_the_order_in_which_they_come(self, told: Told) -> None:
        told.inventory.tell(item("a", "x9"))
        told.inventory.tell(item("a", "x10"))
        assert told.versions["a"] == "x10"


class TestTwoLists:
    """The watch died while a list was read beside it, and what came back listed for itself."""

    def test_the_older_is_given_up_between_two_pages(self, told: Told) -> None:
        older = told.inventory.begin()
        older.add([item("a", 1)])
        read(told.inventory.begin(), item("a", 7), item("b", 8))
        with pytest.raises(Overtaken):
            older.add([item("b", 2), item("c", 3)])
        with pytest.raises(Overtaken):
            older.finish()
        assert told.versions == {"a": "7", "b": "8"}

    def test_the_older_takes_nothing_from_the_newer_before_that_is_whole(self, told: Told) -> None:
        older = told.inventory.begin()
        newer = told.inventory.begin()
        newer.add([item("a", 7)])
        with pytest.raises(Overtaken):
            older.add([item("a", 1)])
        assert told.versions == {"a": "7", "b": "2", "c": "3"}

    def test_one_that_ended_is_not_ended_again(self, told: Told) -> None:
        listing = told.inventory.begin()
        read(listing, item("a", 1))
        with pytest.raises(Overtaken):
            listing.finish()


def test_what_nobody_needs_is_not_kept() -> None:
    inventory = Inventory(lambda _old, _new: None, lean=lambda one: {"metadata": one["metadata"]})
    one = item("a", 1, spec={"long": "x"})
    one["metadata"]["managedFields"] = [{}]
    inventory.tell(one)
    assert inventory.objects == {"a": item("a", 1)}


class Server:
    """Objects that change, their history, and a watch that reads it later."""

    def __init__(self) -> None:
        self.versions = {"a": 1, "b": 2, "c": 3}
        self.history: list[tuple[str, Manifest]] = []
        self.counter = itertools.count(4)
        self.names = itertools.count()

    def change(self, which: int) -> None:
        if self.versions:
            self._write(sorted(self.versions)[which % len(self.versions)])

    def create(self) -> None:
        self._write(f"new-{next(self.names)}")

    def _write(self, uid: str) -> None:
        self.versions[uid] = next(self.counter)
        self.history.append(("MODIFIED", item(uid, self.versions[uid])))

    def delete(self, which: int) -> None:
        if self.versions:
            uid = sorted(self.versions)[which % len(self.versions)]
            del self.versions[uid]
            self.history.append(("DELETED", item(uid, next(self.counter))))

    @property
    def listed(self) -> list[Manifest]:
        return [item(uid, number) for uid, number in sorted(self.versions.items())]


steps = st.lists(
    st.tuples(
        st.sampled_from("change change create delete hear hear hear lose begin page page page finish".split()),
        st.integers(0, 5),
    ),
    max_size=60,
)


def play(taken: list[tuple[str, int]], told: Told, server: Server, *, lists: int, lossy: bool) -> None:
    """In any order that can be; a page has one object, and what a list shows is how it was when its first page was asked for."""
    listing: Listing | None = None
    pages: list[Manifest] | None = None
    for step, which in taken:
        if step == "change":
            server.change(which)
        elif step == "create":
            server.create()
        elif step == "delete":
            server.delete(which)
        elif step == "hear":
            hear(told, server, 1)
        elif step == "lose" and lossy and server.history:
            server.history.pop(0)
        elif step == "begin" and listing is None and lists:
            listing, pages = told.inventory.begin(), None
            lists -= 1
        elif step == "page" and listing is not None:
            pages = server.listed if pages is None else pages
            listing.add(pages[:1])
            pages = pages[1:]
        elif step == "finish" and listing is not None:
            listing.add(server.listed if pages is None else pages)
            listing.finish()
            listing = None


def hear(told: Told, server: Server, some: int) -> None:
    for kind, one in server.history[:some]:
        (told.inventory.tell_deleted if kind == "DELETED" else told.inventory.tell)(one)
    del server.history[:some]


@given(steps)
@settings(max_examples=400, deadline=None)
def test_whatever_the_order_nothing_goes_backwards_and_all_is_there_in_the_end(taken: list[tuple[str, int]]) -> None:
    told, server = Told().start(item("a", 1), item("b", 2), item("c", 3)), Server()
    play(taken, told, server, lists=2, lossy=False)
    hear(told, server, len(server.history))
    assert told.versions == {uid: str(number) for uid, number in server.versions.items()}
    newest: dict[str, int] = {}
    gone: set[str] = set()
    for uid, _old, new in told.changes:
        if not new:
            gone.add(uid)
            continue
        assert uid not in gone, "it came back"
        assert int(new) > newest.get(uid, 0), "it went backwards"
        newest[uid] = int(new)


@given(steps)
@settings(max_examples=400, deadline=None)
def test_whatever_was_lost_one_more_list_makes_it_good(taken: list[tuple[str, int]]) -> None:
    told, server = Told().start(item("a", 1), item("b", 2), item("c", 3)), Server()
    play(taken, told, server, lists=5, lossy=True)
    hear(told, server, len(server.history))
    read(told.inventory.begin(), *server.listed)
    assert told.versions == {uid: str(number) for uid, number in server.versions.items()}
