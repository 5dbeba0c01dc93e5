"""Health: each part by name, what people lose, and a page that is drawn while the database is away."""

from __future__ import annotations

import time
from typing import Any

import pytest
import redis
from django.test import AsyncClient, Client
from django.utils import timezone

from jobs.models import Cluster
from portal import health, wheel
from portal.celery import BEAT_KEY

AWAY = "postgresql://trainhall@127.0.0.1:9/none"


def part(tiles: list[health.Tile], name: str) -> health.Tile:
    return next(tile for tile in tiles if tile.name == name)


@pytest.fixture
def own_database(settings: Any, transactional_db: None) -> None:
    """Health asks by the address of the settings, which in tests names the database that the test's was made beside."""
    name = settings.DATABASES["default"]["NAME"]
    settings.DATABASE_URL = settings.DATABASE_URL.replace("/trainhall?", f"/{name}?")


@pytest.fixture
def beaten(settings: Any) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.set(BEAT_KEY, time.time())


@pytest.mark.django_db
class TestReadyz:
    def test_it_names_every_part(self, client: Client, own_database: None, beaten: None) -> None:
        answer = client.get("/readyz")
        assert answer.status_code == 503  # no worker and no watcher run in this test
        parts = answer.json()["parts"]
        assert {name: found["ok"] for name, found in parts.items()} == {
            "postgres": True,
            "valkey": True,
            "worker": False,
            "beat": True,
            "watcher": True,  # there is no cluster to watch here
        }

    def test_a_probe_leaves_no_error_line(self, client: Client, caplog: pytest.LogCaptureFixture) -> None:
        client.get("/readyz")
        assert "django.request" not in {record.name for record in caplog.records}

    def test_healthz_asks_nobody(self, client: Client, django_assert_num_queries: Any) -> None:
        with django_assert_num_queries(0):
            assert client.get("/healthz").status_code == 200


class TestParts:
    def test_a_silent_database(self, settings: Any) -> None:
        settings.DATABASE_URL = AWAY
        began = time.monotonic()
        tiles = health.look()
        assert time.monotonic() - began < 8
        assert not part(tiles, "postgres").ok
        assert "running jobs go on" in part(tiles, "postgres").loses

    def test_a_silent_broker(self, settings: Any) -> None:
        settings.REDIS_URL = "redis://127.0.0.1:9/0"
        tiles = health.look()
        assert not part(tiles, "valkey").ok
        assert not part(tiles, "beat").ok

    def test_a_beat_that_stopped(self, settings: Any) -> None:
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            client.set(BEAT_KEY, time.time() - 40)
        beat = part(health.look(), "beat")
        assert not beat.ok
        assert "40" in beat.text or "41" in beat.text


class TestWatcherTile:
    @pytest.mark.parametrize(("age", "well"), [(2, True), (40, False)])
    def test_it_is_red_when_a_cluster_was_not_seen_for_long(self, own_database: None, age: int, well: bool) -> None:
        Cluster.objects.create(name="local", kind="local", seen_at=timezone.now() - timezone.timedelta(seconds=age))
        assert part(health.look(), "watcher").ok is well


class TestStatusPage:
    def test_it_is_drawn_without_a_database(self, settings: Any, client: Client) -> None:
        """Without the mark for the database, every query of this test raises."""
        settings.DATABASE_URL = AWAY
        client.cookies[settings.SESSION_COOKIE_NAME] = "of somebody who signed in before"
        answer = client.get("/status/")
        assert answer.status_code == 200
        page = answer.content.decode()
        assert "Nothing can be read or submitted; running jobs go on." in page

    async def test_so_is_it_under_asgi(self, settings: Any, async_client: AsyncClient) -> None:
        settings.DATABASE_URL = AWAY
        assert (await async_client.get("/status/")).status_code == 200


@pytest.mark.django_db
class TestOthers:
    def test_prometheus_gets_numbers_without_names(self, client: Client, world: None) -> None:
        page = client.get("/metrics").content.decode()
        assert 'trainhall_jobs{status="queued"} 0.0' in page
        assert "alice" not in page
        assert "vision" not in page

    def test_the_wheel_is_listed_and_served(self, client: Client) -> None:
        assert wheel.wheel_name() in client.get("/sdk/").content.decode()
        assert client.get(f"/sdk/{wheel.wheel_name()}").content == wheel.wheel_bytes()
        assert client.get("/sdk/trainhall-9-py3-none-any.whl").status_code == 404
