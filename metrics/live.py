"""The hub of a web process: one Valkey subscription, one reading of what is new, one encoding, every socket.

Hints may be lost and Valkey may be away: a poll of the numbers of what is followed finds what was missed, every 2 s while
there is no Valkey, else every 5 s. Nothing here decides who may see what but `rights`; nothing here keeps what the database
does not have.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson
import redis.asyncio
from channels.db import database_sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from redis.exceptions import RedisError

from jobs.live import CHANNEL
from metrics import rights, snapshot
from metrics.announcer import WATCHED, WATCHED_SECONDS
from metrics.feed_kinds import feed_of, source_of
from metrics.feeds import Connection, Feed, NumberedFeed, Subscription, frame
from metrics.list_feed import ListsFeed
from metrics.rights import Rights
from metrics.topics import Topic, parse

SESSION_OVER, RESTART = 4401, 1012
THREADS = 4  # and so database connections, for all sockets of the process
BEAT = 4.0
RIGHTS = 10.0
POLL, POLL_ALONE = 5.0, 2.0
KEEP_WATCHED = 5.0
ROW_PACE = 2.0  # seconds between two rows of a list for one job that only reports points
MAX_TOPICS = 200  # of one socket
logger = logging.getLogger(__name__)


class Hub:
    def __init__(self) -> None:
        self._connections: set[Connection] = set()
        self._feeds: dict[str, Feed] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._executor: ThreadPoolExecutor | None = None
        self._valkey: redis.asyncio.Redis | None = None
        self._connected = False
        self._row_at: dict[str, float] = {}
        self.told_of_rights: list[Callable[[], None]] = []  # who else of this process asks again when a right changes

    async def open(self) -> None:
        if self._tasks:
            return
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="live")
        self._valkey = redis.asyncio.Redis.from_url(settings.REDIS_URL, health_check_interval=10)
        runs: list[Callable[[], Any]] = [self._listen]
        runs += [
            partial(self._every, BEAT, self._beat),
            partial(self._every, RIGHTS, self.check_rights),
            partial(self._every, KEEP_WATCHED, self._keep_watched),
            self._poll,
        ]
        self._tasks = [asyncio.create_task(run()) for run in runs]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for one in list(self._connections):
            one.end(RESTART, "restart")
        for feed in self._feeds.values():
            feed.stop()
        self._feeds.clear()
        if self._valkey is not None:
            await self._valkey.aclose()
        if self._executor is not None:
            executor, self._executor = self._executor, None
            for _thread in range(THREADS):
                executor.submit(connection.close)
            executor.shutdown(wait=True)

    async def database(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a reading in one of few threads, whose connections stay open; once more if the connection had died."""
        run = database_sync_to_async(_on_kept_connection, thread_sensitive=False, executor=self._executor)
        try:
            return await run(function, *arguments)
        except (OperationalError, InterfaceError):
            return await run(function, *arguments)

    # ---- connections -----------------------------------------------------------------------------------------------

    def attach(self, one: Connection) -> None:
        self._connections.add(one)

    def detach(self, one: Connection) -> None:
        self._connections.discard(one)
        for name in list(one.subscriptions):
            self.unsubscribe(one, name)

    def unsubscribe(self, one: Connection, name: str) -> None:
        if subscription := one.subscriptions.pop(name, None):
            self._leave(subscription)

    def _leave(self, subscription: Subscription) -> None:
        source = source_of(subscription.topic)
        if feed := self._feeds.get(source):
            feed.remove(subscription)
            if not feed.subscriptions and not feed.joining:
                feed.stop()
                del self._feeds[source]

    async def subscribe(self, one: Connection, wanted: dict[str, int | None]) -> None:
        """Answer each topic with what is new since, or with a snapshot, and go on telling."""
        if not await self._renew([one]):
            return
        for name, since in wanted.items():
            self.unsubscribe(one, name)
            if len(one.subscriptions) >= MAX_TOPICS:
                one.offer(frame(name, "refused", {"code": "too_many", "most": MAX_TOPICS}))
                continue
            topic = parse(name)
            subscription = await self._permitted(one, topic) if topic else None
            if subscription is None:
                one.offer(frame(name, "refused", {"code": "not_found"}))
                continue
            await self._follow(one, subscription, since)

    async def _permitted(self, one: Connection, topic: Topic) -> Subscription | None:
        """None for what this person may not see, as for what does not exist."""
        if topic.kind in ("jobs", "cluster", "inbox"):
            return Subscription(one, topic)
        look_up = rights.namespace_of_slug if topic.kind == "namespace" else rights.namespace_of_job
        namespace_id = await self.database(look_up, topic.id)
        return Subscription(one, topic, namespace_id) if one.rights.reach(namespace_id) else None

    async def _follow(self, one: Connection, subscription: Subscription, since: int | None) -> None:
        topic = subscription.topic
        one.subscriptions[topic.name] = subscription
        try:
            await self._feed(topic).add(subscription, since)
        finally:
            if one.subscriptions.get(topic.name) is not subscription:
                self._leave(subscription)  # the socket closed while its first answer was read
        if topic.kind == "points":
            await self._keep_watched()

    def _feed(self, topic: Topic) -> Feed:
        source = source_of(topic)
        if source not in self._feeds:
            self._feeds[source] = feed_of(topic, self.database)
        return self._feeds[source]

    # ---- rights ----------------------------------------------------------------------------------------------------

    async def check_rights(self) -> None:
        await self._renew(list(self._connections))

    async def _renew(self, connections: list[Connection]) -> list[Connection]:
        """Ask again who is there and what they may see; close, refuse and re-read where that has changed.

        Return the connections of those who are still there.
        """
        if not connections:
            return []
        there = []
        keys = list({one.session_key for one in connections})
        found: dict[str, Rights | None] = await self.database(rights.of_sessions, keys)
        for one in connections:
            now = found[one.session_key]
            if now is None or now.user_id != one.rights.user_id:
                one.end(SESSION_OVER, "session_over")
                continue
            there.append(one)
            if now == one.rights:
                continue
            one.rights = now
            for name, subscription in list(one.subscriptions.items()):
                if subscription.namespace_id is not None and not now.reach(subscription.namespace_id):
                    self.unsubscribe(one, name)
                    one.offer(frame(name, "refused", {"code": "not_found"}))
            if lists := self._lists:
                await lists.rights_changed(one)
        return there

    @property
    def _lists(self) -> ListsFeed | None:
        feed = self._feeds.get("jobs")
        return feed if isinstance(feed, ListsFeed) else None

    # ---- hints -----------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Follow Valkey for ever. After each (re)connect everything is looked at: hints of the gap are lost."""
        assert self._valkey is not None
        while True:
            try:
                async with self._valkey.pubsub() as pubsub:
                    await pubsub.subscribe(CHANNEL)
                    async for message in pubsub.listen():
                        if message["type"] == "subscribe":
                            self._connected = True
                            self._hint_all()
                        elif message["type"] == "message":
                            self._take(message["data"])
            except (RedisError, OSError) as error:
                if self._connected:
                    logger.warning("Valkey is away, live pages poll the database: %s", error)
                self._connected = False
                await asyncio.sleep(0.5)

    def _take(self, data: bytes) -> None:
        """A hint: "topic is at n"."""
        try:
            hint = orjson.loads(data)
            source = str(hint["t"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            logger.warning("Not a hint: %r", data[:100])
            return
        if source == "rights":
            for tell in self.told_of_rights:
                tell()
            self._tasks.append(asyncio.create_task(self.check_rights()))
            self._tasks = [task for task in self._tasks if not task.done()]
            return
        if feed := self._feeds.get(source):
            feed.hint()
        kind, _slash, job_id = source.partition("/")
        if kind == "job":
            if lists := self._lists:
                lists.hint_job(job_id)
            for name, feed in self._feeds.items():
                if name.startswith("namespace/"):
                    feed.hint()
        elif kind == "points" and (lists := self._lists):
            self._hint_row(lists, job_id)

    def _hint_row(self, lists: ListsFeed, job_id: str) -> None:
        """Progress in a list is worth a row every two seconds, not every batch."""
        now = time.monotonic()
        if now - self._row_at.get(job_id, 0.0) < ROW_PACE:
            return
        if len(self._row_at) > 10_000:
            self._row_at.clear()
        self._row_at[job_id] = now
        lists.hint_job(job_id)

    def _hint_all(self) -> None:
        for feed in self._feeds.values():
            feed.hint()

    # ---- clocks ----------------------------------------------------------------------------------------------------

    async def _every(self, seconds: float, do: Callable[[], Any]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await do()
            except Exception as error:  # the database or Valkey is away; the clock must go on
                logger.warning("%s failed and is tried again: %s", getattr(do, "__name__", do), error)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL if self._connected else POLL_ALONE)
            try:
                await self.look()
            except Exception as error:  # the database is away; the next poll sees whether it is back
                logger.warning("The safety poll failed: %s", error)

    async def look(self) -> None:
        """Compare the numbers of everything that is followed with what has been told."""
        feeds = list(self._feeds.values())
        job_ids = {
            source.partition("/")[2] for source in self._feeds if source.startswith(("job/", "points/", "logs/"))
        }
        positions = await self.database(snapshot.positions, sorted(job_ids)) if job_ids else {}
        for feed in feeds:
            kind, _slash, name = feed.source.partition("/")
            if kind in ("job", "namespace", "cluster"):
                feed.hint()  # told only if it looks different; workers and progress have no number of their own
            elif name in positions and isinstance(feed, NumberedFeed):
                points, lines = positions[name]
                if feed.last != (points if kind == "points" else lines):
                    feed.hint()
        if lists := self._lists:
            await lists.check()

    async def _beat(self) -> None:
        text = frame("", "beat", {"at": datetime.now(UTC).isoformat(timespec="milliseconds")})
        for one in list(self._connections):
            one.offer(text)
            one.check_pace()

    async def _keep_watched(self) -> None:
        """Tell ingest whose points are on a screen: their senders send every 200 ms."""
        watched = [source.partition("/")[2] for source in self._feeds if source.startswith("points/")]
        if not watched or self._valkey is None:
            return
        try:
            pipeline = self._valkey.pipeline(transaction=False)
            for job_id in watched:
                pipeline.set(WATCHED + job_id, 1, ex=WATCHED_SECONDS)
            await pipeline.execute()
        except (RedisError, OSError) as error:
            logger.warning("Senders could not be told that somebody watches: %s", error)


def _on_kept_connection(function: Callable[..., Any], *arguments: Any) -> Any:
    connection.ensure_connection()
    connection.close_at = None  # these threads read ten times a second; what died is noticed and replaced
    return function(*arguments)


hub = Hub()
