"""A log as its readers take it: stretches of lines in order of seq, whether they still lie in rows or in a sealed chunk.

A line is in exactly one of the two at any time, and moves from rows to chunks oldest first. So a reader that takes rows
first and then the chunks below the first of them meets every line once, whatever is sealed meanwhile.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import orjson
import zstandard
from django.db.models import F, QuerySet
from numpy.typing import NDArray

from jobs.logs import chunks
from jobs.logs.levels import CONTINUES, KIND, Level, bits
from jobs.logs.text import as_seen
from jobs.models import LogBlock, LogChunk

ROWS_AT_ONCE = 8
ROWS_AT_MOST = 512
BYTES_AT_ONCE = 256 * 2**10  # compressed bodies; as long as rows hold less, more of them are taken at once
CHUNKS_AT_ONCE = 16  # rows of the index
NO_END = 2**62
PAGE_BYTES = 4 * 2**20  # of text in one answer: a page of very long lines ends early

Writer = tuple[int, str]  # attempt, worker
# how a line's level is told: not at all where it is plain
_LEVELS: dict[int, dict[str, Any]] = {
    level | more: {**({"level": level.name.lower()} if level else {}), **({"continues": True} if more else {})}
    for level in Level
    for more in (0, CONTINUES)
}
logger = logging.getLogger(__name__)


class Seen(NamedTuple):
    """What people see of a stretch: no escapes, no bars that were overwritten; a newline between two lines."""

    text: bytes
    numbers: NDArray[np.intp]  # which line of the stretch each one is


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines of a log: those with `after` < seq < `before`, of one attempt or all, of one worker or all, written from
    `since` on and before `until` (epoch seconds), of one of some `levels`."""

    attempt: int | None = None
    worker: str | None = None  # as jobs.logs.lines.worker_of names it
    after: int = 0
    before: int = NO_END
    since: float | None = None
    until: float | None = None
    levels: frozenset[Level] = frozenset()  # empty: all

    @property
    def is_sparse(self) -> bool:
        """Long stretches may have none of it: a reader has to look on, and must not look for ever."""
        return bool(self.levels) or self.since is not None or self.until is not None

    def has(self, writer: Sequence[Any]) -> bool:
        return self.attempt in (None, writer[0]) and self.worker in (None, writer[1])


EVERY_LINE = Wanted()


@dataclass(slots=True)
class Stretch(ABC):
    """Lines as columns; `picked` are the numbers of those that were asked for."""

    writers: list[Writer]
    seqs: NDArray[np.int64]
    times: NDArray[np.float64]
    writer: NDArray[np.uint16]
    overwritten: NDArray[np.bool_]
    levels: NDArray[np.uint8]  # of jobs.logs.levels, with its bit CONTINUES
    picked: NDArray[np.intp] = field(init=False)

    def pick(self, wanted: Wanted) -> Stretch:
        mask = (self.seqs > wanted.after) & (self.seqs < wanted.before)
        if not all(wanted.has(writer) for writer in self.writers):
            mask &= np.array([wanted.has(writer) for writer in self.writers])[self.writer]
        if wanted.since is not None:
            mask &= self.times >= wanted.since
        if wanted.until is not None:
            mask &= self.times < wanted.until
        if wanted.levels:
            mask &= bits(wanted.levels)[self.levels & KIND]
        self.picked = np.flatnonzero(mask)
        return self

    @abstractmethod
    def texts(self, numbers: NDArray[np.intp]) -> list[str]:
        """What the program wrote, escapes and all."""

    @abstractmethod
    def seen(self) -> Seen:
        """What people see of it."""

    def lines(self, numbers: NDArray[np.intp]) -> list[dict[str, Any]]:
        if not len(numbers):
            return []
        columns = (
            self.writer[numbers].tolist(),
            self.seqs[numbers].tolist(),
            self.times[numbers].tolist(),
            self.texts(numbers),
            self.overwritten[numbers].tolist(),
            self.levels[numbers].tolist(),
        )
        return [
            {
                "attempt": self.writers[writer][0],
                "worker": self.writers[writer][1],
                "seq": seq,
                "time": time,
                "text": text,
                "overwritten": overwritten,
                **_LEVELS[level],
            }
            for writer, seq, time, text, overwritten, level in zip(*columns, strict=True)
        ]


@dataclass(slots=True)
class Fresh(Stretch):
    """Of rows that are not sealed yet."""

    words: list[str]

    def texts(self, numbers: NDArray[np.intp]) -> list[str]:
        return [self.words[number] for number in numbers.tolist()]

    def seen(self) -> Seen:
        numbers = np.flatnonzero(~self.overwritten)
        return Seen("\n".join(as_seen(self.texts(numbers))).encode(), numbers)


@dataclass(slots=True)
class Sealed(Stretch):
    """Of a chunk in the storage."""

    body: chunks.Body

    def texts(self, numbers: NDArray[np.intp]) -> list[str]:
        return self.body.texts(numbers)

    def seen(self) -> Seen:
        return Seen(self.body.seen, self.body.numbers_seen)


def fresh_of(rows: Sequence[LogBlock]) -> Fresh:
    """Rows of `blocks`, in order of seq."""
    writers: dict[Writer, int] = {}
    seqs: list[NDArray[np.int64]] = []
    lines: list[list[Any]] = []
    writer: list[NDArray[np.uint16]] = []
    for row in rows:
        its = _lines_of(row)
        number = writers.setdefault((row.attempt, f"{row.role}-{row.index}"), len(writers))  # type: ignore[attr-defined]
        seqs.append(np.arange(row.first_seq, row.first_seq + len(its)))
        writer.append(np.full(len(its), number, dtype=np.uint16))
        lines += its
    return Fresh(
        writers=list(writers),
        seqs=np.concatenate(seqs),
        times=np.array([line[0] for line in lines], dtype=np.float64),
        writer=np.concatenate(writer),
        overwritten=np.array([line[2] for line in lines], dtype=np.bool_),
        levels=np.array([line[3] if len(line) > 3 else Level.PLAIN for line in lines], dtype=np.uint8),
        words=[line[1] for line in lines],
    )


def _lines_of(row: LogBlock) -> list[list[Any]]:
    """Time, text, whether it was overwritten, level; where they are damaged, as many lines of which the first says so."""
    try:
        lines: list[list[Any]] = orjson.loads(zstandard.decompress(row.body))
    except (zstandard.ZstdError, ValueError, MemoryError):
        words = f"Lines {row.first_seq} to {row.last_seq} are damaged in the database."
        logger.exception("Log of %s: %s", row.job_id, words)
        count = row.last_seq - row.first_seq
        return [[0.0, f"[{words}]", False, Level.ERROR], *([0.0, "", False] for _line in range(count))]
    return lines


def forward(job_id: str, wanted: Wanted) -> Iterator[Stretch]:
    """What is wanted, from the oldest on."""
    at, count = wanted.after, ROWS_AT_ONCE
    while True:
        # rows first: what lies below the first of them has been sealed by now, or was never there
        rows = list(blocks(job_id, wanted).filter(last_seq__gt=at).order_by("last_seq")[:count])
        upto = min(wanted.before, rows[0].first_seq if rows else NO_END)
        if upto > at + 1:
            yield from _sealed(job_id, replace(wanted, after=at, before=upto))
        if rows:
            yield fresh_of(rows).pick(replace(wanted, after=at))
        if len(rows) < count:
            return
        at, count = rows[-1].last_seq, _more(rows, count)


def backward(job_id: str, wanted: Wanted) -> Iterator[Stretch]:
    """What is wanted, from the newest back; within a stretch the order is that of the log."""
    below, count = wanted.before, ROWS_AT_ONCE
    while True:
        rows = list(blocks(job_id, wanted).filter(first_seq__lt=below).order_by("-last_seq")[:count])
        if rows:
            rows.reverse()
            yield fresh_of(rows).pick(replace(wanted, before=below))
            below = rows[0].first_seq
        if len(rows) < count:
            break
        count = _more(rows, count)
    yield from _sealed(job_id, replace(wanted, before=below), newest_first=True)


def blocks(job_id: str, wanted: Wanted) -> QuerySet[LogBlock]:
    """Unsealed rows, with role and index of their worker."""
    rows = LogBlock.objects.filter(job_id=job_id, last_seq__gt=wanted.after, first_seq__lt=wanted.before)
    rows = rows.annotate(role=F("worker__role"), index=F("worker__index"))
    if wanted.attempt is not None:
        rows = rows.filter(attempt=wanted.attempt)
    if wanted.worker is not None:
        role, _dash, index = wanted.worker.rpartition("-")
        rows = rows.filter(worker__role=role, worker__index=int(index))
    return rows


def _sealed(job_id: str, wanted: Wanted, *, newest_first: bool = False) -> Iterator[Stretch]:
    while True:
        found = LogChunk.objects.filter(job_id=job_id, last_seq__gt=wanted.after, first_seq__lt=wanted.before)
        chunks = list(found.order_by("-first_seq" if newest_first else "first_seq")[:CHUNKS_AT_ONCE])
        for chunk in chunks:
            if any(wanted.has(writer) for writer in chunk.writers):
                yield sealed_of(chunk).pick(wanted)
        if len(chunks) < CHUNKS_AT_ONCE:
            return
        if newest_first:
            wanted = replace(wanted, before=chunks[-1].first_seq)
        else:
            wanted = replace(wanted, after=chunks[-1].last_seq)


def sealed_of(chunk: LogChunk) -> Stretch:
    """A chunk's lines; where the storage has lost them, one line that says so."""
    try:
        body = chunks.load(chunk)
    except chunks.ChunkLost as error:
        logger.error("Log of %s: %s", chunk.job_id, error)
        return Fresh(
            writers=[tuple(chunk.writers[0])],
            seqs=np.array([chunk.first_seq]),
            times=np.array([chunk.sealed_at.timestamp()]),
            writer=np.zeros(1, dtype=np.uint16),
            overwritten=np.zeros(1, dtype=np.bool_),
            levels=np.full(1, Level.ERROR, dtype=np.uint8),
            words=[f"[{error}]"],
        )
    return Sealed(
        writers=[(attempt, worker) for attempt, worker in chunk.writers],
        seqs=np.arange(chunk.first_seq, chunk.last_seq + 1),
        times=body.times,
        writer=body.writer,
        overwritten=body.overwritten,
        levels=body.levels,
        body=body,
    )


def _more(rows: Sequence[LogBlock], count: int) -> int:
    return min(ROWS_AT_MOST, 2 * count) if sum(len(row.body) for row in rows) < BYTES_AT_ONCE else count
