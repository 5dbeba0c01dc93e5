"""How often one may try to sign in: 5 failures a minute per name, 20 per address, counted in PostgreSQL.

A try is written down before the password is looked at and taken back when it was right, so that 200 tries at once
cannot all pass the count together.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from accounts.models import LoginAttempt
from accounts.namespaces import spelling

PER_NAME = 5
PER_ADDRESS = 20
WINDOW = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Try:
    """One try that may go on. `left` is how many more this name has if it fails."""

    row: LoginAttempt
    left: int

    def was_right(self) -> None:
        """The name's failures are forgotten; those of others from this address are not."""
        LoginAttempt.objects.filter(name_digest=self.row.name_digest).delete()


@dataclass(frozen=True, slots=True)
class TooMany:
    seconds: int  # until the next try


@transaction.atomic
def begin(username: str, address: str | None) -> Try | TooMany:
    digest = hashlib.sha256(spelling(username).encode("utf-8", "surrogatepass")).hexdigest()
    where = address or ""
    _lock(f"login name {digest}", f"login address {where}")
    now = timezone.now()
    LoginAttempt.objects.filter(at__lt=now - 2 * WINDOW).delete()
    recent = LoginAttempt.objects.filter(at__gt=now - WINDOW)
    of_name = recent.filter(name_digest=digest)
    waits = [_wait(of_name, PER_NAME, now), _wait(recent.filter(address=where), PER_ADDRESS, now)]
    if wait := max(waits):
        return TooMany(seconds=wait)
    left = PER_NAME - of_name.count() - 1
    return Try(row=LoginAttempt.objects.create(name_digest=digest, address=where), left=left)


def _wait(rows: QuerySet[LoginAttempt], limit: int, now: datetime) -> int:
    """Seconds until fewer than `limit` of these rows are inside the window; 0 if it is so now."""
    blocking = rows.order_by("-at")[limit - 1 : limit].aggregate(oldest=Max("at"))["oldest"]
    return 0 if blocking is None else max(1, math.ceil((blocking + WINDOW - now).total_seconds()))


def _lock(*names: str) -> None:
    """Taken in one order by everybody, so that two tries cannot wait for each other."""
    with connection.cursor() as cursor:
        for key in sorted(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True) for name in names):
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
