"""What the processes of one home are told, so that `manage.py` in another terminal finds the same database."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from portal.embedded.home import Home, find_home
from portal.embedded.postgres import Postgres
from portal.embedded.valkey import Valkey

DATABASE = "trainhall"


def secret_key(home: Home) -> str:
    """The site's key: made once, kept 0600 in the data folder."""
    path = home.data / "secret-key"
    if not path.exists():
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48))
    return path.read_text(encoding="ascii").strip()


def of_home(home: Home, environ: Mapping[str, str]) -> dict[str, str]:
    """Addresses, key and folders of a home; what the person has set goes over it."""
    ours = {
        "TRAINHALL_DATA_DIR": str(home.data),
        "TRAINHALL_STATIC_ROOT": str(home.data / "static"),
        "TRAINHALL_SECRET_KEY": environ.get("TRAINHALL_SECRET_KEY") or secret_key(home),
        "DATABASE_URL": environ.get("DATABASE_URL") or Postgres(home).url(DATABASE),
        "REDIS_URL": environ.get("REDIS_URL") or Valkey(home).url,
    }
    return {**environ, **ours}


def adopt(checkout: Path) -> None:
    """Let a command in a terminal use the servers of `make run`, if this checkout has been run before."""
    home = find_home(checkout, os.environ, uid=os.geteuid())
    if Postgres(home).password_file.exists() and os.access(Postgres(home).password_file, os.R_OK):
        os.environ.update(of_home(home, os.environ))
