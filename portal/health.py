"""Is each part of the portal well, and what do people lose while it is not?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import redis
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from psycopg.conninfo import make_conninfo

from jobs.cluster.registry import kinds
from jobs.turns import HELD, LOCKS
from portal.celery import BEAT_KEY, SYNC_EVERY, app
from portal.templatetags.shown import span

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PATIENCE = 3  # seconds for each part; all are asked at once
BEAT_SILENT_AFTER = 25.0
CLUSTER_SILENT_AFTER = 60.0
LONGEST_PASS = 110.0  # seconds that a pass over the directory may take
DIRECTORY = "directory"
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tile:
    """One part: is it well, in words, and what is lost while it is not."""

    name: str
    ok: bool
    text: str
    loses: str
    is_needed: bool = True  # without it this portal should get no requests


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


def _ask_database(query: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(make_conninfo(settings.DATABASE_URL, connect_timeout=PATIENCE)) as connection:
        connection.execute("SET statement_timeout = '3s'")
        return connection.execute(query, values).fetchall()


def ask_watcher() -> str:
    known = {name for (name,) in _ask_database("SELECT name FROM jobs_cluster")} & set(kinds())
    held = {key for (key,) in _ask_database(HELD, LOCKS)}
    keys = dict(_ask_database("SELECT name, hashtext(name) FROM unnest(%s::text[]) AS name", sorted(known)))
    if left := [name for name, key in sorted(keys.items()) if key not in held]:
        raise Unwell(_("Nobody watches %(names)s.") % {"names": ", ".join(left)})
    if not known:
        return _("There is no cluster to watch.")
    return _("Watched: %(names)s.") % {"names": ", ".join(sorted(known))}


def ask_cluster(name: str) -> str:
    """Why it is not seen is told to who has signed in: its addresses are nothing for this page, which anybody may ask."""
    query = "SELECT extract(epoch FROM now() - seen_at)::float FROM jobs_cluster WHERE name = %s"
    [(age,)] = _ask_database(query, name) or [(None,)]
    if age is None:
        raise Unwell(_("It was not seen yet."))
    if age > CLUSTER_SILENT_AFTER:
        raise Unwell(_("Not seen for %(age)d s.") % {"age": age})
    return _("Seen %(age)d s ago.") % {"age": age}


def ask_directory() -> str:
    """By the passes over it, so that nobody who asks this page makes the portal ask the directory.

    Whatever is wrong with it in detail is told to admins on the page Access: anybody may read this one.
    """
    query = (
        "SELECT is_applied, coalesce(problems @> '[[\"away\"]]', false), extract(epoch FROM now() - started_at)::float"
        " FROM accounts_directorysync ORDER BY started_at DESC, id DESC LIMIT 1"
    )
    rows = _ask_database(query)
    if not rows:
        return _("It was not read yet; a pass over it comes every %(seconds)d s.") % {"seconds": SYNC_EVERY}
    is_applied, is_away, age = rows[0]
    if age > 2 * SYNC_EVERY + LONGEST_PASS:
        raise Unwell(_("No pass over it since %(age)s.") % {"age": span(age)})
    if is_applied:
        return _("Rights were brought in line with it %(age)s ago.") % {"age": span(age)}
    if is_away:
        raise Unwell(_("It could not be asked %(age)s ago.") % {"age": span(age)})
    raise Unwell(
        _("The pass %(age)s ago changed nothing, for too much would have gone: an admin looks at the page Access.")
        % {"age": span(age)}
    )


PARTS: list[tuple[str, Callable[[], str], StrOrPromise]] = [
    ("postgres", ask_postgres, gettext_lazy("Nothing can be read or submitted; running jobs go on.")),
    ("valkey", ask_valkey, gettext_lazy("Pages do not update by themselves, and new jobs start later.")),
    ("worker", ask_worker, gettext_lazy("New jobs wait and stops are late; running jobs and their metrics go on.")),
    ("beat", ask_beat, gettext_lazy("What was lost on the way is repaired late; points are not compressed.")),
    ("watcher", ask_watcher, gettext_lazy("Statuses and logs stand still; running jobs and their metrics go on.")),
]
OF_A_CLUSTER = gettext_lazy(
    "Its jobs run on and are shown as they were; none starts there. Other clusters are as ever."
)
OF_THE_DIRECTORY = gettext_lazy(
    "Its people may be unable to sign in, and what changes in it is not followed. Who is signed in goes on as before."
)


def look() -> list[Tile]:
    """Ask every part at once."""
    clusters = [(f"cluster {name}", partial(ask_cluster, name), OF_A_CLUSTER) for name in kinds()]
    parts = [*PARTS, *clusters]
    if settings.DIRECTORY is not None:
        parts.append((DIRECTORY, ask_directory, OF_THE_DIRECTORY))
    with ThreadPoolExecutor(max_workers=len(parts)) as pool:
        return list(pool.map(lambda part: _ask(*part), parts))


def _ask(name: str, question: Callable[[], str], loses: object) -> Tile:
    needed = name != DIRECTORY  # sessions, tokens and the local admin's sign-in go on without it
    try:
        return Tile(name, True, question(), str(loses), needed)
    except Unwell as problem:
        return Tile(name, False, str(problem), str(loses), needed)
    except Exception as error:  # whatever a dependency raises, it is unwell, and the page that says so must be drawn
        logger.warning("%s is unwell: %s", name, error)
        words = _("It does not answer (%(kind)s).") % {"kind": type(error).__name__}
        return Tile(name, False, words, str(loses), needed)
