"""The audit trail: one row a change, no secrets, never altered."""

from __future__ import annotations

import math

import pytest
from django.db import DatabaseError, transaction
from django.test import RequestFactory

from accounts import audit
from accounts.models import AuditEvent, User

pytestmark = pytest.mark.django_db


def test_a_row_says_who_what_and_from_where(alice: User) -> None:
    request = RequestFactory().post(
        "/api/v1/x/", REMOTE_ADDR="10.1.2.3", HTTP_X_FORWARDED_FOR="6.6.6.6", HTTP_X_REAL_IP="6.6.6.6"
    )
    audit.record(alice, "job.stop", target="b1", namespace="vision", before={"n": 1}, after={"n": 2}, request=request)
    row = AuditEvent.objects.get(action="job.stop")
    assert (row.actor, row.actor_subject, row.target, row.namespace) == ("alice", alice.subject, "b1", "vision")
    assert (row.address, row.via, row.before, row.after) == ("10.1.2.3", "api", {"n": 1}, {"n": 2})


def test_secret_values_are_never_stored(alice: User) -> None:
    audit.record(
        alice,
        "job.submit",
        after={
            "secrets": {"HF_TOKEN": {"value": "s3cret"}},
            "env": [{"name": "a", "password": "s3cret"}],
            "Authorization": "Bearer s3cret",
            "lr": math.nan,
            "steps": 3,
        },
    )
    after = AuditEvent.objects.get(action="job.submit").after
    assert "s3cret" not in str(after)
    assert after["steps"] == 3
    assert after["lr"] == "nan"


def test_text_that_the_database_cannot_hold_is_no_error(alice: User) -> None:
    audit.record(alice, "job.note", target="a\0b" * 100, after={"note": "x\0y"})
    assert AuditEvent.objects.get(action="job.note").after == {"note": "x\ufffdy"}


def test_a_row_goes_with_the_change_it_tells_about(alice: User) -> None:
    def hold() -> None:
        with transaction.atomic():
            audit.record(alice, "job.hold")
            raise RuntimeError("the change failed")

    with pytest.raises(RuntimeError):
        hold()
    assert not AuditEvent.objects.filter(action="job.hold").exists()


def test_rows_are_never_changed_or_deleted(alice: User) -> None:
    audit.record(alice, "job.hold")
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEvent.objects.update(actor="mallory")
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEvent.objects.all().delete()


def test_what_the_portal_does_by_itself_has_no_actor() -> None:
    audit.record(None, "job.preempt")
    row = AuditEvent.objects.get(action="job.preempt")
    assert (row.actor, row.via, row.address) == ("", "system", None)
