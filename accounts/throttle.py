"""How often one may try to sign in: 5 failures a minute per name, 20 per address, counted in PostgreSQL.

A directory hears of at most 3 wrong passwords in 10 minutes for one account, however it was spelt: many tries would lock the
account there, for everything (RELIABILITY R55).

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
BINDS = 3
BIND_WINDOW = timedelta(minutes=10)
FORGOTTEN = ""  # the name of a failure that counts for its address only
BIND = "bind-"  # how the digest of a bind begins; no digest of a name does


@dataclass(frozen=True, slots=True)
class Try:
    """One try that may go on. `left` is how many more this name has if it fails, `left_here` how many this address has."""

    row: LoginAttempt
    left: int
    left_here: int = PER_ADDRESS

    def was_right(self) -> None:
        """The name's failures are forgotten; an address that tried this name, too, has still failed so often."""
        of_name = LoginAttempt.objects.filter(name_digest=self.row.name_digest)
        of_name.filter(address=self.row.address).delete()
        of_name.update(name_digest=FORGOTTEN)

    def blame_the_directory(self) -> None:
        """It was away: the name has failed, the address has not. Behind one address a whole lab presses the button, and the
        local admin, who could mend it, must get in.
        """
        LoginAttempt.objects.filter(pk=self.row.pk).update(address="away")

    def take_back(self) -> None:
        """Nobody looked at the password."""
        self.row.delete()


@dataclass(frozen=True, slots=True)
class TooMany:
    seconds: int  # until the next try


@transaction.atomic
def begin(username: str, address: str | None) -> Try | TooMany:
    digest = _digest(spelling(username))
    where = address or ""
    _lock(f"login name {digest}", f"login address {where}")
    now = timezone.now()
    LoginAttempt.objects.filter(at__lt=now - 2 * BIND_WINDOW).delete()
    of_name = LoginAttempt.objects.filter(name_digest=digest)
    of_address = LoginAttempt.objects.filter(address=where).exclude(name_digest__startswith=BIND)
    waits = [_wait(of_name, PER_NAME, WINDOW, now), _wait(of_address, PER_ADDRESS, WINDOW, now)]
    if wait := max(waits):
        return TooMany(seconds=wait)
    left = PER_NAME - of_name.filter(at__gt=now - WINDOW).count() - 1
    left_here = PER_ADDRESS - of_address.filter(at__gt=now - WINDOW).count() - 1
    return Try(row=LoginAttempt.objects.create(name_digest=digest, address=where), left=left, left_here=left_here)


@transaction.atomic
def begin_bind(entry: str) -> Try | TooMany:
    """One try that the directory would hear of. `entry` is what the tries have in common, such as the DN."""
    digest = BIND + _digest(entry)[len(BIND) :]
    _lock(f"login bind {digest}")
    now = timezone.now()
    of_entry = LoginAttempt.objects.filter(name_digest=digest)
    if wait := _wait(of_entry, BINDS, BIND_WINDOW, now):
        return TooMany(seconds=wait)
    left = BINDS - of_entry.filter(at__gt=now - BIND_WINDOW).count() - 1
    return Try(row=LoginAttempt.objects.create(name_digest=digest), left=left)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _wait(rows: QuerySet[LoginAttempt], limit: int, window: timedelta, now: datetime) -> int:
    """Seconds until fewer than `limit` of these rows are inside the window; 0 if it is so now."""
    recent = rows.filter(at__gt=now - window)
    blocking = recent.order_by("-at")[limit - 1 : limit].aggregate(oldest=Max("at"))["oldest"]
    return 0 if blocking is None else max(1, math.ceil((blocking + window - now).total_seconds()))


def _lock(*names: str) -> None:
    """Taken in one order by everybody, so that two tries cannot wait for each other."""
    with connection.cursor() as cursor:
        for key in sorted(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True) for name in names):
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
