"""Moves lines of a log, oldest first, from rows into chunks in the storage.

The file is written before its row, and the blocks go in the transaction that makes the row: a crash between leaves a file
that nobody knows, which the next sealing of the job removes.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import PurePosixPath

import zstandard
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from jobs.logs import chunks
from jobs.logs.stretches import fresh_of
from jobs.models import LogBlock, LogChunk
from jobs.states import FINAL

FULL_BYTES = 4 * 2**20  # of a chunk, as the blocks have it before compression
FULL_ROWS = 1024  # a program that says a word a second fills rows, not bytes
DUE_BYTES = 512 * 2**10  # of compressed blocks: about where a chunk is full
QUIET = timedelta(seconds=60)  # after the job's end; the watcher has stored its last lines by then
logger = logging.getLogger(__name__)


def due() -> list[tuple[str, bool]]:
    """Jobs with much to seal, and those that are over; whether all that they have is wanted."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT block.job_id, job.status = ANY(%s) AND job.finished_at <= %s
            FROM jobs_logblock AS block JOIN jobs_job AS job ON job.id = block.job_id
            GROUP BY block.job_id, job.status, job.finished_at
            HAVING count(*) >= %s OR sum(octet_length(block.body)) >= %s
                OR job.status = ANY(%s) AND job.finished_at <= %s
            ORDER BY min(block.id)
            """,
            [
                statuses := [str(status) for status in FINAL],
                quiet := timezone.now() - QUIET,
                FULL_ROWS,
                DUE_BYTES,
                statuses,
                quiet,
            ],
        )
        return [(job_id, bool(over)) for job_id, over in cursor.fetchall()]


def seal(job_id: str, *, whole: bool) -> int:
    """Seal the oldest stretch, and return how many lines it has: a full one, or where `whole` is wanted the rest as well.

    Another process that is at this job is left alone.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('jobs.log_sealing'), hashtext(%s))", [job_id])
            if not cursor.fetchone()[0]:
                return 0
        rows, full = _oldest(job_id)
        if not rows or not (full or whole):
            return 0
        _remove_unknown_files(job_id)
        fresh = fresh_of(rows)
        first, last = rows[0].first_seq, rows[-1].last_seq
        body = chunks.pack(
            fresh.words, times=fresh.times, writer=fresh.writer, overwritten=fresh.overwritten, levels=fresh.levels
        )
        LogChunk.objects.create(
            job_id=job_id,
            first_seq=first,
            last_seq=last,
            writers=fresh.writers,
            size=sum(map(len, fresh.words)),
            storage_name=chunks.save(job_id, first, body),
        )
        LogBlock.objects.filter(job_id=job_id, first_seq__gte=first, last_seq__lte=last).delete()
        return last - first + 1


def _oldest(job_id: str) -> tuple[list[LogBlock], bool]:
    """Consecutive blocks for one chunk, and whether they fill it."""
    found = LogBlock.objects.filter(job_id=job_id).annotate(role=F("worker__role"), index=F("worker__index"))
    rows: list[LogBlock] = []
    size = 0
    for row in found.order_by("first_seq").iterator(chunk_size=32):
        if rows and row.first_seq != rows[-1].last_seq + 1:
            return rows, True  # a chunk has no gap
        rows.append(row)
        size += _size(row)
        if size >= FULL_BYTES or len(rows) >= FULL_ROWS:
            return rows, True
    return rows, False


def _size(row: LogBlock) -> int:
    try:
        return zstandard.frame_content_size(row.body)
    except zstandard.ZstdError:  # a damaged row: it is sealed as the gap it reads as
        return len(row.body)


def _remove_unknown_files(job_id: str) -> None:
    """What a crash left. Only under the lock of the job: then nobody is between a file and its row."""
    folder = chunks.folder_of(job_id)
    try:
        _folders, names = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    known = set(LogChunk.objects.filter(job_id=job_id).values_list("storage_name", flat=True))
    for name in names:
        if (path := str(PurePosixPath(folder, name))) not in known:
            default_storage.delete(path)
            logger.info("%s was left by a crash; its lines are in rows", path)
