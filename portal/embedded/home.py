"""Where the embedded servers live on this machine, and as whom PostgreSQL runs there."""

from __future__ import annotations

import hashlib
import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOTS_HOME = Path("/var/lib/trainhall")
WITH_DIRECTORY = "-ldap"  # how the data folder of LDAP=demo ends
SOCKET_LIMIT = 107  # bytes of a unix socket's path
LONGEST_SOCKET = ".s.PGSQL.5432"


class CannotStart(Exception):
    """Something that has to be told to the person who starts the portal, in one plain sentence."""


@dataclass(frozen=True, slots=True)
class Home:
    """One checkout's data folder, and the folder of its sockets."""

    data: Path
    sockets: Path

    @property
    def postgres(self) -> Path:
        return self.data / "postgres"

    @property
    def valkey(self) -> Path:
        return self.data / "valkey"

    @property
    def logs(self) -> Path:
        return self.data / "logs"


def find_home(checkout: Path, environ: Mapping[str, str], *, uid: int) -> Home:
    """Say where the data of a checkout lies. Nothing is made or changed.

    An ordinary user keeps it in the checkout. For root it lies in a system folder: PostgreSQL refuses to run as root, and
    no other account can reach a checkout in root's own home.
    """
    checkout = checkout.resolve()
    digest = hashlib.sha256(os.fsencode(checkout)).hexdigest()[:12]
    given = environ.get("TRAINHALL_DATA_DIR", "").strip()
    if given:
        data = Path(given).expanduser().resolve()
    else:
        data = ROOTS_HOME / digest if uid == 0 else checkout / "var"
    if environ.get("LDAP", "").strip() == "demo" and not data.name.endswith(WITH_DIRECTORY):
        # its people are others than those of a plain `make run`, also where they have the same names
        data = data.with_name(f"{data.name}{WITH_DIRECTORY}")
    sockets = data / "run"
    if len(os.fsencode(sockets / LONGEST_SOCKET)) > SOCKET_LIMIT:
        # two data folders of one person must not meet in /tmp
        sockets = Path(f"/tmp/trainhall-{uid}-{hashlib.sha256(os.fsencode(data)).hexdigest()[:12]}")  # noqa: S108 - checked to be ours in make_home
    return Home(data=data, sockets=sockets)


def make_home(home: Home) -> None:
    """Make the folders. Those above them are never opened up to others."""
    as_root = os.geteuid() == 0
    if as_root and home.data.parent == ROOTS_HOME:
        ROOTS_HOME.mkdir(mode=0o711, parents=True, exist_ok=True)
        ROOTS_HOME.chmod(0o711)  # mkdir obeys the umask
    try:
        home.data.mkdir(parents=True, exist_ok=True)
        home.data.chmod(0o711 if as_root else 0o700)
        for private in (home.logs, home.data / "files"):  # what people upload lies in `files`
            private.mkdir(exist_ok=True)
            private.chmod(0o700)
    except OSError as error:
        raise CannotStart(f"The data folder {home.data} cannot be used: {error.strerror}.") from error
    _make_private(home.sockets)
    account = postgres_account(home)
    if account:
        give(home.sockets, account)


def postgres_account(home: Home) -> pwd.struct_passwd | None:
    """The account PostgreSQL runs as; None means our own.

    Once there is data, its owner decides: an account called `postgres` may be made on the machine later.
    """
    if os.geteuid() != 0:
        if home.postgres.exists() and home.postgres.stat().st_uid != os.geteuid():
            raise CannotStart(
                f"The data folder {home.data} belongs to another account, so PostgreSQL cannot be started."
            )
        return None
    try:
        owner = home.postgres.stat().st_uid
    except FileNotFoundError:
        owner = 0
    if owner:
        try:
            return pwd.getpwuid(owner)
        except KeyError:
            raise CannotStart(
                f"{home.postgres} belongs to uid {owner}, which has no entry in the passwd database any more; give it to an"
                " account that exists, or move it away."
            ) from None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise CannotStart("PostgreSQL does not run as root, and there is neither an account `postgres` nor `nobody` here.")


def give(path: Path, account: pwd.struct_passwd) -> None:
    os.chown(path, account.pw_uid, account.pw_gid)


def others_reach(path: Path) -> bool:
    """May any account walk down to this folder, and read it?"""
    try:
        modes = [folder.stat().st_mode for folder in (path, *path.parents)]
    except OSError:
        return False
    return all(mode & stat.S_IXOTH for mode in modes) and bool(modes[0] & stat.S_IROTH)


def check_reach(home: Home, account: pwd.struct_passwd) -> None:
    """Raise CannotStart if the account cannot walk down to the data folder."""
    for folder in home.data.parents:
        if not folder.stat().st_mode & stat.S_IXOTH:
            raise CannotStart(
                f"PostgreSQL runs as `{account.pw_name}`, which may not enter {folder}: choose another TRAINHALL_DATA_DIR,"
                " or leave it unset."
            )


def _make_private(folder: Path) -> None:
    """Make a folder for us alone; refuse one that somebody else has put there first."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise CannotStart(f"The folder {folder} cannot be made: {error.strerror}.") from error
    ours = os.geteuid() in (0, found.st_uid) and (os.geteuid() == 0 or not stat.S_ISLNK(found.st_mode))
    if not stat.S_ISDIR(found.st_mode) or not ours:
        raise CannotStart(f"{folder} belongs to somebody else; remove it, or set TRAINHALL_DATA_DIR to a shorter path.")
    folder.chmod(0o700)
