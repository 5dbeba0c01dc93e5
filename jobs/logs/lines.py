"""Lines that workers wrote: stored once, in order, one sequence per job, and read back from any point."""

from __future__ import annotations

import logging
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, Protocol

import orjson
import zstandard
from django.db import connection, transaction

from jobs import faults, live
from jobs.cluster.manifests import MAIN
from jobs.cluster.port import Cluster, ObjectRef, RawLine
from jobs.exceptions import ClusterError, ObjectGone
from jobs.logs.levels import LevelReader
from jobs.logs.stretches import EVERY_LINE, NO_END, Wanted, backward, forward
from jobs.logs.text import as_seen
from jobs.models import Attempt, JobFeed, LogBlock, Worker

LINES_PER_BLOCK = 2000
BYTES_PER_BLOCK = 2**20
MAX_LIMIT = 5000
logger = logging.getLogger(__name__)


class Sink(Protocol):
    """What reads lines beside the log: the stdout door of metrics, put in by the watcher command (DESIGN 11.3)."""

    def __call__(self, worker: Worker, lines: Sequence[RawLine]) -> None: ...

    def ended(self, worker: Worker) -> None: ...


@dataclass(slots=True)
class LogFollower:
    """Copies new lines of workers from a cluster into the database."""

    port: Cluster
    sink: Sink | None = None

    def follow(self, attempt: Attempt, workers: Sequence[Worker]) -> bool:
        """Store what is new of each worker; whether all there is was read. False where the cluster did not answer."""
        ref = ObjectRef(attempt.kubernetes_namespace, attempt.object_name, attempt.uid)
        return all([self._follow(ref, attempt, worker) for worker in workers])  # noqa: C419 - each, also after a failure

    def _follow(self, ref: ObjectRef, attempt: Attempt, worker: Worker) -> bool:
        while True:
            try:
                found = self.port.logs(
                    ref, str(worker), after=worker.log_number, limit=LINES_PER_BLOCK, positions=worker.log_positions
                )
                lines = _first(found, BYTES_PER_BLOCK)
            except ObjectGone:
                return True
            except ClusterError as error:
                logger.info("No log of %s %s now: %s", attempt, worker, error)
                return False
            if lines:
                store_lines(attempt, worker, lines)
                said = [line for line in lines if line.container == MAIN]  # what helpers say is no metric
                if self.sink and said:
                    self.sink(worker, said)
            if len(lines) < LINES_PER_BLOCK and sum(len(line.text) for line in lines) < BYTES_PER_BLOCK:
                return True

    def finish(self, workers: Sequence[Worker]) -> None:
        """These workers have ended, and their lines were followed to the end."""
        for worker in workers:
            if self.sink:
                self.sink.ended(worker)


def _first(lines: Iterable[RawLine], most_bytes: int) -> list[RawLine]:
    """As many as reach so many bytes, so that neither this process nor a reader ever holds much."""
    taken: list[RawLine] = []
    for line in lines:
        taken.append(line)
        most_bytes -= len(line.text)
        if most_bytes <= 0:
            break
    return taken


def store_lines(attempt: Attempt, worker: Worker, lines: Sequence[RawLine]) -> None:
    """One block, once: the worker's own line number is the fence against a second watcher and against a crash."""
    reader = LevelReader(worker.log_opened)
    texts = [line.text if line.container == MAIN else f"[{line.container}] {line.text}" for line in lines]
    levels = reader.read(as_seen(texts))
    rows = [[line.time, said, line.overwritten, level] for line, said, level in zip(lines, texts, levels, strict=True)]
    positions = worker.log_positions | {line.container: line.position for line in lines if line.position is not None}
    body = zstandard.compress(orjson.dumps(rows))
    with transaction.atomic():
        known = Worker.objects.filter(pk=worker.pk, log_number=worker.log_number)
        if not known.update(log_number=lines[-1].number, log_opened=reader.opened, log_positions=positions):
            worker.refresh_from_db(fields=["log_number", "log_opened", "log_positions"])
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
    worker.log_number, worker.log_opened, worker.log_positions = lines[-1].number, reader.opened, positions


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
    most_bytes: int | None = None,
) -> list[dict[str, Any]]:
    """Lines in order of seq: the first `limit` above `after`, or the last `limit` below `before`.

    `most_bytes` ends a page of long lines early, though never before its first line.
    """
    limit = max(1, min(limit, MAX_LIMIT))
    pages: list[list[dict[str, Any]]] = []
    if before is not None:
        for stretch in backward(job_id, Wanted(attempt, worker, before=before)):
            pages.insert(0, stretch.lines(stretch.picked[-limit:]))
            limit -= len(pages[0])
            if not limit or (most_bytes and _bytes_of(pages[0]) >= most_bytes):
                break
    else:
        for stretch in forward(job_id, Wanted(attempt, worker, after=after)):
            pages.append(stretch.lines(stretch.picked[:limit]))
            limit -= len(pages[-1])
            if not limit or (most_bytes and _bytes_of(pages[-1]) >= most_bytes):
                break
    lines = list(chain.from_iterable(pages))
    return _shortened(lines, most_bytes, from_end=before is not None) if most_bytes else lines


def _bytes_of(lines: Sequence[dict[str, Any]]) -> int:
    return sum(len(line["text"]) for line in lines)


def _shortened(lines: list[dict[str, Any]], most: int, *, from_end: bool) -> list[dict[str, Any]]:
    sizes = [len(line["text"]) for line in (reversed(lines) if from_end else lines)]
    fit = max(1, bisect_right(list(accumulate(sizes)), most))
    return lines[-fit:] if from_end else lines[:fit]


def last_lines(job_id: str, *, count: int, worker: str | None = None) -> list[dict[str, Any]]:
    return read_lines(job_id, before=NO_END, worker=worker, limit=count)


def last_seq(job_id: str) -> int:
    return JobFeed.objects.values_list("log_seq", flat=True).get(pk=job_id)


def download(job_id: str, wanted: Wanted = EVERY_LINE) -> Iterator[bytes]:
    """The whole log as text, piece by piece; of several workers each line says whose it is."""
    for stretch in forward(job_id, wanted):
        marks = ["" if wanted.worker else f"[{number}/{name}] " for number, name in stretch.writers]
        shown = stretch.picked[~stretch.overwritten[stretch.picked]]
        for start in range(0, len(shown), LINES_PER_BLOCK):
            some = shown[start : start + LINES_PER_BLOCK]
            whose = stretch.writer[some].tolist()
            pairs = zip(whose, stretch.texts(some), strict=True)
            yield "".join(f"{marks[writer]}{text}\n" for writer, text in pairs).encode()


def zipped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same as one gzip stream."""
    packer = zlib.compressobj(6, wbits=31)
    for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()
