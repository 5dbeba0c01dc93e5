"""Whose turn it is to watch a cluster: any number of watchers may run, one acts (KUBERNETES 4.2).

A session's advisory lock, so that it goes with the process or its connection, whichever ends first. It needs a connection of its
own straight to PostgreSQL: a bouncer that pools transactions would hand the lock to strangers.
"""

from __future__ import annotations

import logging
import select
import threading
from typing import Any

import psycopg
from django.db import connection as default

LOCKS = 0x77617463  # the first of the two numbers of the lock; the second is made of the cluster's name
HELD = (
    "SELECT objid::bigint - CASE WHEN objid::bigint > 2147483647 THEN 4294967296 ELSE 0 END FROM pg_locks"
    " WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = %s"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)  # the second numbers of the turns that somebody has
BEAT = 1.0  # seconds between two words to the server; also between two tries to get the turn
# a watcher that hangs as a whole loses its turn, and so does one whose machine went away without a word
OPTIONS = (
    "-c idle_session_timeout=11s -c statement_timeout=5s -c tcp_keepalives_idle=4 -c tcp_keepalives_interval=2"
    " -c tcp_keepalives_count=2"
)
logger = logging.getLogger(__name__)


class Turn(threading.Thread):
    """Asks for the turn until it has it, and keeps it. `is_mine` and `is_elsewhere` are both unset while nobody can say."""

    def __init__(self, cluster: str) -> None:
        super().__init__(name=f"turn of {cluster}", daemon=True)
        self.cluster = cluster
        self.is_mine = threading.Event()
        self.is_elsewhere = threading.Event()

    def run(self) -> None:
        pause = threading.Event()
        while True:
            try:
                with self._connect() as connection:
                    self._sit(connection)
            except psycopg.Error as error:
                logger.warning("The turn to watch %s is lost, or cannot be asked for: %s", self.cluster, error)
            self.is_mine.clear()
            self.is_elsewhere.clear()
            pause.wait(BEAT)

    def _connect(self) -> psycopg.Connection[Any]:
        address = default.get_connection_params()
        return psycopg.connect(
            **address
            | {
                "autocommit": True,
                "connect_timeout": 5,
                "application_name": f"trainhall watcher of {self.cluster}"[:63],
                "options": f"{address.get('options', '')} {OPTIONS}",
                "keepalives_idle": 4,
                "keepalives_interval": 2,
                "keepalives_count": 2,
                "tcp_user_timeout": 8000,
            }
        )

    def _sit(self, connection: psycopg.Connection[Any]) -> None:
        while True:
            if self.is_mine.is_set():
                connection.execute("SELECT 1")
            else:
                row = connection.execute(
                    "SELECT pg_try_advisory_lock(%s, hashtext(%s))", [LOCKS, self.cluster]
                ).fetchone()
                mine, other = (self.is_mine, self.is_elsewhere) if row and row[0] else (self.is_elsewhere, self.is_mine)
                other.clear()
                if not mine.is_set():
                    logger.info("%s is watched %s", self.cluster, "here" if mine is self.is_mine else "elsewhere")
                mine.set()
            # the server says nothing unasked but that it ends the connection
            select.select([connection], [], [], BEAT)
