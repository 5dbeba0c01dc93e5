"""The events of clusters, kept with the attempt they are about (D11): readable when the cluster has forgotten them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction

from jobs.cluster.events import Heard, heard
from jobs.documents import iso
from jobs.models import Attempt, ClusterEvent, Job

MOST = 200  # of one attempt: a cluster that says something new each second fills no table
_REMEMBERED = 20_000  # attempts
_FIELDS = ("message", "is_known", "count", "first_at", "last_at")


class EventKeeper:
    """Of one process that watches: writes only what is new since it wrote last."""

    def __init__(self) -> None:
        self._kept: dict[int, frozenset[Heard]] = {}  # by the attempt

    def keep(self, said: Iterable[tuple[Attempt, Sequence[Any], Sequence[Any]]]) -> None:
        """Of each attempt the events about its Jobs and pods, and the pods."""
        news: dict[int, list[Heard]] = {}
        for attempt, events, pods in said:
            found = heard(events, pods)
            if found and self._kept.get(attempt.pk) != frozenset(found):
                news[attempt.pk] = found
        if not news:
            return
        _write(news)
        if len(self._kept) > _REMEMBERED:
            self._kept.clear()
        self._kept.update({pk: frozenset(found) for pk, found in news.items()})


def _write(news: dict[int, list[Heard]]) -> None:
    with transaction.atomic():
        rows: dict[int, dict[str, ClusterEvent]] = defaultdict(dict)
        for stored in ClusterEvent.objects.filter(attempt__in=news):
            rows[stored.attempt_id][stored.fingerprint] = stored
        new, changed = [], []
        for attempt, found in news.items():
            known = rows[attempt]
            for one in found:
                mark = _fingerprint(one)
                row = known.get(mark)
                if row is not None:
                    if _renew(row, one):
                        changed.append(row)
                elif len(known) < MOST:
                    known[mark] = _row(attempt, mark, one)
                    new.append(known[mark])
        # another process that watched a moment ago may have written the same
        ClusterEvent.objects.bulk_create(new, ignore_conflicts=True, batch_size=1000)
        ClusterEvent.objects.bulk_update(changed, _FIELDS, batch_size=1000)


def _renew(row: ClusterEvent, one: Heard) -> bool:
    """The newest words; and as often as it was ever said, since the cluster forgets the oldest."""
    before = [getattr(row, name) for name in _FIELDS]
    if one.last_at >= row.last_at:
        row.message, row.is_known, row.last_at = one.message, one.is_known, one.last_at
    row.count, row.first_at = max(row.count, one.count), min(row.first_at, one.first_at)
    return before != [getattr(row, name) for name in _FIELDS]


def _row(attempt: int, mark: str, one: Heard) -> ClusterEvent:
    return ClusterEvent(
        attempt_id=attempt,
        fingerprint=mark,
        about=one.about[:60],
        reason=one.reason,
        message=one.message,
        is_warning=one.is_warning,
        is_known=one.is_known,
        count=one.count,
        first_at=one.first_at,
        last_at=one.last_at,
    )


def _fingerprint(one: Heard) -> str:
    return hashlib.sha256("\0".join(one.key).encode()).hexdigest()[:40]


def of_job(job: Job) -> list[dict[str, Any]]:
    """As they go over the wire, oldest first."""
    rows = ClusterEvent.objects.filter(attempt__job=job).select_related("attempt")
    return [
        {
            "attempt": row.attempt.number,
            "worker": row.about,
            "kind": "warning" if row.is_warning else "normal",
            "reason": row.reason,
            "text": row.message,
            "count": row.count,
            "first_at": iso(row.first_at),
            "last_at": iso(row.last_at),
        }
        for row in rows
    ]
