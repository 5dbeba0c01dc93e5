"""A pytest plugin that starts PostgreSQL and Valkey once for a whole run, before Django's settings are read.

Loaded with `-p tests.servers` (pyproject.toml): a conftest would come too late, since pytest-django reads the settings first.
Workers of pytest-xdist inherit PostgreSQL, where each has a database, from the process that started it.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from portal.embedded.home import find_home, make_home
from portal.embedded.postgres import Postgres
from portal.embedded.valkey import Valkey

# the data of a test run is thrown away, so nothing waits for the disk
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")

_started: list[Postgres | Valkey] = []
_folders: list[Path] = []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    # a shell's `&` starts us deaf to Ctrl-C, and whatever a test starts would be, too
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        # its own files and its own channels: what another worker publishes would be heard here, too
        os.environ["REDIS_URL"] = ""
        _start(prefix=f"trainhall-tests-{worker}-")
        return
    _start(prefix="trainhall-tests-")


def _start(*, prefix: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    _folders.append(folder)
    home = find_home(folder, {"TRAINHALL_DATA_DIR": str(folder / "data")}, uid=os.geteuid())
    make_home(home)
    if not os.environ.get("DATABASE_URL"):
        postgres = Postgres(home)
        postgres.prepare(durable=False)
        postgres.start(options=QUICK)
        _started.append(postgres)
        os.environ["DATABASE_URL"] = postgres.url("trainhall")
    if not os.environ.get("REDIS_URL"):
        valkey = Valkey(home)
        valkey.start(durable=False)
        _started.append(valkey)
        os.environ["REDIS_URL"] = valkey.url
    os.environ["TRAINHALL_DATA_DIR"] = str(home.data)
    for server in _started:
        server.wait_ready()


def pytest_unconfigure() -> None:
    while _started:
        _started.pop().stop()
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
