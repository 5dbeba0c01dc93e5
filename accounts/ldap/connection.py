"""A connection to the directory that never hangs: one deadline for all its calls, referrals not followed.

A directory that cannot be asked raises DirectoryAway: nothing here takes silence for "no such person".
"""

from __future__ import annotations

import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ldap
import ldap.dn
import ldap.filter
from django.conf import settings
from ldap.controls import SimplePagedResultsControl
from ldap.ldapobject import SimpleLDAPObject

from accounts.deadline import Deadline
from accounts.directory import Directory, Search
from accounts.ldap.wire import open_wire

SCOPES = {"base": ldap.SCOPE_BASE, "one": ldap.SCOPE_ONELEVEL, "sub": ldap.SCOPE_SUBTREE}
PAGE = 500  # entries in one answer; Active Directory refuses more than 1,000
PATIENCE_OF_A_PAGE = 20.0  # seconds: nobody waits for it
WHILE_SOMEBODY_WAITS = 4.0  # seconds for all that is asked for one person: of the five that a sign-in may take (F22)
FOR_EVERYBODY = 60.0  # seconds to read the whole directory, which a pass does every two minutes
RANGE = ";range="
MOST_AT_ONCE = 16  # conversations of one process, so that a directory that hangs does not collect all its threads
MOMENT_AGO = "It did not answer a moment ago."
TURN = 1.0  # seconds to wait for one of them to end
FAIR = 2.0  # seconds: who had fewer left, for the portal was late itself, cannot tell that the directory is silent
REST = 3.0  # seconds in which a directory that was silent is not asked again: others would wait for nothing


class DirectoryAway(Exception):
    """The directory did not answer, or not as a directory the portal may use; the words say why."""


class Silence:
    """A directory that hung a moment ago is taken as away at once, so that its silence costs one request, not all.

    After a rest one request asks again, and the others wait for what it finds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = 0.0
        self.times = 0  # that it began

    def check(self) -> int:
        """Raise DirectoryAway while it rests; else the number of silences so far."""
        with self._lock:
            now = time.monotonic()
            if now < self._until:
                raise DirectoryAway(MOMENT_AGO)
            if self._until:
                self._until = now + REST
            return self.times

    def begins(self) -> None:
        with self._lock:
            self._until = time.monotonic() + REST
            self.times += 1

    def ends(self) -> None:
        with self._lock:
            self._until = 0.0


silence = Silence()
_turns = threading.BoundedSemaphore(MOST_AT_ONCE)


def the_directory() -> Directory:
    found: Directory | None = settings.DIRECTORY
    if found is None:
        raise DirectoryAway("No directory is set up (LDAP_URL).")
    return found


@contextmanager
def asking(deadline: Deadline) -> Iterator[None]:
    """One conversation. Whatever keeps the directory from answering in time comes out as DirectoryAway."""
    before = silence.check()
    if not _turns.acquire(timeout=TURN):
        raise DirectoryAway("Too many ask it at once.")
    try:
        if silence.times != before:  # it began while this one waited for a turn
            raise DirectoryAway(MOMENT_AGO)
        yield
    except OSError as error:  # of the wire
        if not _was_rushed(deadline):
            silence.begins()
        raise DirectoryAway(
            f"It did not answer: {error}." if isinstance(error, TimeoutError) else str(error)
        ) from error
    except (ldap.SERVER_DOWN, ldap.TIMEOUT, ldap.CONNECT_ERROR, ldap.UNAVAILABLE, ldap.BUSY) as error:
        if not _was_rushed(deadline):
            silence.begins()
        late = f"It did not answer within {deadline.seconds:g} s."
        raise DirectoryAway(late if deadline.is_over else _words(error)) from error
    except ldap.LDAPError as error:
        silence.ends()
        raise DirectoryAway(_words(error)) from error
    else:
        silence.ends()
    finally:
        _turns.release()


def _was_rushed(deadline: Deadline) -> bool:
    return deadline.is_over and deadline.seconds < FAIR


def _words(error: ldap.LDAPError) -> str:
    told = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    parts = [str(told[part]) for part in ("desc", "info") if told.get(part)]
    if isinstance(error, ldap.TIMEOUT):
        return "It did not answer in time."
    return ": ".join(parts) or type(error).__name__


class Conversation(SimpleLDAPObject):
    """A connection whose answers are waited for only as long as there is time for all of them together."""

    def __init__(self, directory: Directory, deadline: Deadline, *, patience: float) -> None:
        with open_wire(directory, deadline) as wire:
            # plain to libldap, for which the wire does TLS; the name is only one for its messages
            super().__init__("ldap://directory", fileno=wire.detach())
        self.deadline = deadline
        self.patience = patience
        self.set_option(ldap.OPT_NETWORK_TIMEOUT, patience)
        self.set_option(ldap.OPT_REFERRALS, ldap.OPT_OFF)

    def result4(self, msgid: int = ldap.RES_ANY, all: int = 1, timeout: Any = None, *more: Any, **named: Any) -> Any:  # noqa: A002 # its name there
        """What every other call waits with."""
        try:
            left = self.deadline.left(at_most=self.patience)
        except TimeoutError as error:
            raise ldap.TIMEOUT({"desc": str(error)}) from error
        return super().result4(msgid, all, left, *more, **named)


@contextmanager
def connected(directory: Directory, deadline: Deadline, *, patience: float) -> Iterator[Conversation]:
    connection = Conversation(directory, deadline, patience=patience)
    try:
        connection.simple_bind_s(directory.bind_dn, directory.bind_password)
        yield connection
    finally:
        connection.unbind_s()


def paged(
    connection: Any, search: Search, wanted: str, attributes: Iterable[str]
) -> Iterator[tuple[str, dict[str, list[str | bytes]]]]:
    control = SimplePagedResultsControl(True, size=PAGE, cookie="")
    while True:
        asked = connection.search_ext(
            search.base, SCOPES[search.scope], wanted, [search.attribute, *attributes], serverctrls=[control]
        )
        _kind, rows, _id, controls = connection.result3(asked)
        for dn, values in rows:
            if dn is not None:  # else a referral, which is not followed
                yield dn, _whole(connection, dn, lowered(values))
        cookies = [one.cookie for one in controls if one.controlType == SimplePagedResultsControl.controlType]
        if not cookies or not cookies[0]:
            return
        control.cookie = cookies[0]


def _whole(connection: Any, dn: str, values: dict[str, list[str | bytes]]) -> dict[str, list[str | bytes]]:
    """Active Directory gives at most 1,500 values at once, as `member;range=0-1499` beside an empty `member`, and the rest when
    asked for it (MS-ADTS 3.1.1.3.1.3.3): a large group would have no members.
    """
    for piece in [name for name in values if RANGE in name]:
        name, _mark, stretch = piece.partition(RANGE)
        found = values.pop(piece)
        while not stretch.endswith("*"):
            more = f"{name}{RANGE}{int(stretch.partition('-')[2]) + 1}-*"
            answer = lowered(dict(connection.search_s(dn, ldap.SCOPE_BASE, attrlist=[more])[0][1]))
            got = next((told for told in answer if told.startswith(f"{name}{RANGE}")), None)
            if got is None:
                raise DirectoryAway(f"it gives only a part of {name} of {dn}")
            found += answer[got]
            stretch = got.partition(RANGE)[2]
        values[name] = [*values.get(name, []), *found]
    return values


def normal(dn: str) -> str:
    """One spelling for DNs that mean the same entry: case, blanks, ways to compose and to escape do not count (RFC 4518)."""
    try:
        parts = ldap.dn.str2dn(dn)
    except ldap.DECODING_ERROR:
        return dn.lower()
    spelt = [sorted((name.lower(), _spelt(value), flags) for name, value, flags in part) for part in parts]
    return str(ldap.dn.dn2str(spelt))


def _spelt(value: str) -> str:
    return " ".join(unicodedata.normalize("NFC", value.lower()).split())


def lowered(attributes: Mapping[str, list[Any]]) -> dict[str, list[str | bytes]]:
    return {name.lower(): list(values) for name, values in attributes.items()}


def equals(attribute: str, value: str) -> str:
    return f"({attribute}={ldap.filter.escape_filter_chars(value)})"
