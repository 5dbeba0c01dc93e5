"""Bring the database, the demo and the static files up to date."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader

from portal import seed

OURS = ("accounts", "jobs", "metrics")


class Command(BaseCommand):
    help = "Migrate, fill in the demo, gather static files. Safe to repeat; `manage.py up` calls it."

    def handle(self, *_args: Any, **_options: Any) -> None:
        try:
            self.check_not_newer()
        except OperationalError as error:
            raise CommandError(f"The database does not answer: {str(error).splitlines()[0]}") from error
        call_command("migrate", verbosity=0, interactive=False)
        seed.seed()
        self.gather_static()

    def check_not_newer(self) -> None:
        """Refuse a database that a newer Trainhall has migrated: this one does not know its tables."""
        loader = MigrationLoader(connection)
        unknown = sorted(
            name for name in set(loader.applied_migrations) - set(loader.disk_migrations) if name[0] in OURS
        )
        if unknown:
            app, name = unknown[0]
            raise CommandError(
                f"The database was written by a newer Trainhall (it has the migration {app}.{name}): update this checkout,"
                " or move the data folder away to begin afresh."
            )

    def gather_static(self) -> None:
        """Only when a file has changed: hashing and compressing take seconds."""
        root = Path(settings.STATIC_ROOT)
        stamp = root / ".gathered"
        state = self.state_of_sources()
        if stamp.exists() and stamp.read_text() == state:
            return
        call_command("collectstatic", verbosity=0, interactive=False, clear=root.exists())
        stamp.write_text(state)

    def state_of_sources(self) -> str:
        digest = hashlib.sha256()
        for finder in get_finders():
            for path, storage in finder.list([]):
                stat = Path(storage.path(path)).stat()
                digest.update(f"{path} {stat.st_size} {stat.st_mtime_ns}\n".encode())
        return digest.hexdigest()
