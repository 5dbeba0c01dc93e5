"""What the watcher hands its lines to: they are read by the stdout door and stored as points.

A point may be stored twice and is the same both times, so after a restart of the watcher the newest lines of each worker are
simply read again: to remember where its steps stand, and to store what a crash had kept from being stored. Beyond that many
lines two things are lost with the process: names that had not yet come three times, and how often a bar began anew.
"""

from __future__ import annotations

import logging
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db import InterfaceError, OperationalError

from jobs.cluster.port import RawLine
from jobs.gang import rank_of_lines
from jobs.logs.lines import MAX_LIMIT, read_lines
from jobs.logs.stretches import NO_END
from jobs.models import Attempt, JobFeed, Worker
from metrics import ingest
from metrics.batches import Batch, why_not_a_name
from metrics.doors.memory import Gathered, Memory, Point
from metrics.doors.precedence import Precedence
from metrics.doors.rules import Rule, rules_of
from metrics.doors.stdout import read_line
from metrics.models import MetricKey
from metrics.packed import Series
from metrics.sources import STDOUT

MOST_KEYS = 200  # names that text may give a job
MOST_WORKERS = 2_000  # remembered at one time
READ_AGAIN = 20_000  # lines of a worker, at most, after a restart
STORED_AGAIN = 500  # of these, the newest: a crash loses no more than the lines of one look
MOST_UNDECIDED = 1_000  # points of a name that wait for the SDK to tell the same steps
MOST_UNSENT = 50  # batches that wait for the database
NAMES = uuid.UUID("6f6b1d0e-2f0b-5c55-9d3f-6d1f0f6f7a11")

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _JobKeys:
    """The names that text has given a job."""

    names: set[str]

    def admit(self, key: str) -> bool:
        if why_not_a_name(key) or (key not in self.names and len(self.names) >= MOST_KEYS):
            return False
        self.names.add(key)
        return True


@dataclass(slots=True)
class _Reader:
    """One worker as the door knows it."""

    job_id: str
    namespace_id: int
    attempt: int
    name: str
    rank: int
    index: int
    rules: Sequence[Rule]
    memory: Memory
    gathered: Gathered = field(
        default_factory=Gathered
    )  # until it is a batch, so that an error in between loses nothing
    undecided: dict[str, list[Point]] = field(default_factory=dict)
    unsent: list[Batch] = field(default_factory=list)
    last_line: int = 0  # that was read
    is_over: bool = False  # the worker has ended: nothing waits any more


class StdoutDoor:
    """One for each mirror; used by its thread alone."""

    def __init__(self) -> None:
        self.failures = 0
        self._readers: OrderedDict[int, _Reader] = OrderedDict()
        self._keys: dict[str, _JobKeys] = {}
        self._precedence = Precedence()

    def __call__(self, worker: Worker, lines: Sequence[RawLine]) -> None:
        """Read lines that are stored already. Nothing that goes wrong here may keep the next ones from being stored."""
        try:
            reader = self._reader_of(worker, lines[0].number)
            for line in lines:
                reader.memory.take(line.number, line.time, read_line(line.text, reader.rules), reader.gathered)
            reader.last_line = lines[-1].number
            self._send(reader, of=f"{lines[0].number}")
        except Exception as error:
            self._failed(str(worker), worker.attempt.job_id, error)

    def ended(self, worker: Worker) -> None:
        """The worker writes no more, and what the SDK said of its steps has come: whatever still waits is decided."""
        reader = self._readers.get(worker.pk)
        if reader is not None:
            self._finish(reader)

    def resume(self, cluster: str) -> None:
        """At the start of the watcher: what was stored of workers that may never write another line."""
        attempts = Attempt.objects.filter(cluster=cluster, deleted_at=None)
        workers = Worker.objects.filter(attempt__in=attempts, log_number__gt=0)
        for worker in workers.select_related("attempt__job"):
            try:
                self._reader_of(worker, worker.log_number + 1)
            except Exception as error:
                self._failed(str(worker), worker.attempt.job_id, error)

    def _failed(self, worker: str, job_id: str, error: Exception) -> None:
        self.failures += 1
        said = "The lines of %s, job %s, gave no metrics (failure %d of this door)"
        if isinstance(error, OperationalError | InterfaceError):  # the follower will meet it too, and waits
            logger.warning(said + ": %s", worker, job_id, self.failures, error)
        else:
            logger.exception(said, worker, job_id, self.failures)

    # A worker, known or met anew

    def _reader_of(self, worker: Worker, first: int) -> _Reader:
        if reader := self._readers.get(worker.pk):
            self._readers.move_to_end(worker.pk)
            return reader
        job = worker.attempt.job
        reader = _Reader(
            job_id=job.pk,
            namespace_id=job.namespace_id,
            attempt=worker.attempt.number,
            name=str(worker),
            rank=rank_of_lines(job.pod_groups, role=worker.role, index=worker.index),
            index=worker.index,
            rules=rules_of(job.runtime_snapshot),
            memory=Memory(admit=self._keys_of(job.pk).admit),
        )
        self._read_again(reader, first)
        self._readers[worker.pk] = reader
        while len(self._readers) > MOST_WORKERS:
            _pk, gone = self._readers.popitem(last=False)
            self._finish(gone)
            self._keys.pop(gone.job_id, None)
        return reader

    def _finish(self, reader: _Reader) -> None:
        reader.is_over = True
        try:
            self._send(reader, of=f"end-{reader.last_line}")
        except Exception as error:
            self._failed(reader.name, reader.job_id, error)

    def _keys_of(self, job_id: str) -> _JobKeys:
        if job_id not in self._keys:
            names = MetricKey.objects.filter(job_id=job_id, source=STDOUT).values_list("key", flat=True)
            self._keys[job_id] = _JobKeys(set(names))
        return self._keys[job_id]

    def _read_again(self, reader: _Reader, first: int) -> None:
        """Lines before `first` that an earlier process read, or was about to."""
        if first <= 1:
            return
        earlier = self._lines_before(reader, first)
        for number, line in enumerate(earlier, start=first - len(earlier)):
            if number == first - STORED_AGAIN:
                reader.gathered = Gathered(self._contested(reader))
            reader.memory.take(number, line["time"], read_line(line["text"], reader.rules), reader.gathered)
        reader.last_line = first - 1
        self._send(reader, of=f"-{first}")  # a number of its own: not that of a batch which may have been stored

    def _contested(self, reader: _Reader) -> dict[str, list[Point]]:
        """Of what was read again: the points of names that belong to another door, which may have waited for long."""
        points = reader.gathered.points
        others = MetricKey.objects.filter(job_id=reader.job_id, key__in=list(points)).exclude(source=STDOUT)
        return {key: points[key] for key in others.values_list("key", flat=True)}

    def _lines_before(self, reader: _Reader, first: int) -> list[dict[str, Any]]:
        """The newest of them. The follower has stored lines from `first` on already, so they are counted from the end."""
        stored: int = Worker.objects.values_list("log_number", flat=True).get(
            attempt__job_id=reader.job_id,
            attempt__number=reader.attempt,
            role=reader.name.rpartition("-")[0],
            index=reader.index,
        )
        newer = stored - first + 1
        found: list[dict[str, Any]] = []
        before = NO_END
        while len(found) < READ_AGAIN + newer:
            page = read_lines(reader.job_id, before=before, worker=reader.name, attempt=reader.attempt, limit=MAX_LIMIT)
            if not page:
                break
            found = page + found
            before = page[0]["seq"]
        return found[: len(found) - newer] if newer else found

    # Points on their way

    def _send(self, reader: _Reader, *, of: str) -> None:
        """`of` names the lines: the same ones are the same batch."""
        gathered, points = reader.gathered, reader.gathered.points
        if reader.undecided and (points or reader.is_over):
            for key, waiting in reader.undecided.items():
                points[key] = waiting + points.get(key, [])
            reader.undecided = {}
        progress = gathered.progress if gathered.progress and not self._sdk_tells_progress(reader) else None
        if points or progress:
            series = self._settled(reader, points) if points else []
            if series or (progress and "total" in progress):  # a bare step is not worth a batch of its own
                name = f"{reader.job_id}/{reader.attempt}/{reader.name}/{of}"
                batch = Batch(
                    id=uuid.uuid5(NAMES, name),
                    attempt=reader.attempt,
                    rank=reader.rank,
                    series=series,
                    progress=progress,
                    source=STDOUT,
                )
                reader.unsent = [*reader.unsent[-MOST_UNSENT:], batch]
        reader.gathered = Gathered()
        while reader.unsent:
            ingest.accept(reader.job_id, reader.attempt, reader.unsent[0], namespace_id=reader.namespace_id)
            reader.unsent.pop(0)

    def _settled(self, reader: _Reader, points: dict[str, list[Point]]) -> list[Series]:
        series = [_series(key, told) for key, told in points.items()]
        settled = self._precedence.settle(
            reader.job_id,
            reader.attempt,
            reader.rank,
            series,
            STDOUT,
            most_waiting=0 if reader.is_over else MOST_UNDECIDED,
        )
        for one in settled.undecided:
            reader.undecided[one.key] = points[one.key]
        keys = self._keys_of(reader.job_id)
        return [one for one in settled.series if one.key in points or keys.admit(one.key)]

    def _sdk_tells_progress(self, reader: _Reader) -> bool:
        progress = JobFeed.objects.values_list("progress", flat=True).filter(pk=reader.job_id).first() or {}
        return progress.get("attempt") == reader.attempt and "source" not in progress


def _series(key: str, points: Sequence[Point]) -> Series:
    head, slash, _rest = key.partition("/")
    return Series(
        key,
        head if slash else "",
        np.array([point.step for point in points], dtype=np.int64),
        np.array([point.time for point in points], dtype=np.float64),
        np.array([point.value for point in points], dtype=np.float64),
    )
