"""Hints and wake-ups: all may be lost, none may hold up whoever sends them."""

from __future__ import annotations

import logging
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import current_app
from django.db import transaction

from accounts import hints
from jobs import live
from tests.chaos.hall import SMALL, Hall
from tests.chaos.test_broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def broker(settings: Any) -> Iterator[Broker]:
    with tempfile.TemporaryDirectory(prefix="trainhall-broker-") as folder:
        own = Broker(Path(folder))
        settings.REDIS_URL = own.url
        before = current_app.conf.broker_url
        current_app.conf.broker_url = current_app.conf.broker_write_url = own.url.replace(
            "unix://", "redis+socket://", 1
        )
        _forget()
        yield own
        own.signal(signal.SIGKILL)
        current_app.conf.broker_url = current_app.conf.broker_write_url = before
        _forget()


def _forget() -> None:
    hints._valkey.cache_clear()
    live._producers.cache_clear()
    hints._quiet_until = 0.0


def tell() -> float:
    """What a submission tells, after its commit; for how many seconds that held it up."""
    began = time.monotonic()
    with transaction.atomic():
        live.publish("job/7f3k2p9m4x", 2, namespace_id=1)
        live.wake("jobs.tasks.dispatch_waiting")
    return time.monotonic() - began


def waiting(broker: Broker) -> int:
    with redis.Redis.from_url(broker.url) as client:
        return int(client.llen("celery"))


def test_a_wake_up_reaches_the_queue(broker: Broker) -> None:
    tell()
    assert waiting(broker) == 1


def test_a_frozen_broker_holds_nobody_up_and_is_used_again_later(broker: Broker, caplog: Any) -> None:
    """R11: the scan is the guarantee, so a request is not to wait for a broker that does not answer."""
    tell()
    broker.signal(signal.SIGSTOP)
    with caplog.at_level(logging.WARNING):
        assert tell() < 1.0
        assert tell() < 0.1, "nor is it tried again at once"
    assert "Nobody could be told" in caplog.text
    broker.signal(signal.SIGCONT)
    hints._quiet_until = 0.0
    before = waiting(broker)
    tell()
    assert waiting(broker) == before + 1


def test_a_dead_broker_holds_nobody_up(broker: Broker) -> None:
    broker.signal(signal.SIGKILL)
    assert tell() < 1.0
    hints._quiet_until = 0.0
    assert tell() < 1.0


def submit(hall: Hall, key: str, jobs: list[str]) -> float:
    """How many seconds the answer took."""
    began = time.monotonic()
    status, answer = hall.call("POST", "jobs/", {**SMALL, "command": "true"}, key=key)
    assert status == 201
    jobs.append(answer["id"])
    return time.monotonic() - began


def test_a_submission_is_answered_within_a_second_and_still_runs(folder: Path, broker: Broker) -> None:
    hall = Hall(folder / "data", extra={"REDIS_URL": broker.url})
    try:
        hall.start()
        jobs, usual = [], []
        for number in range(3):
            usual.append(submit(hall, f"usual-{number}", jobs))
        broker.signal(signal.SIGSTOP)
        frozen = [submit(hall, f"frozen-{number}", jobs) for number in range(3)]
        broker.signal(signal.SIGCONT)
        print(f"answers after {max(usual):.2f} s at most, with a frozen broker after {max(frozen):.2f} s")
        assert max(frozen) < max(usual) + 0.8
        hall.assert_all_true(jobs, seconds=60)
    finally:
        hall.kill_all()
