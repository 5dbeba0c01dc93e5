"""Lines that workers wrote: stored once, in order, one sequence per job, and read back from any point."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import zstandard
from django.db import connection, transaction
from django.db.models import F, QuerySet

from jobs import faults, live
from jobs.cluster.port import Cluster, ObjectRef, RawLine
from jobs.exceptions import ClusterError
from jobs.models import Attempt, JobFeed, LogBlock, Worker

LINES_PER_BLOCK = 2000
MAX_LIMIT = 5000
logger = logging.getLogger(__name__)

# what reads lines beside the log: the stdout door of metrics, put in by the watcher command (DESIGN 11.3)
Sink = Callable[[Worker, Sequence[RawLine]], None]


@dataclass(slots=True)
class LogFollower:
    """Copies new lines of workers from a cluster into the database."""

    port: Cluster
    sink: Sink | None = None

    def follow(self, attempt: Attempt, workers: Sequence[Worker]) -> int:
        """Store what is new of each worker; the number of lines. Asks again later where the cluster does not answer."""
        ref = ObjectRef(attempt.kubernetes_namespace, attempt.object_name, attempt.uid)
        stored = 0
        for worker in workers:
            while True:
                try:
                    lines = list(self.port.logs(ref, str(worker), after=worker.log_number, limit=LINES_PER_BLOCK))
                except ClusterError as error:
                    logger.warning("No log of %s %s now: %s", attempt, worker, error)
                    break
                if lines:
                    store_lines(attempt, worker, lines)
                    stored += len(lines)
                    if self.sink:
                        self.sink(worker, lines)
                if len(lines) < LINES_PER_BLOCK:
                    break
        return stored


def store_lines(attempt: Attempt, worker: Worker, lines: Sequence[RawLine]) -> None:
    """One block, once: the worker's own line number is the fence against a second watcher and against a crash."""
    body = zstandard.compress(orjson.dumps([[line.time, line.text, line.overwritten] for line in lines]))
    with transaction.atomic():
        moved = Worker.objects.filter(pk=worker.pk, log_number=worker.log_number).update(log_number=lines[-1].number)
        if not moved:
            worker.refresh_from_db(fields=["log_number"])
            return
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE jobs_jobfeed SET log_seq = log_seq + %s WHERE job_id = %s RETURNING log_seq",
                [len(lines), attempt.job_id],
            )
            (last,) = cursor.fetchone()
        LogBlock.objects.create(
            job_id=attempt.job_id,
            worker=worker,
            attempt=attempt.number,
            first_seq=last - len(lines) + 1,
            last_seq=last,
            body=body,
        )
        faults.point("logs.before_commit")
        live.publish(f"logs/{attempt.job_id}", last, namespace_id=attempt.job.namespace_id)
    worker.log_number = lines[-1].number


def _worker_name(block: LogBlock) -> str:
    # annotated by _blocks, so that a page of lines is one query
    return f"{block.role}-{block.index}"  # type: ignore[attr-defined]


def _lines_of(block: LogBlock) -> list[dict[str, Any]]:
    worker = _worker_name(block)
    return [
        {
            "attempt": block.attempt,
            "worker": worker,
            "seq": block.first_seq + offset,
            "time": time,
            "text": text,
            "overwritten": overwritten,
        }
        for offset, (time, text, overwritten) in enumerate(orjson.loads(zstandard.decompress(block.body)))
    ]


def _blocks(job_id: str, *, worker: str | None, attempt: int | None) -> QuerySet[LogBlock]:
    blocks = LogBlock.objects.filter(job_id=job_id).annotate(role=F("worker__role"), index=F("worker__index"))
    if attempt is not None:
        blocks = blocks.filter(attempt=attempt)
    if worker:
        role, index = worker_of(worker)
        blocks = blocks.filter(worker__role=role, worker__index=index)
    return blocks


def worker_of(name: str) -> tuple[str, int]:
    """`worker-3`, `launcher-0`, or a bare number, which means role worker. Raise ValueError."""
    role, _dash, index = name.rpartition("-")
    if not index.isdecimal() or len(index) > 6 or not (role or "worker").isalpha():
        raise ValueError(f"{name!r} is not a worker, such as worker-0 or 0")
    return role or "worker", int(index)


def read_lines(
    job_id: str,
    *,
    after: int = 0,
    worker: str | None = None,
    attempt: int | None = None,
    limit: int = 500,
    before: int | None = None,
) -> list[dict[str, Any]]:
    """Lines in order of seq: the first `limit` above `after`, or the last `limit` below `before`."""
    limit = max(1, min(limit, MAX_LIMIT))
    blocks = _blocks(job_id, worker=worker, attempt=attempt)
    found: list[dict[str, Any]] = []
    if before is not None:
        for block in blocks.filter(first_seq__lt=before).order_by("-last_seq").iterator(chunk_size=20):
            found = [line for line in _lines_of(block) if line["seq"] < before] + found
            if len(found) >= limit:
                break
        return found[-limit:]
    for block in blocks.filter(last_seq__gt=after).order_by("last_seq").iterator(chunk_size=20):
        found += [line for line in _lines_of(block) if line["seq"] > after]
        if len(found) >= limit:
            break
    return found[:limit]


def last_lines(job_id: str, *, count: int, worker: str | None = None) -> list[dict[str, Any]]:
    return read_lines(job_id, before=2**62, worker=worker, limit=count)


def last_seq(job_id: str) -> int:
    return JobFeed.objects.values_list("log_seq", flat=True).get(pk=job_id)


def download(job_id: str, *, attempt: int | None = None, worker: str | None = None) -> Iterator[bytes]:
    """The whole log as text, block by block; of several workers each line says whose it is."""
    for block in _blocks(job_id, worker=worker, attempt=attempt).order_by("last_seq").iterator(chunk_size=20):
        mark = "" if worker else f"[{block.attempt}/{_worker_name(block)}] "
        lines = orjson.loads(zstandard.decompress(block.body))
        yield "".join(f"{mark}{text}\n" for _time, text, overwritten in lines if not overwritten).encode()
