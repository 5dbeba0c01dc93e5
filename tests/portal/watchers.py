"""Real processes of `manage.py watch_cluster` on the database of a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection

from jobs.turns import LOCKS
from tests.portal.running import CHECKOUT

OURS = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")


class Watcher:
    """`clusters` is a file for TRAINHALL_CLUSTERS, or "local"."""

    def __init__(self, data: Path, name: str, *, clusters: str = "local") -> None:
        self.log = data / f"{name}.log"
        kept = {key: value for key, value in os.environ.items() if key not in OURS}
        database = settings.DATABASE_URL.replace("/trainhall?", f"/{connection.settings_dict['NAME']}?")
        environment = {
            "DATABASE_URL": database,
            "DJANGO_SETTINGS_MODULE": "portal.settings.dev",
            "TRAINHALL_DATA_DIR": str(data),
            "TRAINHALL_CLUSTERS": clusters,
        }
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "watch_cluster"],
                cwd=CHECKOUT,
                env=kept | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def says(self, words: str) -> int:
        return self.log.read_text().count(words)

    @property
    def acts(self) -> bool:
        """By its last word about whose turn it is."""
        words = [line for line in self.log.read_text().splitlines() if " is watched " in line or "The turn to" in line]
        return bool(words) and words[-1].endswith("is watched here")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def watchers(*started: Watcher) -> Iterator[list[Watcher]]:
    """Ended whatever happens; more may be added meanwhile."""
    all_of_them = list(started)
    try:
        yield all_of_them
    finally:
        for one in all_of_them:
            one.kill()


def holders() -> list[int]:
    """The sessions of PostgreSQL that hold a turn."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [LOCKS],
        )
        return [pid for (pid,) in cursor.fetchall()]
