"""Who loses a right loses it on open pages at once: each way to lose one is told to every web process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
import redis
from django.conf import settings
from django.contrib.auth import login
from django.db import transaction
from django.test import Client

from accounts import hints
from accounts.models import Membership
from accounts.roles import SiteRole
from tests.metrics.server import web_process
from tests.metrics.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heard(db: None) -> Iterator[Callable[[], list[str]]]:
    """The topics of the hints since the last question."""
    hints._valkey.cache_clear()
    hints._quiet_until = 0.0
    with redis.Redis.from_url(settings.REDIS_URL) as client, client.pubsub(ignore_subscribe_messages=True) as channel:
        channel.subscribe(hints.CHANNEL)
        channel.get_message(timeout=5)

        def since() -> list[str]:
            found = []
            while message := channel.get_message(timeout=0.3):
                found.append(orjson.loads(message["data"])["t"])
            return found

        since()
        yield since


def disable(bob: Any, _vision: Any) -> None:
    bob.is_active = False
    bob.save()


def lose_the_site_role(bob: Any, _vision: Any) -> None:
    bob.site_role = SiteRole.NONE
    bob.save(update_fields=["site_role"])


def change_the_password(bob: Any, _vision: Any) -> None:
    bob.set_password("another horse battery")
    bob.save()


def leave(bob: Any, vision: Any) -> None:
    Membership.objects.filter(user=bob, namespace=vision).delete()


def become_a_viewer(bob: Any, vision: Any) -> None:
    membership = Membership.objects.get(user=bob, namespace=vision)
    membership.role = "viewer"
    membership.save()


def sign_out(bob: Any, _vision: Any) -> None:
    client = Client()
    client.force_login(bob)
    client.logout()


@pytest.mark.parametrize("way", [disable, lose_the_site_role, change_the_password, leave, become_a_viewer, sign_out])
def test_each_way_is_told_after_its_commit(way: Any, bob: Any, vision: Any, heard: Any) -> None:
    heard()
    with transaction.atomic():
        way(bob, vision)
        assert heard() == []
    assert "rights" in heard()


def test_signing_in_and_a_rolled_back_change_tell_nothing(bob: Any, vision: Any, heard: Any, rf: Any) -> None:
    heard()
    request = rf.get("/")
    request.session = Client().session
    login(request, bob, backend="accounts.auth.LocalBackend")
    with transaction.atomic():
        leave(bob, vision)
        transaction.set_rollback(True)
    assert heard() == []


def test_an_open_socket_hears_of_it_long_before_its_own_look(tmp_path: Any, bob: Any, job: Any, vision: Any) -> None:
    with web_process(tmp_path) as server, Page(server, bob) as page:
        assert page.follow(f"points/{job.pk}")["type"] == "snapshot"
        leave(bob, vision)
        assert page.next(f"points/{job.pk}", within=3)["data"] == {"code": "not_found"}
