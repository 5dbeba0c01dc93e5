"""Several watchers at once: one acts, and when it ends, hangs or loses its connection another one does (KUBERNETES 4.2)."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from jobs.models import Cluster
from jobs.turns import LOCKS
from tests.portal.running import until
from tests.portal.watchers import Watcher, holders, watchers

TAKEN_OVER = 15  # seconds
START = 60  # seconds for a process to come up on a busy machine

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def seen_within(seconds: float) -> None:
    """The cluster is looked at, from now on."""
    now = timezone.now()
    until(lambda: Cluster.objects.filter(name="local", seen_at__gt=now).exists(), seconds=seconds, what="a look at it")


def two(data: Path) -> tuple[Watcher, Watcher]:
    """The first of them acts, the second stands by."""
    first = Watcher(data, "first")
    until(lambda: first.acts, seconds=START, what="the first watches")
    second = Watcher(data, "second")
    until(lambda: second.says("is watched elsewhere"), seconds=START, what="the second stands by")
    return first, second


def test_one_acts_and_the_other_takes_over_when_it_is_killed(data: Path) -> None:
    with watchers(*two(data)) as (first, second):
        assert first.acts and len(holders()) == 1
        seen_within(15)
        first.kill()
        until(lambda: second.acts, seconds=TAKEN_OVER, what="the second takes over")
        assert len(holders()) == 1
        seen_within(15)


def test_one_that_hangs_loses_its_turn_and_knows_it_when_it_wakes(data: Path) -> None:
    with watchers(*two(data)) as (first, second):
        first.freeze()
        until(lambda: second.acts, seconds=TAKEN_OVER, what="the second takes over")
        first.thaw()
        until(lambda: not first.acts, seconds=5, what="the first has noticed")
        assert second.acts and len(holders()) == 1


def test_the_turn_of_one_whose_connection_is_cut_goes_to_whoever_asks_first(data: Path) -> None:
    with watchers(*two(data)) as both:
        [holder] = holders()
        cut(holder)
        until(lambda: holders() not in ([], [holder]), seconds=TAKEN_OVER, what="somebody has the turn")
        until(lambda: sum(one.acts for one in both) == 1, seconds=5, what="one acts")
        seen_within(15)


def test_who_has_lost_the_turn_stops_acting_and_waits_for_it(data: Path) -> None:
    first = Watcher(data, "first")
    with watchers(first):
        until(lambda: first.acts, seconds=START, what="it watches")
        with connection.cursor() as cursor:
            # the turn cannot come back: this test has it the moment the other has not
            cut(holders()[0])
            cursor.execute("SELECT pg_advisory_lock(%s, hashtext('local'))", [LOCKS])
            until(lambda: not first.acts, seconds=5, what="it has noticed")
            before = timezone.now() + timedelta(seconds=1)
            time.sleep(12)
            assert first.process.poll() is None
            assert not Cluster.objects.filter(name="local", seen_at__gt=before).exists(), "it goes on looking"
            cursor.execute("SELECT pg_advisory_unlock(%s, hashtext('local'))", [LOCKS])
        until(lambda: first.acts, seconds=TAKEN_OVER, what="it watches again")
        seen_within(15)


def cut(session: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [session])
