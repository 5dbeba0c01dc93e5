"""Is each part of the portal well, and what do people lose while it is not?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
import redis
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from psycopg.conninfo import make_conninfo

from portal.celery import BEAT_KEY, app

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PATIENCE = 3  # seconds for each part; all are asked at once
BEAT_SILENT_AFTER = 25.0
CLUSTER_SILENT_AFTER = 25.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tile:
    """One part: is it well, in words, and what is lost while it is not."""

    name: str
    ok: bool
    text: str
    loses: str


class Unwell(Exception):
    """A part answers, but not as it should."""


def ask_postgres() -> str:
    # a connection of its own: one from Django's would be in the state of this request
    with psycopg.connect(make_conninfo(settings.DATABASE_URL, connect_timeout=PATIENCE)) as connection:
        connection.execute("SET statement_timeout = '3s'")
        row = connection.execute("SELECT split_part(version(), ' ', 2)").fetchone()
    return _("PostgreSQL %(version)s answers.") % {"version": row[0] if row else "?"}


def _valkey() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)


def ask_valkey() -> str:
    with _valkey() as client:
        client.ping()
    return _("It answers.")


def ask_worker() -> str:
    answers = app.control.ping(timeout=1.0)
    if not answers:
        raise Unwell(_("No worker answers."))
    return _("%(count)d worker answers.") % {"count": len(answers)}


def ask_beat() -> str:
    with _valkey() as client:
        beaten = client.get(BEAT_KEY)
    age = time.time() - float(beaten) if beaten else None
    if age is None or age > BEAT_SILENT_AFTER:
        raise Unwell(_("No beat for %(age)s s.") % {"age": "?" if age is None else int(age)})
    return _("Last beat %(age)d s ago.") % {"age": age}


def ask_watcher() -> str:
    with psycopg.connect(make_conninfo(settings.DATABASE_URL, connect_timeout=PATIENCE)) as connection:
        connection.execute("SET statement_timeout = '3s'")
        rows = connection.execute(
            "SELECT name, extract(epoch FROM now() - seen_at)::float FROM jobs_cluster ORDER BY name"
        ).fetchall()
    late = [(name, age) for name, age in rows if age is None or age > CLUSTER_SILENT_AFTER]
    if late:
        name, age = late[0]
        raise Unwell(_("%(name)s not seen for %(age)s s.") % {"name": name, "age": "?" if age is None else int(age)})
    return ", ".join(_("%(name)s seen %(age)d s ago") % {"name": name, "age": age} for name, age in rows) + "."


PARTS: list[tuple[str, Callable[[], str], StrOrPromise]] = [
    ("postgres", ask_postgres, gettext_lazy("Nothing can be read or submitted; running jobs go on.")),
    ("valkey", ask_valkey, gettext_lazy("Pages do not update by themselves, and new jobs start later.")),
    ("worker", ask_worker, gettext_lazy("New jobs wait and stops are late; running jobs and their metrics go on.")),
    ("beat", ask_beat, gettext_lazy("What was lost on the way is repaired late; points are not compressed.")),
    ("watcher", ask_watcher, gettext_lazy("Statuses and logs stand still; running jobs and their metrics go on.")),
]


def look() -> list[Tile]:
    """Ask every part at once."""
    with ThreadPoolExecutor(max_workers=len(PARTS)) as pool:
        return list(pool.map(lambda part: _ask(*part), PARTS))


def _ask(name: str, question: Callable[[], str], loses: object) -> Tile:
    try:
        return Tile(name, True, question(), str(loses))
    except Unwell as problem:
        return Tile(name, False, str(problem), str(loses))
    except Exception as error:  # whatever a dependency raises, it is unwell, and the page that says so must be drawn
        logger.warning("%s is unwell: %s", name, error)
        return Tile(name, False, _("It does not answer (%(kind)s).") % {"kind": type(error).__name__}, str(loses))
