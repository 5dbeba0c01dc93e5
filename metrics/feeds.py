"""Feeds of the hub: what changes is read once, encoded once, and written to everyone who follows it.

A feed reads the database from the number up to which its followers have everything, so frames are always in order, nothing is
missing and nothing comes twice, whatever hints got lost. A follower who joins is brought to the feed's number first.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from metrics import snapshot
from metrics.arrivals import Arrival
from metrics.rights import Rights
from metrics.topics import Topic

PACE = 0.1  # seconds between two changes of a feed; the first leaves at once

logger = logging.getLogger(__name__)
Database = Callable[..., Awaitable[Any]]


class Follower(Protocol):
    """A connection: takes frames without waiting."""

    @property
    def namespaces(self) -> frozenset[int] | None: ...
    def offer(self, text: str) -> None: ...


@dataclass(slots=True, eq=False)
class Subscription:
    follower: Follower
    topic: Topic
    namespace_id: int | None = None
    seq: int = 0  # what the follower has


class Connection(Follower, Protocol):
    """A socket, as the hub sees it."""

    session_key: str
    rights: Rights
    subscriptions: dict[str, Subscription]

    def end(self, code: int, reason: str) -> None: ...
    def check_pace(self) -> None: ...


def frame(topic: str, kind: str, data: Any, seq: int | None = None) -> str:
    return orjson.dumps({"topic": topic, "seq": seq, "type": kind, "data": data}).decode()


class Feed(ABC):
    """Followers of one source; wakes up on a hint and tells them what is new."""

    def __init__(self, source: str, database: Database, *, pace: float = PACE) -> None:
        self.source = source
        self.database = database
        self.pace = pace
        self.subscriptions: set[Subscription] = set()
        self.joining = 0  # followers whose first answer is being read
        self.lock = asyncio.Lock()
        self._dirty = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def hint(self) -> None:
        """Something may be new."""
        self._dirty.set()

    async def add(self, subscription: Subscription, since: int | None) -> None:
        self.joining += 1
        try:
            async with self.lock:
                await self.join(subscription, since)
                self.subscriptions.add(subscription)
        finally:
            self.joining -= 1
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"feed {self.source}")

    def remove(self, subscription: Subscription) -> None:
        self.subscriptions.discard(subscription)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            began = time.monotonic()
            try:
                async with self.lock:
                    if self.subscriptions:
                        await self.flush()
            except Exception as error:  # the database is away: the safety poll comes back to it
                logger.warning("Followers of %s could not be told yet: %s", self.source, error)
            await asyncio.sleep(max(0.0, began + self.pace - time.monotonic()))

    @abstractmethod
    async def join(self, subscription: Subscription, since: int | None) -> None:
        """Bring a new follower to where the feed is. Runs under the lock."""

    @abstractmethod
    async def flush(self) -> None:
        """Tell the followers what is new. Runs under the lock."""


class NumberedFeed(Feed):
    """Points or lines: items with numbers, of which each follower gets those above what they have."""

    def __init__(self, source: str, job_id: str, database: Database) -> None:
        super().__init__(source, database)
        self.job_id = job_id
        self.last: int | None = None  # all followers have everything up to here
        self._snapshots: dict[str, tuple[int, str]] = {}  # of the present number, for many who join at one time

    @abstractmethod
    async def read(self, after: int) -> tuple[int, list[Any] | None, Any]:
        """Where the source stands, its items after a number (None: too far back), and what goes with them."""

    @abstractmethod
    async def whole(self, topic: Topic) -> tuple[int, dict[str, Any]]: ...

    @abstractmethod
    def change(self, topic: Topic, items: list[Any], beside: Any) -> dict[str, Any] | None:
        """The data of a change, or None if there is nothing in it for this topic."""

    async def join(self, subscription: Subscription, since: int | None) -> None:
        if self.last is not None:
            await self.flush()
        topic = subscription.topic
        if since is not None:
            now, items, beside = await self.read(since)
            if items is not None:
                data = self.change(topic, items, beside)
                # said also when empty, so that the client knows it has everything
                data = self.change(topic, [], beside) if data is None else data
                subscription.follower.offer(frame(topic.name, "change", data or {}, now))
                self._joined(subscription, now)
                return
        seq, text = await self._snapshot(topic, least=self.last)
        subscription.follower.offer(text)
        self._joined(subscription, seq)

    def _joined(self, subscription: Subscription, seq: int) -> None:
        subscription.seq = seq
        if self.last is None or not self.subscriptions:
            self.last = seq

    async def _snapshot(self, topic: Topic, *, least: int | None) -> tuple[int, str]:
        """The snapshot of a topic, which many may ask for at one time: read once as long as nothing is newer."""
        known = self._snapshots.get(topic.name)
        if known is None or least is None or known[0] < least:
            seq, data = await self.whole(topic)
            known = self._snapshots[topic.name] = (seq, frame(topic.name, "snapshot", data, seq))
        return known

    async def flush(self) -> None:
        assert self.last is not None
        now, items, beside = await self.read(self.last)
        if items is None:
            await self._start_again(now)
            return
        if now == self.last:
            return
        frames: dict[tuple[str, int], str | None] = {}
        for subscription in self.subscriptions:
            after = max(subscription.seq, self.last)
            if after >= now:
                continue
            key = (subscription.topic.name, after)
            if key not in frames:
                new = items if after == self.last else [item for item in items if _number(item) > after]
                data = self.change(subscription.topic, new, beside)
                frames[key] = None if data is None else frame(subscription.topic.name, "change", data, now)
            if text := frames[key]:
                subscription.follower.offer(text)
            subscription.seq = now
        self.last = now
        self._snapshots.clear()

    async def _start_again(self, now: int) -> None:
        """What came meanwhile cannot be told as changes any more: everyone gets a snapshot."""
        self._snapshots.clear()
        reached = now
        for subscription in list(self.subscriptions):
            seq, text = await self._snapshot(subscription.topic, least=now)
            subscription.follower.offer(text)
            subscription.seq = seq
            reached = min(reached, seq)
        self.last = reached


def _number(item: Any) -> int:
    number: int = item["seq"] if isinstance(item, dict) else item.seq
    return number


class PointsFeed(NumberedFeed):
    async def read(self, after: int) -> tuple[int, list[Any] | None, Any]:
        now, arrivals, progress = await self.database(snapshot.points_since, self.job_id, after)
        return now, arrivals, progress

    async def whole(self, topic: Topic) -> tuple[int, dict[str, Any]]:
        found: tuple[int, dict[str, Any]] = await self.database(snapshot.points, self.job_id)
        return found

    def change(self, topic: Topic, items: list[Arrival], beside: Any) -> dict[str, Any]:
        return snapshot.points_change(items, beside)


class LinesFeed(NumberedFeed):
    """Lines of all workers of a job are read once; who follows one worker gets a part of them."""

    async def read(self, after: int) -> tuple[int, list[Any] | None, Any]:
        now, lines = await self.database(snapshot.lines_since, self.job_id, after)
        return now, lines, None

    async def whole(self, topic: Topic) -> tuple[int, dict[str, Any]]:
        found: tuple[int, dict[str, Any]] = await self.database(snapshot.lines, self.job_id, topic.worker)
        return found

    def change(self, topic: Topic, items: list[dict[str, Any]], beside: Any) -> dict[str, Any] | None:
        lines = [line for line in items if not topic.worker or line["worker"] == topic.worker]
        return {"lines": lines} if lines or not items else None


class StateFeed(Feed):
    """A thing that is told whole whenever it looks different: a job, a namespace, the clusters, the inbox."""

    def __init__(
        self, source: str, database: Database, read: Callable[[], Any], *, numbered: bool, pace: float = PACE
    ) -> None:
        super().__init__(source, database, pace=pace)
        self._read = read
        self._numbered = numbered
        self.last: int | None = None
        self._told = b""

    async def _now(self) -> tuple[int | None, bytes]:
        found = await self.database(self._read)
        seq, data = found if self._numbered else (None, found)
        return seq, orjson.dumps(data, default=str)

    async def join(self, subscription: Subscription, since: int | None) -> None:
        seq, data = await self._now()
        subscription.follower.offer(spliced(subscription.topic.name, "snapshot", seq, data))
        self._tell(seq, data)

    async def flush(self) -> None:
        self._tell(*await self._now())

    def _tell(self, seq: int | None, data: bytes) -> None:
        if data == self._told:
            return
        # a reader may pass over a change whose number it has; what changed without a number is told whole, as a snapshot
        kind = "snapshot" if seq is not None and seq == self.last else "change"
        self._told, self.last = data, seq
        frames: dict[str, str] = {}
        for subscription in self.subscriptions:
            name = subscription.topic.name
            if name not in frames:
                frames[name] = spliced(name, kind, seq, data)
            subscription.follower.offer(frames[name])


def spliced(topic: str, kind: str, seq: int | None, data: bytes) -> str:
    """A frame around data that is encoded already."""
    head = orjson.dumps({"topic": topic, "seq": seq, "type": kind})
    return (head[:-1] + b',"data":' + data + b"}").decode()
