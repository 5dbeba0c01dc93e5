"""Commands for whoever runs the portal."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import ApiToken, AuditEvent
from portal import tasks
from portal.management.commands.prepare import Command as Prepare


def create_token(*arguments: str) -> str:
    out = StringIO()
    call_command("create_token", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
class TestCreateToken:
    def test_it_prints_a_working_token_and_nothing_else(self, alice: Any, client: Client) -> None:
        token = create_token("alice", "--scope", "read").strip()
        assert token.startswith("th_")
        assert len(token.split()) == 1
        headers = {"Authorization": f"Bearer {token}"}
        assert client.get("/api/v1/jobs/", headers=headers).status_code == 200
        assert client.post("/api/v1/jobs/", {}, content_type="application/json", headers=headers).status_code == 403
        assert AuditEvent.objects.get(action="token.create").target == "alice"

    def test_it_is_valid_for_as_long_as_asked(self, alice: Any) -> None:
        create_token("alice", "--days", "3")
        left = ApiToken.objects.get().expiry - timezone.now()
        assert timedelta(days=2, hours=23) < left <= timedelta(days=3)

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("zoe",), "no active user 'zoe'"),
            (("alice", "--days", "0"), "from 1 to 365"),
            (("alice", "--days", "366"), "from 1 to 365"),
            (("alice", "--scope", "root"), "invalid choice"),
        ],
    )
    def test_what_is_wrong_is_said(self, alice: Any, arguments: tuple[str, ...], says: str) -> None:
        with pytest.raises(CommandError, match=says):
            create_token(*arguments)
        assert not ApiToken.objects.exists()

    def test_nobody_gets_one_for_somebody_who_left(self, alice: Any) -> None:
        alice.is_active = False
        alice.save()
        with pytest.raises(CommandError):
            create_token("alice")


@pytest.mark.django_db
class TestPrepare:
    def test_a_database_of_a_newer_trainhall_is_refused(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES ('jobs', '9999_of_the_future', now())"
            )
        with pytest.raises(CommandError, match=r"newer Trainhall \(it has the migration jobs\.9999_of_the_future\)"):
            Prepare().check_not_newer()

    def test_ours_is_not(self) -> None:
        Prepare().check_not_newer()


@pytest.mark.django_db
def test_what_has_expired_is_cleared(alice: Any, client: Client) -> None:
    now = timezone.now()
    Session.objects.create(session_key="old", session_data="", expire_date=now - timedelta(minutes=1))
    Session.objects.create(session_key="new", session_data="", expire_date=now + timedelta(hours=1))
    for name, age in (("long over", 31), ("just over", 2)):
        token, _text = ApiToken.objects.create(user=alice, expiry=timedelta(days=1), name=name)
        ApiToken.objects.filter(pk=token.pk).update(expiry=now - timedelta(days=age))
    tasks.clear_expired()
    assert set(Session.objects.values_list("session_key", flat=True)) == {"new"}
    assert set(ApiToken.objects.values_list("name", flat=True)) == {"just over"}  # its page still tells that it is over
