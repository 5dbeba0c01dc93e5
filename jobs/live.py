"""Hints to whoever watches or waits. All may be lost: the database has the truth, and everyone looks there again."""

from __future__ import annotations

import logging
from functools import cache

import orjson
import redis
from celery import current_app
from django.conf import settings
from django.db import transaction

from jobs import faults

CHANNEL = "trainhall:live"
logger = logging.getLogger(__name__)


@cache
def _valkey() -> redis.Redis:
    # short time-outs: a request that changed something must not hang because nobody can be told
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)


def publish(topic: str, seq: int | None, *, namespace_id: int | None = None) -> None:
    """Say "topic is at seq" to every web process, once the transaction is committed."""
    message = orjson.dumps({"t": topic, "n": seq, "ns": namespace_id})
    transaction.on_commit(lambda: _send(message), robust=True)


def _send(message: bytes) -> None:
    faults.point("push.before_send")
    try:
        _valkey().publish(CHANNEL, message)
    except redis.RedisError as error:
        logger.warning("Nobody could be told of %s: %s", message[:60], error)


def wake(task: str) -> None:
    """Wake a worker after the commit, by the task's name, so that nothing below imports the tasks."""
    transaction.on_commit(lambda: _wake(task), robust=True)


def _wake(task: str) -> None:
    faults.point("wake.before_publish")
    try:
        current_app.send_task(task, ignore_result=True, retry=False)
    except Exception as error:
        logger.warning("%s could not be woken, the next scan does it: %s", task, error)
