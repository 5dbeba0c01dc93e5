"""The feed of every list of jobs that somebody has on screen: a changed job is read once, whoever sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from metrics import snapshot
from metrics.feeds import Database, Feed, Follower, Subscription, frame, spliced
from metrics.topics import Topic


class ListsFeed(Feed):
    """Every list of jobs that somebody has on screen. A changed job is read and encoded once, whoever sees it."""

    def __init__(self, database: Database) -> None:
        super().__init__("jobs", database)
        self._changed: dict[str, None] = {}
        self._lists: dict[tuple[str, frozenset[int] | None], _List] = {}

    def hint_job(self, job_id: str) -> None:
        if self.subscriptions or self.joining:
            self._changed[job_id] = None
            self.hint()

    async def join(self, subscription: Subscription, since: int | None) -> None:
        await self._join_list(subscription)

    async def _join_list(self, subscription: Subscription) -> None:
        topic, namespaces = subscription.topic, subscription.follower.namespaces
        rows = await self.database(snapshot.job_rows, topic.filter, namespaces)
        one = self._lists.setdefault((topic.name, namespaces), _List(topic, namespaces))
        one.followers.add(subscription)
        one.shows({row["id"]: row["version"] for row in rows})
        subscription.follower.offer(frame(topic.name, "snapshot", {"jobs": rows}))

    def remove(self, subscription: Subscription) -> None:
        super().remove(subscription)
        for key, one in list(self._lists.items()):
            one.followers.discard(subscription)
            if not one.followers:
                del self._lists[key]

    async def rights_changed(self, follower: Follower) -> None:
        """The namespaces of a follower are others now: their lists are read again."""
        async with self.lock:
            for subscription in [one for one in self.subscriptions if one.follower is follower]:
                for one in self._lists.values():
                    one.followers.discard(subscription)
                await self._join_list(subscription)
            self._lists = {key: one for key, one in self._lists.items() if one.followers}

    async def flush(self) -> None:
        job_ids = list(self._changed)
        self._changed.clear()
        if not job_ids:
            return
        try:
            rows = await self.database(snapshot.changed_rows, job_ids)
            encoded = [(namespace_id, row, orjson.dumps({"job": row}, default=str)) for namespace_id, row in rows]
            matching: dict[Any, set[str]] = {}
            for one in list(self._lists.values()):
                if one.topic.filter not in matching:
                    matching[one.topic.filter] = await self.database(snapshot.matching_ids, one.topic.filter, job_ids)
                one.tell(encoded, matching[one.topic.filter])
        except Exception:
            self._changed |= dict.fromkeys(job_ids)
            raise

    async def check(self) -> None:
        """Lists whose first page is not what was told: a hint got lost, they are read again."""
        async with self.lock:
            for one in list(self._lists.values()):
                now = await self.database(snapshot.job_versions, one.topic.filter, one.namespaces)
                if any(one.known.get(job_id) != version for job_id, version in now.items()):
                    rows = await self.database(snapshot.job_rows, one.topic.filter, one.namespaces)
                    one.shows({row["id"]: row["version"] for row in rows})
                    one.offer(frame(one.topic.name, "snapshot", {"jobs": rows}))


class _List:
    """One list, as one set of people sees it."""

    REMEMBERED = 5000  # jobs

    def __init__(self, topic: Topic, namespaces: frozenset[int] | None) -> None:
        self.topic = topic
        self.namespaces = namespaces
        self.followers: set[Subscription] = set()
        self.known: dict[str, int] = {}  # jobs that may be on a screen, with the version told last

    def shows(self, jobs: dict[str, int]) -> None:
        self.known |= jobs
        while len(self.known) > self.REMEMBERED:
            del self.known[next(iter(self.known))]

    def offer(self, text: str) -> None:
        for subscription in self.followers:
            subscription.follower.offer(text)

    def tell(self, changed: Iterable[tuple[int, dict[str, Any], bytes]], matching: set[str]) -> None:
        for namespace_id, row, encoded in changed:
            if self.namespaces is not None and namespace_id not in self.namespaces:
                continue
            if row["id"] in matching:
                self.shows({row["id"]: row["version"]})
                self.offer(spliced(self.topic.name, "change", None, encoded))
            elif self.known.pop(row["id"], None) is not None:
                self.offer(frame(self.topic.name, "gone", {"id": row["id"]}))
