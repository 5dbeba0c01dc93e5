"""One kind of object of a cluster, kept in memory as the server has it: list, watch, and list again, for ever (DESIGN 11.10).

While a watch works the lists are read beside it, so that no news waits until thousands of objects were listed. After an error of
either, the list comes first and the watch goes on from there.

Nothing is deserialised into models: one object that breaks a schema must not blind the portal.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import orjson

from jobs.cluster.fields import number, text
from jobs.cluster.kubernetes.client import Api, TooOld
from jobs.cluster.kubernetes.inventory import Inventory, Listing, Overtaken
from jobs.cluster.port import Manifest
from jobs.exceptions import ClusterError, ClusterUnavailable

WATCH = 10  # seconds after which the server ends a watch: on a quiet cluster nothing else says that it is still heard
READ = 20.0  # seconds of silence after which the connection is taken for dead: `timeoutSeconds` never notices that
RELIST = 60.0  # seconds after which a list has repaired whatever a watch missed
BETWEEN_PAGES = 0.1  # seconds that a list beside a watch leaves to others
CATCH_UP = (
    3.0  # seconds that the watch has to tell of what a list does not have any more: it alone tells how that ended
)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 12.0  # after an error; doubled each time, and up to twice as long by chance
SHORTEST = 1.0  # seconds; a watch that ends sooner without a word is of a server that cannot watch now
logger = logging.getLogger(__name__)


class Gate:
    """Shared by all reflectors of a process: retries leave one after the other, so an outage is no flood when it ends.

    Who has `one_list` may list beside its watch: several lists at once would hold up the news of each other's kinds.
    """

    def __init__(self, spacing: float = 2.0) -> None:
        self.one_list = threading.Lock()
        self._spacing = spacing
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self, stop: threading.Event) -> None:
        with self._lock:
            self._next = max(time.monotonic(), self._next + self._spacing)
            at = self._next
        stop.wait(at - time.monotonic())


class Reflector(threading.Thread):
    """`objects` by UID. `changed` is called after every change with the old and the new form, by one thread at a time."""

    def __init__(
        self,
        api: Api,
        path: str,
        *,
        gate: Gate,
        changed: Callable[[Manifest | None, Manifest | None], None],
        query: dict[str, str] | None = None,
        page: int = 500,
        lean: Callable[[Manifest], Manifest] = lambda item: item,
    ) -> None:
        super().__init__(name=path, daemon=True)
        self.api, self.path, self.query, self.page = api, path, query or {}, page
        self.error = ""
        self.seen_at = 0.0  # monotonic: when the server last said anything; 0 before the first list
        self.heard_at = 0.0  # monotonic: all that happened before was told
        self.lists = 0
        self._gate = gate
        self._inventory = Inventory(changed, lean=lean)
        self._beside: _Beside | None = None  # the list that is read beside the watch
        self._list_at = 0.0  # monotonic: when the next one is to begin
        self._version = ""
        self._failures = 0  # in a row
        self._stop_event = threading.Event()

    @property
    def objects(self) -> dict[str, Manifest]:
        return self._inventory.objects

    @property
    def is_complete(self) -> bool:
        """Whether everything was listed at least once."""
        return self.lists > 0

    def stop(self) -> None:
        self._stop_event.set()

    def run(self) -> None:
        while not self._stop_event.is_set():
            try:
                self._step()
                self.error = ""
            except TooOld as error:
                logger.info("%s: %s", self.path, error)
                self._failed(wait=0.0, at_once=True)
            except ClusterError as error:
                logger.warning("%s: %s", self.path, error)
                self.error = str(error)
                self._failed(wait=(isinstance(error, ClusterUnavailable) and error.retry_after) or 0.0)
            except Exception:  # what nobody thought of must not end the watch for ever
                logger.exception("%s could not be read", self.path)
                self.error = "It says what cannot be read."
                self._failed(wait=0.0)

    def _failed(self, *, wait: float, at_once: bool = False) -> None:
        """List again, later each time until a watch has worked; the first time `at_once`."""
        self._version = ""
        self._failures += 1
        if at_once and self._failures == 1:
            return
        pause = min(FIRST_PAUSE * 2 ** min(self._failures - 1, 10), LONGEST_PAUSE)
        # spread, so that many do not come back at the same moment
        self._stop_event.wait(max(wait, pause * random.uniform(1, 2)))  # noqa: S311
        self._gate.wait(self._stop_event)

    def _step(self) -> None:
        if not self._version:
            self._list()
            return
        left = self._list_at - time.monotonic()
        if self._beside is None and left < 1:
            self._beside = _Beside(self._inventory.begin())
            threading.Thread(
                target=self._list_beside, args=[self._beside], name=f"{self.path}, listed", daemon=True
            ).start()
        self._watch(WATCH if self._beside is not None else max(1, min(WATCH, int(left))))

    def _list(self) -> None:
        """Nothing else is told meanwhile, and the watch goes on from here."""
        self._beside = None
        began = time.monotonic()
        listing = self._inventory.begin()
        version = ""
        for items, of in self.api.pages(self.path, self.query, page=self.page):
            version = of
            listing.add(filter(self._is_readable, items))
        listing.finish()
        self._version = version
        self.heard_at = began  # what happened since may be missing
        self.seen_at = time.monotonic()
        self._listed(began)

    def _list_beside(self, beside: _Beside) -> None:
        """In a thread of its own. What fails is told to the one that watches: it lists again, as after any error."""
        try:
            with self._gate.one_list:
                began = time.monotonic()
                for items, _version in self.api.pages(self.path, self.query, page=self.page):
                    beside.listing.add(filter(self._is_readable, items))
                    if self._stop_event.wait(BETWEEN_PAGES):
                        return
            if self._stop_event.wait(CATCH_UP):
                return
            beside.listing.finish()
            self._listed(began)
            beside.is_done = True
        except Overtaken:
            logger.info("%s: the watch broke off, and was listed for anew meanwhile", self.path)
        except Exception as error:
            beside.error = error

    def _listed(self, began: float) -> None:
        """The next list is to end, if it takes as long, so soon after this one began that nothing is wrong for longer."""
        now = time.monotonic()
        self._list_at = max(began + RELIST - (now - began), now + RELIST / 4)
        self.lists += 1

    def _watch(self, seconds: int) -> None:
        query: dict[str, str | int] = {
            **self.query,
            "watch": 1,
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": seconds,
        }
        began, version = time.monotonic(), self._version
        for line in self.api.lines(self.path, query, read=READ):
            self._look_beside()
            if not line.strip():
                continue
            self._take(line)
            self.seen_at = time.monotonic()
            if self._version != version:
                self._failures = 0
            if self._stop_event.is_set():
                return
        self._look_beside()
        self.seen_at = self.heard_at = time.monotonic()
        lasted = self.seen_at - began
        if self._version == version and lasted < SHORTEST:
            raise ClusterUnavailable("It ends each watch at once.")
        self._failures = 0
        self._stop_event.wait(SHORTEST - lasted)

    def _look_beside(self) -> None:
        if self._beside is None:
            return
        if self._beside.error is not None:
            raise self._beside.error
        if self._beside.is_done:
            self._beside = None

    def _take(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            kind, item = event["type"], event["object"]
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterUnavailable(f"A watch said what cannot be read: {line[:100]!r}") from error
        if kind == "ERROR":
            raise TooOld(text(item, "message")) if number(item, "code") == 410 else _refusal(item)
        if kind == "BOOKMARK":
            self._version = item["metadata"]["resourceVersion"]
            return
        if not self._is_readable(item):
            return
        if kind == "DELETED":
            self._inventory.tell_deleted(item)
        else:
            self._inventory.tell(item)
        # only now: what is raised above is asked for again
        self._version = item["metadata"]["resourceVersion"]

    def _is_readable(self, item: Any) -> bool:
        """An object that bears no name of its own is left out, and the others are read."""
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if isinstance(metadata, dict) and metadata.get("uid") and metadata.get("resourceVersion"):
            return True
        logger.warning("%s: left out what has no UID or version: %.200s", self.path, item)
        return False


class _Beside:
    """A list that is read beside the watch, and what became of it."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.is_done = False
        self.error: Exception | None = None


def _refusal(status: dict[str, Any]) -> ClusterUnavailable:
    said = f"A watch ended: {status.get('message') or status.get('code')}"
    return ClusterUnavailable(said, retry_after=number(status, "details", "retryAfterSeconds"))
