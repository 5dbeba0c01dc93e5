"""Bring the database, the demo and the static files up to date; prints the demo password as its last line."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand

from portal import seed


class Command(BaseCommand):
    help = "Migrate, fill in the demo, gather static files. Safe to repeat; `manage.py up` calls it."

    def handle(self, *_args: Any, **_options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        password = seed.seed()
        self.gather_static()
        self.stdout.write(password)

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
