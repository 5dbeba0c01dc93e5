"""Tells every web process that points have arrived, and learns from Valkey which jobs somebody is watching.

Answers never wait for it: what is to be said is kept by job (the newest number is all that matters) and one task says it.
While Valkey is away nothing is said; the readers' safety poll finds the points.
"""

from __future__ import annotations

import asyncio
import logging
import time

import orjson
import redis.asyncio
from django.conf import settings
from redis.exceptions import RedisError

from jobs.live import CHANNEL

WATCHED = "trainhall:watched:"  # + job id: somebody has this job's points on screen; the live hub keeps it alive
WATCHED_SECONDS = 15
LOOK_EVERY = 1.0  # seconds between two looks whether a job is watched
QUICK, CALM = 200, 2000  # milliseconds until a sender should send again: watched, not watched
REMEMBERED = 10_000  # jobs
logger = logging.getLogger(__name__)


class Announcer:
    def __init__(self) -> None:
        self._waiting: dict[str, tuple[int, int]] = {}
        self._watched: dict[str, tuple[bool, float]] = {}
        self._something = asyncio.Event()
        self._valkey = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2)
        self._task = asyncio.create_task(self._run(), name="announcer")

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._valkey.aclose()

    def points(self, job_id: str, seq: int, *, namespace_id: int) -> None:
        """Say soon that the points of a job are at `seq`."""
        before = self._waiting.get(job_id)
        if before is None or before[0] < seq:
            self._waiting[job_id] = (seq, namespace_id)
        self._something.set()

    def interval_ms(self, job_id: str) -> int:
        """When the sender should send next. Somebody may be watching until we know better."""
        watched, _at = self._watched.get(job_id, (True, 0.0))
        return QUICK if watched else CALM

    async def _run(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            said, self._waiting = self._waiting, {}
            try:
                await self._say(said)
            except (RedisError, OSError) as error:
                logger.warning("Nobody could be told of new points of %d jobs: %s", len(said), error)
                self._watched.clear()
                await asyncio.sleep(0.2)

    async def _say(self, said: dict[str, tuple[int, int]]) -> None:
        now = time.monotonic()
        ask = [job_id for job_id in said if now - self._watched.get(job_id, (False, -LOOK_EVERY))[1] >= LOOK_EVERY]
        pipeline = self._valkey.pipeline(transaction=False)
        for job_id in ask:
            pipeline.exists(WATCHED + job_id)
        for job_id, (seq, namespace_id) in said.items():
            pipeline.publish(CHANNEL, orjson.dumps({"t": f"points/{job_id}", "n": seq, "ns": namespace_id}))
        answers = await pipeline.execute()
        if len(self._watched) > REMEMBERED:
            self._watched.clear()
        for job_id, exists in zip(ask, answers, strict=False):
            self._watched[job_id] = (bool(exists), now)
