"""Who writes an attempt and its job takes the attempt first, as launch and stop do: the other order is a deadlock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction

from jobs import lifecycle, submission
from jobs.models import Attempt, Job
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db(transaction=True)

VERBS: dict[str, Callable[[Job, Any], Any]] = {
    "cancel": lambda job, user: submission.cancel(job, user=user),
    "hold": lambda job, user: submission.hold(job, user=user),
    "mark running": lambda job, _user: lifecycle.mark_running(job, job.attempts.get()),
}


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize("verb", VERBS)
def test_whoever_waits_for_the_attempt_does_not_hold_the_job(verb: str, alice: Any, vision: Any) -> None:
    job = make_job(alice, vision, status="starting", attempt_number=1)
    attempt = make_attempt(job)
    found = Job.objects.for_rows().get(pk=job.pk)
    errors: list[Exception] = []

    def act() -> None:
        try:
            VERBS[verb](found, alice)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    person = threading.Thread(target=act)
    with transaction.atomic():
        Attempt.objects.select_for_update().get(pk=attempt.pk)  # as launch holds it
        person.start()
        deadline = time.monotonic() + 10
        while not somebody_waits():
            assert time.monotonic() < deadline, "nobody wants the attempt"
            time.sleep(0.01)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '1s'")
        assert lifecycle.explain(Job.objects.get(pk=job.pk), "SettingUp", "Its pods are starting.")
    person.join(10)
    assert errors == []
    attempt.refresh_from_db()
    job.refresh_from_db()
    if verb == "mark running":  # lost to the explanation; the next look does it, and nothing of it is stored yet
        assert (job.status, attempt.started_at) == ("starting", None)
    else:
        assert attempt.stop_code
        assert job.cancel_requested_at or job.held_by_id
