"""`/ws/jobs/<id>/shell/?worker=`: a browser's terminal on one side, a shell in a worker on the other.

Frames: binary is what is typed and what is written. Text is JSON; from the browser {"size": [columns, rows]} and
{"drawn": bytes}, to it {"opened": worker}, {"taken": bytes}, {"closing": seconds} before it is idle for too long, and
{"ended": code, "why": words} as the last. Neither side has more than a window of bytes on its way, so a flood
waits where it begins: in the program, or under the fingers.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import orjson
from channels.db import database_sync_to_async
from django.conf import settings
from django.db import Error as DatabaseError

from jobs.cluster.port import Terminal
from jobs.cluster.registry import connect
from jobs.exceptions import ClusterError, ClusterForbids
from jobs.shell import rights, seats
from jobs.shell.rights import Asked, Place

WINDOW = 256 * 2**10  # bytes that the browser may have to draw still
TYPED = 128 * 2**10  # bytes that the program may have to read still; the page keeps to half of it
LONGEST_FRAME = 64 * 2**10
RIGHTS = 10.0
UNSURE = 60.0  # seconds that it stays open while nobody can say whether it may
WARNING = 60.0  # seconds before it closes for being idle
WIDEST = 1000  # columns or rows
NORMAL, NOT_YOURS, SESSION_OVER = 1000, 4404, 4401
logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def database(function: Callable[..., Any], *arguments: Any, **more: Any) -> Awaitable[Any]:
    run: Callable[..., Awaitable[Any]] = database_sync_to_async(function, thread_sensitive=False)
    return run(*arguments, **more)


class Shells:
    """All of this process."""

    def __init__(self) -> None:
        self._open: set[Shell] = set()

    def add(self, one: Shell) -> None:
        self._open.add(one)

    def remove(self, one: Shell) -> None:
        self._open.discard(one)

    def ask_again(self) -> None:
        """A right has changed somewhere."""
        for one in self._open:
            one.doubt.set()


shells = Shells()


class Shell:
    """One terminal, from its opening to its end."""

    def __init__(self, asked: Asked, place: Place, session_key: str, receive: Receive, send: Send) -> None:
        self.doubt = asyncio.Event()
        self.seat = uuid.uuid4().hex
        self._asked = asked
        self._place = place
        self._session_key = session_key
        self._receive = receive
        self._send = send
        self._on_its_way = 0  # bytes that were sent and not drawn yet
        self._drawn = asyncio.Event()
        self._typed: deque[bytes] = deque()
        self._waiting = 0  # bytes of them
        self._something = asyncio.Event()
        self._alive_at = time.monotonic()

    async def run(self, terminal: Terminal) -> tuple[str, str]:
        """Until one of them ends it: the code of why, and words of the cluster."""
        works = [self._listen(terminal), self._type(terminal), self._show(terminal), self._ask(), self._idle()]
        tasks = [asyncio.create_task(work) for work in works]
        try:
            done, _others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return next(iter(done)).result()
        except OSError:  # the server's word for a browser that is gone
            return "left", ""
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, terminal: Terminal) -> tuple[str, str]:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return "left", ""
            data, text = message.get("bytes"), message.get("text")
            if len(data or text or "") > LONGEST_FRAME:
                return "too_much", ""
            if data:
                self._alive_at = time.monotonic()
                self._typed.append(data)
                self._waiting += len(data)
                self._something.set()
                if self._waiting > TYPED:
                    return "too_much", ""
            elif text and not await self._obey(text, terminal):
                return "bad_frame", ""

    async def _obey(self, text: str, terminal: Terminal) -> bool:
        try:
            asked = orjson.loads(text)
        except (orjson.JSONDecodeError, UnicodeEncodeError):
            return False
        match asked:
            case {"drawn": int(count)} if 0 <= count <= self._on_its_way:
                self._on_its_way -= count
                self._drawn.set()
            case {"size": [int(columns), int(rows)]} if 0 < columns <= WIDEST and 0 < rows <= WIDEST:
                await terminal.resize(columns, rows)
            case _:
                return False
        return True

    async def _type(self, terminal: Terminal) -> tuple[str, str]:
        while True:
            await self._something.wait()
            self._something.clear()
            while self._typed:
                data = self._typed.popleft()
                await terminal.write(data)
                self._waiting -= len(data)
                await say(self._send, taken=len(data))

    async def _show(self, terminal: Terminal) -> tuple[str, str]:
        while output := await terminal.read():
            self._alive_at = time.monotonic()
            self._on_its_way += len(output)
            await self._send({"type": "websocket.send", "bytes": output})
            while self._on_its_way > WINDOW:
                self._drawn.clear()
                await self._drawn.wait()
        return ("broke_off" if terminal.ended else "exited"), terminal.ended

    async def _ask(self) -> tuple[str, str]:
        sure_at = time.monotonic()
        while True:
            try:
                async with asyncio.timeout(RIGHTS):
                    await self.doubt.wait()
            except TimeoutError:
                await asyncio.to_thread(seats.keep, self._asked.user.pk, self.seat)
            self.doubt.clear()
            try:
                code = await database(rights.why_not_any_more, self._session_key, self._asked, self._place)
            except DatabaseError as error:
                logger.warning("Nobody can say whether a shell may stay open: %s", error)
                code = "unsure" if time.monotonic() - sure_at > UNSURE else ""
            else:
                sure_at = time.monotonic()
            if code:
                return code, ""

    async def _idle(self) -> tuple[str, str]:
        patience = settings.TRAINHALL_SHELL_IDLE * 60.0
        is_warned = False
        while (left := self._alive_at + patience - time.monotonic()) > 0:
            if left > WARNING:
                is_warned = False
                await asyncio.sleep(left - WARNING)
                continue
            if not is_warned:
                is_warned = True
                await say(self._send, closing=round(left))
            await asyncio.sleep(min(left, 1.0))
        return "idle", ""


async def shell(scope: Message, receive: Receive, send: Send) -> None:
    """Origin was checked before. Who may not, and who asks for what is not there, is refused before it is accepted."""
    message = await receive()
    session_key: str | None = getattr(scope.get("session"), "session_key", None)
    job_id = scope["url_route"]["kwargs"]["job_id"]
    asked = await database(rights.ask, session_key, job_id, _address(scope)) if session_key else None
    if message["type"] != "websocket.connect" or session_key is None or asked is None:
        await send({"type": "websocket.close", "code": NOT_YOURS})
        return
    await send({"type": "websocket.accept"})
    worker = parse_qs(scope["query_string"].decode("latin-1")).get("worker", [""])[0]
    try:
        code, why = await _serve(asked, worker, session_key, receive, send)
    except OSError:
        return  # the browser left before there was anything to say
    if code == "left":
        return
    try:
        async with asyncio.timeout(1):  # a browser that takes nothing is not waited for
            await say(send, ended=code, why=why)
            await send({"type": "websocket.close", "code": SESSION_OVER if code == "session_over" else NORMAL})
    except (TimeoutError, OSError):
        logger.info("A shell was closed (%s) whose browser did not take the reason", code)


async def _serve(asked: Asked, worker: str, session_key: str, receive: Receive, send: Send) -> tuple[str, str]:
    place: Place | None = await database(rights.place_of, asked, worker)
    if place is None:
        return "not_running", ""
    one = Shell(asked, place, session_key, receive, send)
    if not await asyncio.to_thread(seats.take, asked.user.pk, one.seat):
        await database(rights.write_down, asked, "refuse", worker=place.worker, why="too_many")
        return "too_many", str(seats.MOST)
    try:
        return await _open(one, asked, place, send)
    finally:
        await asyncio.shield(asyncio.to_thread(seats.leave, asked.user.pk, one.seat))


async def _open(one: Shell, asked: Asked, place: Place, send: Send) -> tuple[str, str]:
    try:
        terminal = await connect(place.cluster).shell(
            place.ref, place.worker, pod=place.pod, person=place.person, container=place.container
        )
    except ClusterError as error:
        code = "forbidden" if isinstance(error, ClusterForbids) else "refused"
        await database(rights.write_down, asked, "refuse", worker=place.worker, why=code)
        return code, str(error)
    began = time.monotonic()
    code = "failed"
    try:
        # first, so that there is no shell that nobody knows of
        await database(rights.write_down, asked, "open", worker=place.worker, pod=place.pod)
        shells.add(one)
        try:
            await say(send, opened=place.worker)
            code, why = await one.run(terminal)
        except OSError:
            code, why = "left", ""
        return code, why
    finally:
        shells.remove(one)
        seconds = round(time.monotonic() - began)
        await asyncio.shield(_close(terminal, asked, worker=place.worker, seconds=seconds, why=code))


async def _close(terminal: Terminal, asked: Asked, **facts: object) -> None:
    try:
        await database(rights.write_down, asked, "close", **facts)
    except DatabaseError as error:
        logger.error(
            "The end of a shell of %s in %s was not written down (%s): %s", asked.user, asked.job_id, facts, error
        )
    await terminal.close()


async def say(send: Send, **words: object) -> None:
    await send({"type": "websocket.send", "text": orjson.dumps(words).decode()})


def _address(scope: Message) -> str | None:
    """As accounts.audit has it of a request: what the connection says, no header."""
    try:
        return str(ipaddress.ip_address((scope.get("client") or ("",))[0]))
    except ValueError:
        return None
