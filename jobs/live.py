"""Hints to whoever watches or waits. All may be lost: the database has the truth, and everyone looks there again."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson
from celery import current_app
from django.db import transaction
from kombu import pools

from accounts import hints
from accounts.hints import CHANNEL as CHANNEL
from accounts.hints import PATIENCE
from jobs import faults

logger = logging.getLogger(__name__)


@cache
def _producers(_pid: int) -> Any:
    """Celery's own way to the broker, but for its patience, which is a worker's; a forked process opens its own."""
    impatient = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}
    options = {**current_app.conf.broker_transport_options, **impatient}
    connection = current_app.connection(current_app.conf.broker_write_url, transport_options=options)
    return pools.producers[connection]


def publish(topic: str, seq: int | None, *, namespace_id: int | None = None) -> None:
    """Say "topic is at seq" to every web process, once the transaction is committed."""
    publish_all([(topic, seq, namespace_id)])


def publish_all(news: Iterable[tuple[str, int | None, int | None]]) -> None:
    """The same of many topics, each with its namespace's id: together they take one way there and back."""
    messages = [orjson.dumps({"t": topic, "n": seq, "ns": namespace_id}) for topic, seq, namespace_id in news]
    transaction.on_commit(lambda: _send(messages), robust=True)


def _send(messages: list[bytes]) -> None:
    faults.point("push.before_send")
    hints.send(*messages)


def wake(task: str) -> None:
    """Wake a worker after the commit, by the task's name, so that nothing below imports the tasks."""
    transaction.on_commit(lambda: _wake(task), robust=True)


def _wake(task: str) -> None:
    faults.point("wake.before_publish")
    if hints.is_quiet():
        return
    try:
        with _producers(os.getpid()).acquire(block=True, timeout=PATIENCE) as producer:
            current_app.send_task(task, ignore_result=True, retry=False, producer=producer)
    except Exception as error:
        hints.be_quiet()
        logger.warning("%s could not be woken, the next scan does it: %s", task, error)
