"""One kind of object of a cluster, kept in memory as the server has it: list, watch, and list again, for ever (DESIGN 11.10).

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
from jobs.cluster.port import Manifest
from jobs.exceptions import ClusterError, ClusterUnavailable

WATCH = 10  # seconds after which the server ends a watch: on a quiet cluster nothing else says that it is still heard
READ = 20.0  # seconds of silence after which the connection is taken for dead: `timeoutSeconds` never notices that
RELIST = 60.0  # seconds between two lists: they repair whatever a watch missed
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 12.0  # after an error; doubled each time, and up to twice as long by chance
SHORTEST = 1.0  # seconds; a watch that ends sooner without a word is of a server that cannot watch now
logger = logging.getLogger(__name__)


class Gate:
    """Shared by all reflectors of a process: retries leave one after the other, so an outage is no flood when it ends."""

    def __init__(self, spacing: float = 2.0) -> None:
        self._spacing = spacing
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self, stop: threading.Event) -> None:
        with self._lock:
            self._next = max(time.monotonic(), self._next + self._spacing)
            at = self._next
        stop.wait(at - time.monotonic())


class Reflector(threading.Thread):
    """`objects` by UID. `changed` is called after every change with the old and the new form, from this thread."""

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
        self.objects: dict[str, Manifest] = {}
        self.error = ""
        self.seen_at = 0.0  # monotonic: when the server last said anything; 0 before the first list
        self.heard_at = 0.0  # monotonic: all that happened before was told
        self.listed_at = 0.0
        self.lists = 0
        self._gate, self._changed, self._leaner = gate, changed, lean
        self._version = ""
        self._failures = 0  # in a row
        self._stop_event = threading.Event()

    @property
    def is_complete(self) -> bool:
        """Whether everything was listed at least once."""
        return self.listed_at > 0

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
        left = RELIST - (time.monotonic() - self.listed_at)
        if not self._version or left < 1:
            self._list()
        else:
            self._watch(max(1, min(WATCH, int(left))))

    def _list(self) -> None:
        began = time.monotonic()
        found: set[str] = set()
        version = ""
        for items, of in self.api.pages(self.path, self.query, page=self.page):
            version = of
            for item in filter(self._is_readable, items):
                found.add(item["metadata"]["uid"])
                self._put(item["metadata"]["uid"], self._lean(item))
        for uid in self.objects.keys() - found:
            self._put(uid, None)
        self._version = version
        self.heard_at = began  # what happened since may be missing
        self.seen_at = self.listed_at = time.monotonic()
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
            if not line.strip():
                continue
            self._take(line)
            self.seen_at = time.monotonic()
            if self._version != version:
                self._failures = 0
            if self._stop_event.is_set():
                return
        self.seen_at = self.heard_at = time.monotonic()
        lasted = self.seen_at - began
        if self._version == version and lasted < SHORTEST:
            raise ClusterUnavailable("It ends each watch at once.")
        self._failures = 0
        self._stop_event.wait(SHORTEST - lasted)

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
            self._put(item["metadata"]["uid"], None, last=self._lean(item))
        else:
            self._put(item["metadata"]["uid"], self._lean(item))
        # only now: what is raised above is asked for again
        self._version = item["metadata"]["resourceVersion"]

    def _is_readable(self, item: Any) -> bool:
        """An object that bears no name of its own is left out, and the others are read."""
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if isinstance(metadata, dict) and metadata.get("uid") and metadata.get("resourceVersion"):
            return True
        logger.warning("%s: left out what has no UID or version: %.200s", self.path, item)
        return False

    def _lean(self, item: Manifest) -> Manifest:
        """Who wrote which field is half of an object's size and nothing to us."""
        item["metadata"].pop("managedFields", None)
        return self._leaner(item)

    def _put(self, uid: str, new: Manifest | None, *, last: Manifest | None = None) -> None:
        """`last` is the form in which it was deleted: it may be the only one that tells how it ended."""
        old = self.objects.get(uid)
        if new is None:
            self.objects.pop(uid, None)
            self._changed(last or old, None)
        elif old is None or old["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"]:
            self.objects[uid] = new
            self._changed(old, new)


def _refusal(status: dict[str, Any]) -> ClusterUnavailable:
    said = f"A watch ended: {status.get('message') or status.get('code')}"
    return ClusterUnavailable(said, retry_after=number(status, "details", "retryAfterSeconds"))
