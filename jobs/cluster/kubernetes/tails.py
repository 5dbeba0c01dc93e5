"""Following the logs of containers: one thread for all of them, each read only as fast as it is stored."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp

from jobs.cluster.kubernetes.client import Api, NotThere
from jobs.cluster.kubernetes.loglines import Entry, Lines, read_line
from jobs.cluster.kubernetes.workloads import core_path
from jobs.exceptions import ClusterRefuses, ClusterUnavailable

MOST_WAITING = 20_000  # lines of one container that are read and not stored yet; then its stream is not read any more
SILENCE = 120.0  # seconds without a line after which a stream is opened anew: it may be half open
REST_SILENCE = 5.0  # the same for the end of a log: nothing else of the cluster is looked at meanwhile
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 15.0
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Position:
    """The latest time of a line that was read, and how many lines have that very time."""

    time: float = 0.0
    same: int = 0

    def passes(self, entry: Entry, skipped: dict[float, int]) -> bool:
        """Whether a line that a resumed stream repeats is new; `skipped` counts those of the last known moment."""
        at = entry[0]
        if at < self.time:
            return False
        if at == self.time and skipped.get(at, 0) < self.same:
            skipped[at] = skipped.get(at, 0) + 1
            return False
        return True

    def move(self, at: float) -> tuple[float, int]:
        """Two streams of a container may be stamped a little out of order; what is older than the latest moves nothing."""
        if at > self.time:
            self.time, self.same = at, 1
        elif at == self.time:
            self.same += 1
        return self.time, self.same

    @property
    def since(self) -> str:
        """For the kubelet, which knows whole seconds: the one in which it lies."""
        return datetime.fromtimestamp(int(self.time), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class Tail:
    """One container's lines, on their way."""

    namespace: str
    pod: str
    container: str
    read: Position
    restarts: int = 0  # of the container before this one: each has a log of its own
    waiting: deque[tuple[Entry, tuple[float, int]]] = field(default_factory=deque)  # each with the position behind it
    failed: int = 0  # times in a row that its end could not be read
    not_before: float = 0.0  # monotonic: when to try that again
    ended: bool = False  # the server said all it had to say at some moment; a container that ended says no more
    task: asyncio.Task[None] | None = None

    def path(self) -> str:
        return f"{core_path(self.namespace, 'pods', self.pod)}/log"

    def query(self, *, follow: bool) -> dict[str, str]:
        query = {"container": self.container, "timestamps": "true"}
        if follow:
            query["follow"] = "true"
        if self.read.time:
            query["sinceTime"] = self.read.since
        return query


class Tails:
    """All that are followed at this moment, by pod UID and container. While the server `is_away` none asks it anything."""

    def __init__(self, api: Api, *, is_away: Callable[[], bool] = lambda: False) -> None:
        self._api, self._is_away = api, is_away
        self._tails: dict[tuple[str, str], Tail] = {}
        self._loop = asyncio.new_event_loop()
        self._session: aiohttp.ClientSession | None = None
        threading.Thread(target=self._loop.run_forever, name="tails", daemon=True).start()

    def get(self, pod_uid: str, container: str) -> Tail | None:
        return self._tails.get((pod_uid, container))

    def begin(self, pod_uid: str, tail: Tail) -> None:
        if (old := self._tails.get((pod_uid, tail.container))) is not None:
            self._end(old)
        self._tails[pod_uid, tail.container] = tail
        asyncio.run_coroutine_threadsafe(self._begin(tail), self._loop)

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """Let go of every other pod: the mirror has forgotten it, and nobody asks for its log any more."""
        for pod_uid in {pod_uid for pod_uid, _container in self._tails} - set(pod_uids):
            self.drop(pod_uid)

    def drop(self, pod_uid: str) -> None:
        for key in [key for key in self._tails if key[0] == pod_uid]:
            self._end(self._tails.pop(key))

    def stop(self) -> None:
        """Every stream ends; what waits was not stored and is read again by whoever follows next."""
        for pod_uid, _container in list(self._tails):
            self.drop(pod_uid)

        async def close() -> None:
            if self._session is not None:
                await self._session.close()
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(close(), self._loop)

    def finish(self, tail: Tail) -> None:
        """The container has ended: read what is left, here and now. Raise ClusterUnavailable, also soon after it failed."""
        if time.monotonic() < tail.not_before or self._is_away():
            raise ClusterUnavailable(f"The end of the log of {tail.pod} {tail.container} could not be read yet.")
        self._end(tail)
        skipped: dict[float, int] = {}
        before = Position(tail.read.time, tail.read.same)
        try:
            lines = Lines()
            for chunk in self._api.chunks(tail.path(), tail.query(follow=False), read=REST_SILENCE):
                _take(tail, lines.feed(chunk), before, skipped)
            _take(tail, lines.finish(), before, skipped)
        except NotThere:  # the pod is gone, and its log with it
            logger.debug("no log of %s %s any more", tail.pod, tail.container)
        except (ClusterUnavailable, ClusterRefuses) as error:
            tail.not_before = time.monotonic() + min(FIRST_PAUSE * 2**tail.failed, LONGEST_PAUSE)
            tail.failed += 1
            raise ClusterUnavailable(str(error)) from error
        tail.ended = True

    def _end(self, tail: Tail) -> None:
        """Returns when nothing more is added to it."""

        async def end() -> None:
            if tail.task is not None:
                tail.task.cancel()
                await asyncio.wait([tail.task])

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(timeout=30)

    # In the loop's thread

    async def _begin(self, tail: Tail) -> None:
        if self._session is None:
            self._session = _session(self._api)
        tail.task = asyncio.create_task(self._follow(tail, self._session))

    async def _follow(self, tail: Tail, session: aiohttp.ClientSession) -> None:
        pause = FIRST_PAUSE
        while True:
            while self._is_away():  # hundreds that knock each for itself would be a flood
                await asyncio.sleep(1.0)
            began = time.monotonic()
            try:
                await self._read(tail, session)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                logger.info("the log of %s %s broke off: %s", tail.pod, tail.container, error)
            if time.monotonic() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _read(self, tail: Tail, session: aiohttp.ClientSession) -> None:
        """Until the server ends the stream; again from the last line that was read."""
        before, skipped = Position(tail.read.time, tail.read.same), {}  # type: tuple[Position, dict[float, int]]
        url = f"{self._api.host}{tail.path()}"
        async with session.get(url, params=tail.query(follow=True), headers=self._api.headers()) as answer:
            if answer.status != 200:
                return  # it has not begun, or is gone: the caller asks again, ever less often
            lines = Lines()
            async for chunk in answer.content.iter_any():
                _take(tail, lines.feed(chunk), before, skipped)
                while len(tail.waiting) > MOST_WAITING:
                    await asyncio.sleep(0.05)  # the server's own buffer fills, and the container's log lies on its disk


def _take(tail: Tail, lines: Iterable[tuple[bytes, int]], before: Position, skipped: dict[float, int]) -> None:
    for line, left_out in lines:
        for entry in read_line(line, left_out=left_out):
            if before.passes(entry, skipped):
                tail.waiting.append((entry, tail.read.move(entry[0])))


def _session(api: Api) -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=SILENCE)
    connector = aiohttp.TCPConnector(limit=0, ssl=api.tls())
    return aiohttp.ClientSession(timeout=timeout, connector=connector, trust_env=False)
