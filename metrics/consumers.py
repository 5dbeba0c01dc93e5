"""The socket of a page (DESIGN 11.12): reads what it wants to follow, writes what the hub offers, and drops who is too slow.

A plain ASGI application rather than a Channels consumer: ending a connection whose peer does not read must not wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

from metrics import rights
from metrics.feeds import Subscription, frame
from metrics.live import SESSION_OVER, Hub, hub
from metrics.rights import Rights

MAX_FRAME = 64 * 2**10  # bytes of a client's frame
MAX_QUEUED = 2 * 2**20  # characters waiting for a client
MAX_BLOCKED = 30.0  # seconds that one frame may take to be taken
GONE, TOO_BIG, FAILED, TOO_SLOW = 1000, 1009, 1011, 4408
logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class LiveSocket:
    """One connection. The hub offers frames without waiting; a task of its own sends them."""

    def __init__(self, session_key: str, found: Rights, send: Send) -> None:
        self.session_key = session_key
        self.rights = found
        self.subscriptions: dict[str, Subscription] = {}
        self.ended: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        self._send = send
        self._queue: deque[str] = deque()
        self._queued = 0
        self._something = asyncio.Event()
        self._sending_since: float | None = None

    @property
    def namespaces(self) -> frozenset[int] | None:
        return self.rights.namespaces

    def offer(self, text: str) -> None:
        """Put a frame in the queue. Who has two megabytes waiting already is too slow and is dropped: they come again."""
        if self._queued > MAX_QUEUED:
            self.end(TOO_SLOW, "too_slow")
            return
        self._queue.append(text)
        self._queued += len(text)
        self._something.set()

    def end(self, code: int, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result((code, reason))

    def task_ended(self, task: asyncio.Task[None]) -> None:
        """The peer left, or reading or writing failed."""
        error = None if task.cancelled() else task.exception()
        if error is None or isinstance(error, OSError):  # OSError: the server's word for a peer that is gone
            self.end(GONE, "gone")
            return
        logger.error("A socket failed", exc_info=error)
        self.end(FAILED, "failed")

    def check_pace(self) -> None:
        if self._sending_since is not None and time.monotonic() - self._sending_since > MAX_BLOCKED:
            self.end(TOO_SLOW, "too_slow")

    async def write(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            while self._queue:
                text = self._queue.popleft()
                self._sending_since = time.monotonic()
                await self._send({"type": "websocket.send", "text": text})
                self._sending_since = None
                self._queued -= len(text)

    async def read(self, receive: Receive, through: Hub) -> None:
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            content = message.get("text") or message.get("bytes") or ""
            if len(content) > MAX_FRAME:
                self._complain("too_big", "A frame has at most 64 KiB.")
                self.end(TOO_BIG, "too_big")
                return
            await self._obey(content, through)

    async def _obey(self, content: str | bytes, through: Hub) -> None:
        try:
            asked = orjson.loads(content)
        except (orjson.JSONDecodeError, UnicodeEncodeError):
            self._complain("bad_json", "A frame is JSON.")
            return
        wanted, unwanted = _wishes(asked)
        if wanted is None or unwanted is None:
            self._complain("bad_frame", 'A frame is {"subscribe": {topic: seq or null}, "unsubscribe": [topic]}.')
            return
        for name in unwanted:
            through.unsubscribe(self, name)
        await through.subscribe(self, wanted)

    def _complain(self, code: str, message: str) -> None:
        self.offer(frame("", "error", {"code": code, "message": message}))


def _wishes(asked: Any) -> tuple[dict[str, int | None] | None, list[str] | None]:
    """What a frame subscribes to and what it ends; None in the place of what cannot be read."""
    if not isinstance(asked, dict) or not asked.keys() & {"subscribe", "unsubscribe"}:
        return None, None
    wanted, unwanted = asked.get("subscribe", {}), asked.get("unsubscribe", [])
    if not isinstance(wanted, dict) or not all(since is None or _is_seq(since) for since in wanted.values()):
        wanted = None
    if not isinstance(unwanted, list) or not all(isinstance(name, str) for name in unwanted):
        unwanted = None
    return wanted, unwanted


def _is_seq(since: Any) -> bool:
    return type(since) is int and 0 <= since < 2**63


async def live(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """`/ws/`: one socket a page. Origin was checked before; without a session it is refused before it is accepted."""
    await hub.open()
    message = await receive()
    session_key: str | None = getattr(scope.get("session"), "session_key", None)
    found = await hub.database(rights.of_session, session_key) if session_key else None
    if message["type"] != "websocket.connect" or session_key is None or found is None:
        await send({"type": "websocket.close", "code": SESSION_OVER, "reason": "session_over"})
        return
    await send({"type": "websocket.accept"})
    socket = LiveSocket(session_key, found, send)
    hub.attach(socket)
    tasks = [asyncio.create_task(socket.read(receive, hub)), asyncio.create_task(socket.write())]
    for task in tasks:
        task.add_done_callback(socket.task_ended)
    try:
        code, reason = await socket.ended
    finally:
        hub.detach(socket)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if code != GONE:
        await _close(send, code, reason)


async def _close(send: Send, code: int, reason: str) -> None:
    """Say why, to a peer that listens; one that takes nothing is not waited for."""
    try:
        async with asyncio.timeout(1):
            await send({"type": "websocket.close", "code": code, "reason": reason})
    except (TimeoutError, OSError):
        logger.info("A socket was closed (%s) whose peer did not take the reason", reason)
