"""At most so many shells of one person at a time, over all web processes (F29).

Counted in Valkey, where a process that was killed leaves nothing behind for long; and here as well, which is what is left
while Valkey is away.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from functools import cache

import redis
from django.conf import settings

MOST = 4
FORGOTTEN = 35.0  # seconds after which a shell that was not heard of is gone; each says that it is there every 10 s
PATIENCE = 0.3
logger = logging.getLogger(__name__)
_here: Counter[int] = Counter()
_lock = threading.Lock()


@cache
def _valkey() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)


def take(user_id: int, shell: str) -> bool:
    """Whether there was one left for this person."""
    with _lock:
        if _here[user_id] >= MOST:
            return False
        _here[user_id] += 1
    if _count(user_id, shell) > MOST:
        leave(user_id, shell)
        return False
    return True


def keep(user_id: int, shell: str) -> None:
    _count(user_id, shell)


def leave(user_id: int, shell: str) -> None:
    with _lock:
        _here[user_id] -= 1
    try:
        _valkey().zrem(_key(user_id), shell)
    except redis.RedisError as error:  # it is forgotten soon
        logger.warning("The end of a shell could not be told: %s", error)


def _count(user_id: int, shell: str) -> int:
    """All that were heard of lately, with this one."""
    key, now = _key(user_id), time.time()
    try:
        pipeline = _valkey().pipeline(transaction=True)
        pipeline.zremrangebyscore(key, "-inf", now - FORGOTTEN)
        pipeline.zadd(key, {shell: now})
        pipeline.zcard(key)
        pipeline.expire(key, int(FORGOTTEN) + 1)
        return int(pipeline.execute()[2])
    except redis.RedisError as error:
        logger.warning("Shells are counted in this process only: %s", error)
        return 0


def _key(user_id: int) -> str:
    return f"trainhall:shells:{user_id}"
