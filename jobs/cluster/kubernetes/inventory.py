"""The objects of one kind, put together from what a watch tells and from lists that are read while it goes on (DESIGN 11.10).

A list shows the server as it was at one moment after the list was asked for. So what the watch has touched since then is left
as the watch told it, and whatever else differs is what no watch has told: it was lost, or is still on its way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from jobs.cluster.port import Manifest


class Overtaken(Exception):
    """Another list was begun after this one, whose rest means nothing any more."""


class Inventory:
    """`objects` by UID. `changed` is called after every change with the old and the new form, by one thread at a time."""

    def __init__(
        self,
        changed: Callable[[Manifest | None, Manifest | None], None],
        *,
        lean: Callable[[Manifest], Manifest] = lambda item: item,
    ) -> None:
        self.objects: dict[str, Manifest] = {}
        self._changed, self._leaner = changed, lean
        self._lock = threading.Lock()
        self._listing: Listing | None = None
        self._removed: set[str] = set()  # since the newest list began: a UID never comes back
        self._removed_before = self._removed  # since the one before it

    def begin(self) -> Listing:
        """Before a list is asked for."""
        with self._lock:
            self._removed_before, self._removed = self._removed, set()
            self._listing = Listing(self)
            return self._listing

    # What a watch tells

    def tell(self, item: Manifest) -> None:
        uid = item["metadata"]["uid"]
        with self._lock:
            if uid in self._removed or uid in self._removed_before or _is_older(item, self.objects.get(uid)):
                return  # a list was ahead of the watch
            self._touch(uid)
            self._put(uid, item)

    def tell_deleted(self, item: Manifest) -> None:
        """In its last form, which may be the only one that tells how it ended: also of what a list has taken away already."""
        uid = item["metadata"]["uid"]
        with self._lock:
            self._touch(uid)
            self._removed.add(uid)
            self.objects.pop(uid, None)
            self._changed(self._lean(item), None)

    def _touch(self, uid: str) -> None:
        if self._listing is not None:
            self._listing.touched.add(uid)

    def _put(self, uid: str, item: Manifest) -> None:
        old = self.objects.get(uid)
        if old is None or old["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            new = self.objects[uid] = self._lean(item)
            self._changed(old, new)

    def _lean(self, item: Manifest) -> Manifest:
        """Who wrote which field is half of an object's size and nothing to us."""
        item["metadata"].pop("managedFields", None)
        return self._leaner(item)


class Listing:
    """One list that is being read, of which the inventory takes what it does not know better."""

    def __init__(self, inventory: Inventory) -> None:
        self.touched: set[str] = set()  # by the watch, since it was begun
        self._inventory = inventory
        self._found: set[str] = set()

    @property
    def is_overtaken(self) -> bool:
        return self._inventory._listing is not self

    def add(self, items: Iterable[Manifest]) -> None:
        """A page of it. Raise Overtaken."""
        inventory = self._inventory
        for item in items:
            uid = item["metadata"]["uid"]
            # for each anew: the watch need not wait for a page
            with inventory._lock:
                self._check()
                self._found.add(uid)
                if uid not in self.touched:
                    inventory._removed.discard(uid)
                    inventory._removed_before.discard(uid)
                    inventory._put(uid, item)

    def finish(self) -> None:
        """Every page was added: what is in none of them is gone. Raise Overtaken."""
        inventory = self._inventory
        with inventory._lock:
            self._check()
            for uid in inventory.objects.keys() - self._found - self.touched:
                inventory._removed.add(uid)
                inventory._changed(inventory.objects.pop(uid), None)
            inventory._listing = None

    def _check(self) -> None:
        if self.is_overtaken:
            raise Overtaken


def _is_older(item: Manifest, known: Manifest | None) -> bool:
    """Versions of a kind are growing numbers on every server there is; else the next list mends what is left out."""
    if known is None:
        return False
    new, old = item["metadata"]["resourceVersion"], known["metadata"]["resourceVersion"]
    return new.isdecimal() and old.isdecimal() and int(new) < int(old)
