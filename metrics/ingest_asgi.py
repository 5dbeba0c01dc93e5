"""The hot path of points: a bare ASGI application in front of Django (DESIGN 10 says why), one file.

It answers `POST /api/v1/jobs/<id>/ingest/` and lets everything else through. Every body gets a clear answer; a 5xx means that
the database is away.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import orjson
import psycopg
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, close_old_connections, connections
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from jobs.credentials import verify_attempt_token
from metrics import points
from metrics.announcer import Announcer
from metrics.batches import MAX_BYTES, Batch, IngestRefused, too_large
from metrics.doors.precedence import Precedence
from metrics.ingest import Outcome, Rows, is_one_statement, known_keys, storing
from metrics.sources import SDK

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PATH = re.compile(r"/api/v1/jobs/([0-9a-z]{1,32})/ingest/")
# for the access matrix and the OpenAPI schema: path, methods, rule
BARE_ROUTES = [
    (
        r"^/api/v1/jobs/(?P<id>[0-9a-z]{1,32})/ingest/$",
        ("POST",),
        "the token of an attempt of this job, until 15 minutes after the attempt ended",
    )
]

TOKEN_OUTLIVES = timedelta(minutes=15)
ATTEMPT_CACHED = 2.0  # seconds
BODY_SECONDS = 10.0  # a body must have arrived by then
BODY_PAUSE = 5.0  # and may not pause longer than this
INLINE_BYTES = 2**17  # larger bodies are decoded in a thread, so that others are answered meanwhile
HELD_BYTES = 96 * 2**20  # bodies in memory at one time, over all requests; beyond it senders are told to wait
CONNECTIONS = 8

logger = logging.getLogger(__name__)


class _SenderLeft(Exception):
    """The connection was closed before the body was complete: there is nobody to answer."""


@dataclass(slots=True)
class _Attempt:
    ended_at: datetime | None
    namespace_id: int


class IngestDoor:
    """Wraps the application behind it; opens its connections with the server's lifespan, or at the first request."""

    def __init__(self, application: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._application = application
        self._pool: AsyncConnectionPool | None = None
        self._announcer: Announcer | None = None
        self._attempts: dict[tuple[str, int], _Attempt | None] = {}
        self._attempts_at = 0.0
        self._held = 0
        self._opening = asyncio.Lock()
        self._precedence = Precedence()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (match := PATH.fullmatch(scope["path"])):
            await self._answer(match[1], scope, receive, send)
        else:
            await self._application(scope, receive, send)

    async def open(self) -> None:
        async with self._opening:
            if self._pool is None:
                pool = AsyncConnectionPool(
                    _conninfo(), min_size=1, max_size=CONNECTIONS, open=False, timeout=3, kwargs={"autocommit": True}
                )
                await pool.open()
                self._announcer = Announcer()
                self._pool = pool

    async def close(self) -> None:
        if self._pool is not None and self._announcer is not None:
            await self._announcer.close()
            await self._pool.close()
        self._pool = self._announcer = None

    async def _answer(self, job_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers: list[tuple[bytes, bytes]] = []
        try:
            status, answer = await self._handle(job_id, scope, receive)
        except _SenderLeft:
            return
        except IngestRefused as refused:
            status, answer = refused.http_status, _error(refused.code, refused.message)
            if status == 401:
                headers.append((b"www-authenticate", b"Bearer"))
            elif status == 405:
                headers.append((b"allow", b"POST"))
            elif status == 408:
                headers.append((b"connection", b"close"))
            elif status == 429:
                headers.append((b"retry-after", b"1"))
        except (psycopg.OperationalError, PoolTimeout, OperationalError, InterfaceError) as error:
            logger.warning("A batch of %s could not be stored: %s", job_id, error)
            status, answer = 503, _error("unavailable", "The database does not answer; send the batch again.")
            headers.append((b"retry-after", b"2"))
        body = orjson.dumps(answer)
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _handle(self, job_id: str, scope: Scope, receive: Receive) -> tuple[int, dict[str, Any]]:
        if scope["method"] != "POST":
            raise IngestRefused(405, "method_not_allowed", "Batches are sent with POST.")
        headers = dict(scope["headers"])
        number = _attempt_of_token(headers.get(b"authorization", b""), job_id)
        attempt = await self._attempt(job_id, number)
        if attempt is None:
            raise _bad_token()
        if attempt.ended_at is not None and attempt.ended_at + TOKEN_OUTLIVES < datetime.now(UTC):
            raise IngestRefused(403, "attempt_over", "The attempt ended more than 15 minutes ago.")
        batch = await self._batch(headers, receive)
        if batch.attempt is not None and batch.attempt != number:
            raise IngestRefused(401, "bad_token", f"This token is of attempt {number}, the batch of {batch.attempt}.")
        if batch.source != SDK and batch.series:
            await sync_to_async(self._settle)(job_id, number, batch)
        outcome = await self._store(job_id, number, batch)
        assert self._announcer is not None
        if outcome.seq is not None:
            self._announcer.points(job_id, outcome.seq, namespace_id=attempt.namespace_id)
        return 200, {
            "batch": str(batch.id),
            "accepted": outcome.accepted,
            "repeated": outcome.repeated,
            "refused": batch.refusals.listed,
            "refused_count": batch.refusals.count,
            "interval_ms": self._announcer.interval_ms(job_id),
        }

    async def _attempt(self, job_id: str, number: int) -> _Attempt | None:
        """What the database said of the attempt less than two seconds ago."""
        now = time.monotonic()
        if now - self._attempts_at >= ATTEMPT_CACHED:
            self._attempts.clear()
            self._attempts_at = now
        if (job_id, number) in self._attempts:
            return self._attempts[job_id, number]
        pool = await self._connections()
        async with pool.connection() as connection:
            cursor = await connection.execute(
                "SELECT attempt.ended_at, job.namespace_id FROM jobs_attempt AS attempt"
                " JOIN jobs_job AS job ON job.id = attempt.job_id WHERE job.id = %s AND attempt.number = %s",
                [job_id, number],
            )
            row = await cursor.fetchone()
        found = _Attempt(row[0], row[1]) if row else None
        self._attempts[job_id, number] = found
        return found

    async def _connections(self) -> AsyncConnectionPool:
        if self._pool is None:
            await self.open()
        assert self._pool is not None
        return self._pool

    async def _batch(self, headers: dict[bytes, bytes], receive: Receive) -> Batch:
        """Read and judge the body, with its bytes counted against what all requests may hold together."""
        pieces: list[bytes] = []
        size = 0
        try:
            inflater = _inflater(headers)
            deadline = time.monotonic() + BODY_SECONDS
            more = True
            while more:
                message = await _next(receive, deadline)
                piece = message.get("body", b"")
                more = message.get("more_body", False)
                piece = inflater.feed(piece) if inflater else piece
                size += len(piece)
                self._held += len(piece)
                if size > MAX_BYTES:
                    raise too_large(f"A batch has at most {MAX_BYTES // 2**20} MiB.")
                if self._held > HELD_BYTES:
                    raise IngestRefused(429, "busy", "Too many large batches at one time; send it again.")
                pieces.append(piece)
            if inflater:
                inflater.finish()
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if len(body) <= INLINE_BYTES:
                return points.read(body, now=time.time())
            return await asyncio.to_thread(points.read, body, now=time.time())
        finally:
            self._held -= size

    def _settle(self, job_id: str, attempt: int, batch: Batch) -> None:
        """A name that a door of more weight reports too: left out, or stored beside. The agent's batches only."""
        close_old_connections()  # no request of Django's does it for us
        settled = self._precedence.settle(job_id, attempt, batch.rank, batch.series, batch.source, most_waiting=0)
        batch.series = settled.series  # nothing waits here: a batch is stored when it is answered

    async def _store(self, job_id: str, attempt: int, batch: Batch) -> Outcome:
        pool = await self._connections()
        async with pool.connection() as connection:
            if is_one_statement(job_id, batch):
                outcome = await _run(connection, job_id, attempt, batch)
            else:
                async with connection.transaction():
                    outcome = await _run(connection, job_id, attempt, batch)
        if not outcome.repeated:
            known_keys.add(job_id, outcome.keys - known_keys.of(job_id, batch.source), batch.source)
        return outcome


async def _run(connection: psycopg.AsyncConnection, job_id: str, attempt: int, batch: Batch) -> Outcome:
    steps = storing(job_id, attempt, batch, now=time.time())
    rows: Rows = []
    try:
        query = next(steps)
        while True:
            cursor = await connection.execute(*query)
            rows = await cursor.fetchall() if cursor.description else []
            query = steps.send(rows)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "fields": {}}}


def _bad_token() -> IngestRefused:
    return IngestRefused(401, "bad_token", "This is not the token of an attempt of this job.")


def _attempt_of_token(authorization: bytes, job_id: str) -> int:
    scheme, _space, token = authorization.decode("latin-1").partition(" ")
    found = verify_attempt_token(token.strip()) if scheme.lower() == "bearer" else None
    if found is None or found[0] != job_id:
        raise _bad_token()
    return found[1]


def _inflater(headers: dict[bytes, bytes]) -> points.Inflater | None:
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length[:20]) > MAX_BYTES:
        raise too_large(f"A batch has at most {MAX_BYTES // 2**20} MiB.")
    match headers.get(b"content-encoding", b"identity").strip().lower():
        case b"identity" | b"":
            return None
        case b"gzip":
            return points.Inflater()
    raise IngestRefused(415, "bad_encoding", "Content-Encoding may be gzip or identity.")


async def _next(receive: Receive, deadline: float) -> MutableMapping[str, Any]:
    try:
        async with asyncio.timeout(min(BODY_PAUSE, max(deadline - time.monotonic(), 0.0))):
            message = await receive()
    except TimeoutError:
        raise IngestRefused(408, "too_slow", f"The body must arrive within {BODY_SECONDS:.0f} seconds.") from None
    if message["type"] == "http.disconnect":
        raise _SenderLeft
    return message


def _conninfo() -> str:
    """The database of the settings, as libpq says it; what belongs to Django alone is left out."""
    known = connections["default"].settings_dict
    options = {
        name: value
        for name, value in known.get("OPTIONS", {}).items()
        if name not in ("pool", "isolation_level", "server_side_binding", "assume_role")
    }
    return make_conninfo(
        **options,
        dbname=known["NAME"] or None,
        user=known["USER"] or None,
        password=known["PASSWORD"] or None,
        host=known["HOST"] or None,
        port=known["PORT"] or None,
    )
