"""Health: each part by name, what people lose, and a page that is drawn while the database is away."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import connection
from django.test import AsyncClient, Client
from django.utils import timezone

from accounts.models import DirectorySync
from jobs.cluster.kubernetes.setting import KubernetesSetting
from jobs.models import Cluster
from jobs.turns import LOCKS
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
            "cluster local": False,
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


class TestDirectory:
    """A tile of its own where one is connected; while it is away the portal goes on, and stays behind its balancer."""

    @pytest.fixture(autouse=True)
    def connected(self, settings: Any, own_database: None) -> None:
        settings.DIRECTORY = object()

    def tile(self) -> health.Tile:
        return part(health.look(), "directory")

    def a_pass(self, *, ago: float = 3, **told: Any) -> None:
        row = DirectorySync.objects.create(**told)
        DirectorySync.objects.filter(pk=row.pk).update(started_at=timezone.now() - timedelta(seconds=ago))

    def test_without_one_there_is_no_tile(self, settings: Any) -> None:
        settings.DIRECTORY = None
        assert "directory" not in {tile.name for tile in health.look()}

    def test_before_the_first_pass_nothing_is_wrong(self) -> None:
        assert self.tile().ok and "not read yet" in self.tile().text

    def test_the_last_pass_and_how_long_ago(self) -> None:
        self.a_pass(is_applied=True, people=200, ago=63)
        assert self.tile().ok
        assert re.fullmatch("Rights were brought in line with it 1 m [0-9]+ s ago.", self.tile().text)

    @pytest.mark.parametrize(
        ("problem", "said"),
        [
            (["away", {"words": "ldap://secret.example.org: no route"}], "It could not be asked "),
            (["people_lost", {"lost": 90, "before": 100}], "changed nothing, for too much would have gone"),
        ],
    )
    def test_what_went_wrong_is_said_without_what_only_admins_may_read(self, problem: Any, said: str) -> None:
        self.a_pass(is_applied=True, ago=60)
        self.a_pass(problems=[problem])
        tile = self.tile()
        assert not tile.ok and said in tile.text
        assert "secret.example.org" not in tile.text and "sign in" in tile.loses

    def test_a_rule_about_no_group_is_no_trouble_of_the_directory(self) -> None:
        self.a_pass(is_applied=True, problems=[["no_group", {"group": "x"}]])
        assert self.tile().ok

    def test_passes_that_have_stopped(self) -> None:
        self.a_pass(is_applied=True, ago=3600)
        assert not self.tile().ok and self.tile().text == "No pass over it since 1 h."

    def test_the_portal_is_ready_without_it(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.a_pass(problems=[["away", {"words": "no"}]])
        monkeypatch.setattr(health, "PARTS", [])
        monkeypatch.setattr(health, "kinds", dict)
        answer = client.get("/readyz")
        assert answer.status_code == 200 and answer.json()["parts"]["directory"]["ok"] is False


class TestClusters:
    @pytest.mark.parametrize(("age", "well"), [(2, True), (50, True), (70, False)])
    def test_one_that_was_not_seen_for_a_minute_is_red(self, own_database: None, age: int, well: bool) -> None:
        Cluster.objects.create(name="local", kind="local", seen_at=timezone.now() - timezone.timedelta(seconds=age))
        assert part(health.look(), "cluster local").ok is well

    def test_each_has_its_own_tile_and_what_is_no_cluster_of_ours_any_more_has_none(
        self, own_database: None, settings: Any
    ) -> None:
        settings.KUBERNETES_CLUSTERS = (KubernetesSetting("near"), KubernetesSetting("far"))
        for name, age in {"local": 1, "near": 1, "far": 99, "sold": 999}.items():
            Cluster.objects.create(name=name, seen_at=timezone.now() - timezone.timedelta(seconds=age))
        tiles = {tile.name: tile for tile in health.look() if tile.name.startswith("cluster")}
        assert {name: tile.ok for name, tile in tiles.items()} == {
            "cluster local": True,
            "cluster near": True,
            "cluster far": False,
        }
        assert "99" in tiles["cluster far"].text
        assert "Other clusters are as ever" in tiles["cluster far"].loses

    def test_nobody_watches(self, own_database: None) -> None:
        Cluster.objects.create(name="local", kind="local", seen_at=timezone.now())
        watcher = part(health.look(), "watcher")
        assert not watcher.ok and "local" in watcher.text
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s, hashtext('local'))", [LOCKS])
            assert part(health.look(), "watcher").ok
            cursor.execute("SELECT pg_advisory_unlock(%s, hashtext('local'))", [LOCKS])


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
