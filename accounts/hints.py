"""The lowest end of the live channel: how any app tells every web process something, and how quickly it gives up.

All hints may be lost: the database has the truth, and everyone looks there again.
"""

from __future__ import annotations

import logging
import time
from functools import cache

import orjson
import redis
from django.conf import settings
from django.db import transaction

CHANNEL = "trainhall:live"
RIGHTS = "rights"  # the topic that makes web processes ask again who may see what
PATIENCE = 0.3  # seconds: a request that changed something must not hang because nobody can be told
QUIET_FOR = 2.0  # seconds after a failure in which no other hint is tried: many in one request would add up
logger = logging.getLogger(__name__)
_quiet_until = 0.0


@cache
def _valkey() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)


def is_quiet() -> bool:
    return time.monotonic() < _quiet_until


def be_quiet() -> None:
    global _quiet_until
    _quiet_until = time.monotonic() + QUIET_FOR


def send(*messages: bytes) -> None:
    """To every web process that listens, now."""
    if is_quiet() or not settings.REDIS_URL or not messages:
        return
    try:
        with _valkey().pipeline(transaction=False) as pipeline:
            for message in messages:
                pipeline.publish(CHANNEL, message)
            pipeline.execute()
    except redis.RedisError as error:
        be_quiet()
        logger.warning("Nobody could be told of %s: %s", messages[0][:60], error)


def rights_changed() -> None:
    """Somebody may see less or more once the transaction is committed: open sockets are asked again at once."""
    transaction.on_commit(lambda: send(orjson.dumps({"t": RIGHTS})), robust=True)
