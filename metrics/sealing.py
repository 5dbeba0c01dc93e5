"""Moves batches, in the order of their arrival, into the chunks of their series."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np
from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from metrics import chunks, coarse
from metrics.chunks import Run
from metrics.models import Chunk, PointBatch
from metrics.packed import unpack

SEAL_ROWS = 256
SEAL_POINTS = 250_000
SEAL_AGE = timedelta(seconds=60)
# the newest rows stay a moment, so that whoever watches gets their points and not a snapshot
SEAL_LEAVES = timedelta(seconds=2)
BYTES_AT_ONCE = 32 * 2**20  # bodies of one transaction
TOKEN_DIES = timedelta(minutes=16)  # after the attempt; a request that was checked in the last second has ended by then
logger = logging.getLogger(__name__)


class _Stored(NamedTuple):
    """A chunk that new points may go into, or the border of one."""

    id: int
    first_step: int
    points: Run | None  # None where they are damaged


def due() -> list[tuple[str, int]]:
    """Attempts with many unsealed rows or points, with an old one, or that are over."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT batch.job_id, batch.attempt
            FROM metrics_pointbatch AS batch
            LEFT JOIN jobs_attempt AS attempt ON attempt.job_id = batch.job_id AND attempt.number = batch.attempt
            WHERE batch.body IS NOT NULL
            GROUP BY batch.job_id, batch.attempt, attempt.ended_at
            HAVING count(*) >= %s OR sum(batch.points) >= %s OR min(batch.received_at) <= %s
                OR attempt.ended_at IS NOT NULL
            ORDER BY min(batch.received_at)
            """,
            [SEAL_ROWS, SEAL_POINTS, timezone.now() - SEAL_AGE],
        )
        found: list[tuple[str, int]] = cursor.fetchall()
        return found


def seal(job_id: str, attempt: int, *, leave: timedelta = SEAL_LEAVES) -> int:
    """Seal the oldest batches of an attempt, and return how many. Another process that is at this job is left alone."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('metrics.seal'), hashtext(%s))", [job_id])
            if not cursor.fetchone()[0]:
                return 0
        upto = _upto(job_id, attempt, leave)
        if upto is None:
            return 0
        rows = PointBatch.objects.filter(job_id=job_id, attempt=attempt, body__isnull=False, seq__lte=upto)
        pieces: dict[tuple[str, int], list[Run]] = defaultdict(list)
        groups: dict[tuple[str, int], str] = {}
        for rank, body in rows.order_by("seq").values_list("rank", "body"):
            assert body is not None  # the query leaves sealed rows out
            for one in unpack(body):
                pieces[one.key, rank].append(Run(one.step, one.time, one.value))
                groups[one.key, rank] = one.group
        _merge(job_id, attempt, {series: chunks.last_wins(runs) for series, runs in pieces.items()}, groups, seq=upto)
        return rows.update(body=None)


def _upto(job_id: str, attempt: int, leave: timedelta) -> int | None:
    """The last batch to take now: always a run without gaps from the oldest unsealed one.

    That is what lets a reader conclude from a chunk's `seq` that every older batch of its series is sealed as well.
    """
    rows = PointBatch.objects.filter(job_id=job_id, attempt=attempt, body__isnull=False)
    last = rows.filter(received_at__lte=timezone.now() - leave).aggregate(last=Max("seq"))["last"]
    if last is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT max(seq) FROM (
                SELECT seq, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS before
                FROM metrics_pointbatch WHERE job_id = %s AND attempt = %s AND body IS NOT NULL AND seq <= %s
            ) AS sized WHERE before < %s
            """,
            [job_id, attempt, last, BYTES_AT_ONCE],
        )
        upto: int = cursor.fetchone()[0]
        return upto


def _merge(
    job_id: str, attempt: int, new: dict[tuple[str, int], Run], groups: dict[tuple[str, int], str], *, seq: int
) -> None:
    """Write new points into the chunks whose range they fall into; the last chunk of a series takes all that is newer."""
    written: list[Chunk] = []
    replaced: list[int] = []
    stored = _stored(job_id, attempt, new)
    for series, run in sorted(new.items()):
        key, rank = series
        rows = stored.get(series, [])
        # chunk n reaches up to the first step of chunk n + 1, and the first one also takes what lies before it
        borders = np.array([row.first_step for row in rows[1:]], dtype=np.int64)
        home = np.searchsorted(borders, run.step, side="right")
        for number in np.unique(home).tolist():
            mine = run.where(home == number)
            newest = number >= len(rows) - 1
            if rows and (old := rows[number]).points is not None:
                replaced.append(old.id)
                mine = chunks.last_wins([old.points, mine])
            elif rows and old.first_step in mine.step:
                replaced.append(old.id)  # a chunk of that step can be there once
            parts = chunks.split(mine, newest=newest)
            written += [
                Chunk(
                    job_id=job_id,
                    attempt=attempt,
                    rank=rank,
                    key=key,
                    group=groups[series],
                    seq=seq,
                    open=newest and part is parts[-1] and len(part) < chunks.FULL,
                    body=chunks.compress(part),
                    coarse=coarse.of_chunk(part).pack(),
                    **chunks.measures(part),
                )
                for part in parts
            ]
    Chunk.objects.filter(pk__in=replaced).delete()
    Chunk.objects.bulk_create(written, batch_size=500)


def _stored(job_id: str, attempt: int, new: dict[tuple[str, int], Run]) -> dict[tuple[str, int], Sequence[_Stored]]:
    """Of each series the chunk that its lowest new step belongs to, and all chunks after it: one query for all series."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT chunk.key, chunk.rank, chunk.id, chunk.first_step, chunk.count, chunk.body
            FROM unnest(%(keys)s::text[], %(ranks)s::int[], %(lows)s::bigint[]) AS new (key, rank, low)
            JOIN metrics_chunk AS chunk ON chunk.job_id = %(job)s AND chunk.attempt = %(attempt)s
                AND chunk.key = new.key AND chunk.rank = new.rank
                AND chunk.first_step >= COALESCE((
                    SELECT max(first_step) FROM metrics_chunk AS lower
                    WHERE lower.job_id = %(job)s AND lower.attempt = %(attempt)s
                        AND lower.key = new.key AND lower.rank = new.rank AND lower.first_step <= new.low
                ), 0)
            ORDER BY chunk.key, chunk.rank, chunk.first_step
            """,
            {
                "job": job_id,
                "attempt": attempt,
                "keys": [key for key, _rank in new],
                "ranks": [rank for _key, rank in new],
                "lows": [int(run.step[0]) for run in new.values()],
            },
        )
        found: dict[tuple[str, int], list[_Stored]] = defaultdict(list)
        for key, rank, chunk_id, first_step, count, body in cursor.fetchall():
            found[key, rank].append(_Stored(chunk_id, first_step, _points(chunk_id, body, count)))
        return dict(found)


def _points(chunk_id: int, body: bytes, count: int) -> Run | None:
    """A damaged chunk stays, so that readers are told of the gap; new points go into others beside it."""
    try:
        return chunks.decompress(body, count)
    except chunks.Damaged as error:
        logger.error("Chunk %d, %d points, is damaged: %s", chunk_id, count, error)
        return None


def forget_dead_batches() -> int:
    """Remove sealed rows whose attempt's token is dead: nobody can repeat them any more."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM metrics_pointbatch AS batch USING jobs_attempt AS attempt
            WHERE attempt.job_id = batch.job_id AND attempt.number = batch.attempt
                AND attempt.ended_at <= %s AND batch.body IS NULL
            """,
            [timezone.now() - TOKEN_DIES],
        )
        removed: int = cursor.rowcount
        return removed
