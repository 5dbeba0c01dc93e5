"""Points as they lie in the database, sealed and not yet: what every reader of them begins with. DESIGN 11.13 says how they lie.

Readers take unsealed rows first and chunks second: a seal that commits in between moves points from where they have looked
to where they still look. A row whose number is not above what its series' chunks hold has been sealed meanwhile and is left
out, so an older row never covers a newer chunk.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg
from django.db import connection, transaction
from django.utils.translation import gettext as _
from psycopg.sql import SQL, Identifier

from metrics import chunks
from metrics.chunks import Run
from metrics.models import Chunk, PointBatch
from metrics.packed import unpack

CHUNK_MEASURES = (
    "id attempt rank key group first_step last_step first_time last_time count bad min max last seq open".split()
)
logger = logging.getLogger(__name__)


class SeriesId(NamedTuple):
    key: str
    rank: int
    attempt: int


@dataclass(slots=True)
class Tail:
    """Unsealed points of one series, in the order of their arrival."""

    group: str = ""
    pieces: list[tuple[int, Run]] = field(default_factory=list)

    def above(self, seq: int) -> Run:
        return chunks.last_wins([run for number, run in self.pieces if number > seq])


@dataclass(frozen=True, slots=True)
class Gap:
    """Points that were sealed and cannot be read any more."""

    first_step: int
    last_step: int
    count: int

    @property
    def text(self) -> str:
        return _("Steps %(first)d to %(last)d, %(count)d points, are damaged in the database.") % {
            "first": self.first_step,
            "last": self.last_step,
            "count": self.count,
        }


@contextmanager
def one_moment() -> Iterator[None]:
    """All reads inside see the same moment. Inside somebody's transaction it is their isolation that counts."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


def read_tails(
    job_id: str, *, keys: Collection[str] | None, attempts: Collection[int] | None, ranks: Collection[int] | None
) -> dict[SeriesId, Tail]:
    rows = PointBatch.objects.filter(job_id=job_id, body__isnull=False)
    if attempts is not None:
        rows = rows.filter(attempt__in=attempts)
    if ranks is not None:
        rows = rows.filter(rank__in=ranks)
    found: dict[SeriesId, Tail] = defaultdict(Tail)
    for attempt, rank, seq, body in rows.order_by("seq").values_list("attempt", "rank", "seq", "body"):
        assert body is not None  # the query leaves sealed rows out
        for one in unpack(body):
            if keys is None or one.key in keys:
                tail = found[SeriesId(one.key, rank, attempt)]
                tail.group = one.group
                tail.pieces.append((seq, Run(one.step, one.time, one.value)))
    return found


def read_measures(
    job_id: str, *, keys: Collection[str] | None, attempts: Collection[int] | None, ranks: Collection[int] | None
) -> dict[SeriesId, list[dict[str, Any]]]:
    """The measures of chunks, without their points, in order of step."""
    rows = Chunk.objects.filter(job_id=job_id)
    if keys is not None:
        rows = rows.filter(key__in=keys)
    if attempts is not None:
        rows = rows.filter(attempt__in=attempts)
    if ranks is not None:
        rows = rows.filter(rank__in=ranks)
    found: dict[SeriesId, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.order_by("key", "attempt", "rank", "first_step").values(*CHUNK_MEASURES):
        found[SeriesId(row["key"], row["rank"], row["attempt"])].append(row)
    return found


def points_of(rows: Sequence[dict[str, Any]], gaps: list[Gap]) -> list[Run]:
    """The points of chunks; what cannot be read is added to the gaps instead."""
    bodies = column("body", [row["id"] for row in rows])
    found = []
    for row in rows:
        try:
            found.append(chunks.decompress(bodies[row["id"]] or b"", row["count"]))
        except chunks.Damaged as error:
            gaps.append(Gap(row["first_step"], row["last_step"], row["count"]))
            logger.error("Chunk %d, %s: %s", row["id"], gaps[-1].text, error)
    return found


def column(name: str, ids: Sequence[int]) -> dict[int, bytes | None]:
    """The body or the coarse rows of chunks, by their ids."""
    if not ids:
        return {}
    with connection.cursor() as cursor:
        # as bytes over the wire, not as twice as many hexadecimal digits: a long series is many megabytes
        binary = psycopg.Cursor(cursor.connection)
        query = SQL("SELECT id, {} FROM metrics_chunk WHERE id = ANY(%s)").format(Identifier(name))
        binary.execute(query, [list(ids)], binary=True)
        return dict(binary.fetchall())


def sealed_up_to(rows: Sequence[dict[str, Any]]) -> int:
    return max((row["seq"] for row in rows), default=0)
