"""A data folder as the first start of a portal leaves it but for the demo, made once and copied for each portal of a test.

Making the database, its tables and the compressed files takes most of a first start. It is seen from nothing in test_up.py.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from portal.embedded import environment
from portal.embedded.home import find_home, make_home
from portal.embedded.postgres import Postgres
from tests.servers import QUICK

CHECKOUT = Path(__file__).resolve().parents[2]
MADE_OF = ("*/migrations/*.py", "static/**/*", "requirements/runtime.txt", "portal/embedded/*.py")
PREPARE = """
import django; django.setup()
from django.core.management import call_command
from portal.management.commands.prepare import Command
call_command("migrate", verbosity=0, interactive=False)
Command().gather_static()
"""


def begin_with(data: Path) -> None:
    """Fill an empty data folder. One that has a database, or environment that names one, is left as it is."""
    if (data / "postgres").exists():
        return
    for part in _template().iterdir():
        # with owners and times: PostgreSQL's folder belongs to its account, and files are gathered again if they are newer
        subprocess.run(["cp", "-a", str(part), str(data)], check=True)


def _template() -> Path:
    prefix = f"trainhall-prepared-{os.geteuid()}-{hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]}"
    folder = Path(tempfile.gettempdir()) / prefix
    folder.mkdir(mode=0o711, exist_ok=True)
    folder.chmod(0o711)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = folder / _state()
        if not wanted.exists():
            for old in folder.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            _make(folder / "new", wanted)
    return wanted


def _state() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for pattern in MADE_OF:
        for path in sorted(CHECKOUT.glob(pattern)):
            if path.is_file():
                stat = path.stat()
                digest.update(f"{path} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _make(folder: Path, wanted: Path) -> None:
    own = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    home = find_home(CHECKOUT, {"TRAINHALL_DATA_DIR": str(folder)}, uid=os.geteuid())
    make_home(home)
    postgres = Postgres(home)
    postgres.prepare(durable=False)
    postgres.start(options=QUICK)
    try:
        postgres.wait_ready()
        postgres.ensure_database(environment.DATABASE)
        told = environment.of_home(
            home, {name: value for name, value in own.items() if not name.startswith("TRAINHALL_")}
        )
        told["DJANGO_SETTINGS_MODULE"] = "portal.settings.dev"
        subprocess.run([sys.executable, "-c", PREPARE], cwd=CHECKOUT, env=told, check=True)
    finally:
        postgres.stop()
    kept = ("postgres", "postgres-password", "static")
    for part in folder.iterdir():
        if part.name not in kept and not part.name.startswith("pg-"):
            shutil.rmtree(part) if part.is_dir() else part.unlink()
    folder.chmod(0o711)
    folder.rename(wanted)
