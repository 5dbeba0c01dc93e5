"""The one door in: whatever brings points, a request or a line of output, stores them through here.

`storing` is the whole procedure as a generator of queries, so that the asynchronous HTTP door and the synchronous ones run
the same steps. A batch whose names are all known is one statement: it takes the lock of the job's JobFeed row, stores the
batch under the next number and raises the feed. Because the lock is held until the commit, numbers become visible in order:
who has read up to N misses nothing below N.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson
from django.db import connection, transaction

from jobs import live
from metrics.batches import Batch
from metrics.packed import pack
from metrics.sources import SDK, lesser_than
from metrics.spelling import as_json

MAX_KEYS = 5000  # names of one job
HEADLINE_KEYS = 8

Query: TypeAlias = tuple[str, dict[str, Any]]
Rows: TypeAlias = list[tuple[Any, ...]]
Storing: TypeAlias = "Generator[Query, Rows, Outcome]"


@dataclass(slots=True)
class Outcome:
    """What became of a batch. `seq` is None where it was here before and nothing has changed."""

    seq: int | None
    accepted: int
    keys: frozenset[str] = frozenset()  # known to the database once the transaction is committed

    @property
    def repeated(self) -> bool:
        return self.seq is None


class KnownKeys:
    """Names that are in MetricKey already, by job and source: those of the jobs that reported last.

    A key is never taken back and its source only rises, so what stands here stays true, and a batch of known names needs no
    look at the table.
    """

    def __init__(self, room: int = 200_000) -> None:
        self._room = room
        self._jobs: OrderedDict[tuple[str, str], frozenset[str]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def of(self, job_id: str, source: str = SDK) -> frozenset[str]:
        return self._jobs.get((job_id, source), frozenset())

    def add(self, job_id: str, keys: Iterable[str], source: str = SDK) -> None:
        with self._lock:
            before = self._jobs.pop((job_id, source), frozenset())
            self._jobs[job_id, source] = after = before.union(keys)
            self._size += len(after) - len(before)
            while self._size > self._room and len(self._jobs) > 1:
                _job, dropped = self._jobs.popitem(last=False)
                self._size -= len(dropped)


known_keys = KnownKeys()

# NO KEY UPDATE: rows that refer to the job may be written meanwhile. A repeat stores nothing, so it raises nothing.
STORE = """
WITH feed AS MATERIALIZED (
    SELECT job_id, points_seq FROM jobs_jobfeed WHERE job_id = %(job)s FOR NO KEY UPDATE
), stored AS (
    INSERT INTO metrics_pointbatch (job_id, attempt, rank, batch, seq, received_at, points, body)
    SELECT job_id, %(attempt)s, %(rank)s, %(batch)s, points_seq + 1, clock_timestamp(), %(points)s, %(body)s FROM feed
    ON CONFLICT DO NOTHING
    RETURNING seq
), raised AS (
    UPDATE jobs_jobfeed AS old SET
        points_seq = stored.seq,
        points_at = clock_timestamp(),
        progress = metrics_progress(old.progress, %(progress)s::jsonb),
        headline = metrics_headline(old.headline, %(headline)s::jsonb, %(rank)s = 0),
        key_count = old.key_count + %(new_keys)s,
        refused_points = old.refused_points + %(refused)s
    FROM stored WHERE old.job_id = %(job)s
    RETURNING old.points_seq
)
SELECT (SELECT count(*) FROM feed), (SELECT points_seq FROM raised)
"""
MAKE_FEED = """
INSERT INTO jobs_jobfeed (job_id, points_seq, log_seq, progress, headline, key_count, refused_points)
SELECT id, 0, 0, '{}', '{}', 0, 0 FROM jobs_job WHERE id = %(job)s ON CONFLICT DO NOTHING
"""
ACCEPTED_BEFORE = """
SELECT points FROM metrics_pointbatch
WHERE job_id = %(job)s AND attempt = %(attempt)s AND rank = %(rank)s AND batch = %(batch)s
"""
LOCK_FEED = "SELECT key_count FROM jobs_jobfeed WHERE job_id = %(job)s FOR NO KEY UPDATE"
STORED_KEYS = "SELECT key FROM metrics_metrickey WHERE job_id = %(job)s AND key = ANY(%(keys)s::text[])"
ADD_KEYS = "INSERT INTO metrics_metrickey (job_id, key, source) SELECT %(job)s, unnest(%(keys)s::text[]), %(source)s"
# a name belongs to the source that is believed most
RAISE_SOURCE = """
UPDATE metrics_metrickey SET source = %(source)s
WHERE job_id = %(job)s AND key = ANY(%(keys)s::text[]) AND source = ANY(%(lesser)s::text[])
"""
ADD_DISTRIBUTION = """
INSERT INTO metrics_distribution (job_id, attempt, rank, key, of, step, time, edges, counts, nan, inf)
VALUES (%(job)s, %(attempt)s, %(rank)s, %(key)s, %(of)s, %(step)s, %(time)s, %(edges)s, %(counts)s, %(nan)s, %(inf)s)
ON CONFLICT (job_id, key, of, attempt, rank, step) DO UPDATE SET
    time = excluded.time, edges = excluded.edges, counts = excluded.counts, nan = excluded.nan, inf = excluded.inf
"""


def is_one_statement(job_id: str, batch: Batch) -> bool:
    """Whether `storing` needs no transaction around it: nothing but the batch and the feed is written."""
    known = known_keys.of(job_id, batch.source)
    return not batch.distributions and all(one.key in known for one in batch.series)


def storing(job_id: str, attempt: int, batch: Batch, *, now: float) -> Storing:
    """Yield each query, be sent its rows, return the outcome. Takes refused names out of the batch."""
    where = {"job": job_id, "attempt": attempt, "rank": batch.rank, "batch": batch.id}
    new_keys: list[str] = []
    if not is_one_statement(job_id, batch):
        feed = yield LOCK_FEED, where
        if not feed:
            yield MAKE_FEED, where
            feed = yield LOCK_FEED, where
        if before := (yield ACCEPTED_BEFORE, where):
            return Outcome(None, before[0][0])
        new_keys = yield from _admit_keys(job_id, batch, room=MAX_KEYS - feed[0][0])
    parameters = {
        **where,
        "points": batch.points,
        "body": pack(batch.series),
        "progress": _progress_json(attempt, batch, now),
        "headline": _headline_json(batch),
        "new_keys": len(new_keys),
        "refused": batch.refusals.count,
    }
    [(feeds, seq)] = yield STORE, parameters
    if not feeds:
        yield MAKE_FEED, where
        [(feeds, seq)] = yield STORE, parameters
    if seq is None:
        [(accepted,)] = yield ACCEPTED_BEFORE, where
        return Outcome(None, accepted)
    for one in batch.distributions:
        yield (
            ADD_DISTRIBUTION,
            {
                **where,
                "key": one.key,
                "of": one.of,
                "step": one.step,
                "time": one.time,
                "edges": one.edges.tobytes(),
                "counts": one.counts.tobytes(),
                "nan": one.nan,
                "inf": one.inf,
            },
        )
    return Outcome(seq, batch.points, _names(batch))


def _names(batch: Batch) -> frozenset[str]:
    return frozenset(_all_names(batch))


def _all_names(batch: Batch) -> list[str]:
    return [*(one.key for one in batch.series), *(one.key for one in batch.distributions)]


def _admit_keys(job_id: str, batch: Batch, *, room: int) -> Generator[Query, Rows, list[str]]:
    """Let in as many new names as there is room for, those first that come first, and refuse the others by name.

    Runs under the lock of the feed, so two batches cannot fill the same room.
    """
    known = known_keys.of(job_id, batch.source)
    asked = [key for key in dict.fromkeys(_all_names(batch)) if key not in known]
    if not asked:
        return []
    stored = {key for (key,) in (yield STORED_KEYS, {"job": job_id, "keys": asked})}
    new = [key for key in asked if key not in stored]
    admitted, refused = new[: max(room, 0)], set(new[max(room, 0) :])
    if refused:
        message = f"a job has at most {MAX_KEYS:,} names of metrics; this one would be one more"
        for one in batch.series:
            if one.key in refused:
                batch.refusals.add(one.key, "too_many_keys", message, points=len(one))
        for tensor in batch.distributions:
            if tensor.key in refused:
                batch.refusals.add(tensor.key, "too_many_keys", message, step=tensor.step)
        batch.series = [one for one in batch.series if one.key not in refused]
        batch.distributions = [one for one in batch.distributions if one.key not in refused]
    if admitted:
        yield ADD_KEYS, {"job": job_id, "keys": admitted, "source": batch.source}
    if stored and (lesser := lesser_than(batch.source)):
        names = {"job": job_id, "keys": list(stored), "source": batch.source, "lesser": list(lesser)}
        yield RAISE_SOURCE, names
    return admitted


def _progress_json(attempt: int, batch: Batch, now: float) -> str | None:
    if batch.progress is None:
        return None
    where: dict[str, Any] = {"attempt": attempt, "rank": batch.rank, "at": now}
    if batch.source != SDK:
        where["source"] = batch.source
    return orjson.dumps({**batch.progress, **where}).decode()


def _headline_json(batch: Batch) -> str:
    """The last value sent of the first few names; not finite ones as the words that JSON can carry."""
    last: dict[str, float | str] = {}
    for one in batch.series:
        if one.key in last or len(last) < HEADLINE_KEYS:
            last[one.key] = as_json(float(one.value[-1]))
    return orjson.dumps(last).decode()


def accept(job_id: str, attempt: int, batch: Batch, *, namespace_id: int) -> Outcome:
    """Store a batch from synchronous code, such as the stdout door, and tell whoever watches."""
    with transaction.atomic(), connection.cursor() as cursor:
        steps = storing(job_id, attempt, batch, now=time.time())
        rows: Rows = []
        try:
            query = next(steps)
            while True:
                cursor.execute(*query)
                rows = cursor.fetchall() if cursor.description else []
                query = steps.send(rows)
        except StopIteration as end:
            outcome: Outcome = end.value
        if not outcome.repeated:
            transaction.on_commit(lambda: known_keys.add(job_id, outcome.keys, batch.source))
            live.publish(f"points/{job_id}", outcome.seq, namespace_id=namespace_id)
    return outcome
