"""The rows of workers, as what was observed of their pods says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.db import connection

from jobs.cluster.observed import WorkerState
from jobs.models import Attempt, Worker

WORKER_FIELDS = "node pod_name pod_uid phase exit_code signal reason message started_at finished_at".split()


def workers_of(attempts: Sequence[Attempt]) -> defaultdict[int, list[Worker]]:
    """By the attempt, which they know and which does not hold them, as it does where they are prefetched.

    Rows that hold each other wait for the collector, and in a watcher of thousands that stops everything for long.
    """
    known = {attempt.pk: attempt for attempt in attempts}
    found: defaultdict[int, list[Worker]] = defaultdict(list)
    for worker in Worker.objects.filter(attempt__in=known):
        worker.attempt = known[worker.attempt_id]
        found[worker.attempt_id].append(worker)
    return found


def store_workers(workers: Sequence[Worker]) -> None:
    """All in one statement: a bulk_update of Django spends several times as long on thinking of it."""
    if not workers:
        return
    fields = [field for field in Worker._meta.concrete_fields if field.name in ("id", *WORKER_FIELDS)]
    lists = ", ".join(f"%s::{field.db_type(connection)}[]" for field in fields)
    names = ", ".join(f'"{field.column}"' for field in fields)
    into = ", ".join(f'"{field.column}" = new."{field.column}"' for field in fields if field.name != "id")
    table = Worker._meta.db_table
    values = [[getattr(worker, field.attname) for worker in workers] for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{table}" SET {into} FROM unnest({lists}) AS new ({names}) WHERE "{table}"."id" = new."id"',  # noqa: S608
            values,
        )


def update_workers(workers: Sequence[Worker], states: Sequence[WorkerState]) -> list[Worker]:
    """Copy what was observed onto the rows; those that changed."""
    rows = {(worker.role, worker.index): worker for worker in workers}
    changed = []
    for state in {(state.role, state.index): state for state in states}.values():  # the last one of a place counts
        worker = rows.get((state.role, state.index))
        if worker is None:
            continue
        before = [getattr(worker, name) for name in WORKER_FIELDS]
        for name in WORKER_FIELDS:
            value = getattr(state, name)
            if name == "node" and not value:
                continue
            setattr(worker, name, value)
        if before != [getattr(worker, name) for name in WORKER_FIELDS]:
            changed.append(worker)
    return changed
