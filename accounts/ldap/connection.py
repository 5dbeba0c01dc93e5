"""A connection to the directory that never hangs: time-outs on every call, certificates checked, referrals not followed.

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

from accounts.directory import Directory, Search
from accounts.knock import door_that_opens

SCOPES = {"base": ldap.SCOPE_BASE, "one": ldap.SCOPE_ONELEVEL, "sub": ldap.SCOPE_SUBTREE}
PAGE = 500  # entries in one answer; Active Directory refuses more than 1,000
PATIENCE_OF_A_PAGE = 20.0  # seconds: nobody waits for it
RANGE = ";range="
REST = 3.0  # seconds in which a directory that was silent is not asked again: others would wait for nothing


class DirectoryAway(Exception):
    """The directory did not answer, or not as a directory the portal may use; the words say why."""


class Silence:
    """A directory that hung a moment ago is taken as away at once, so that its silence costs one request, not all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = 0.0

    def check(self) -> None:
        with self._lock:
            if time.monotonic() < self._until:
                raise DirectoryAway("It did not answer a moment ago.")

    def begins(self) -> None:
        with self._lock:
            self._until = time.monotonic() + REST

    def ends(self) -> None:
        with self._lock:
            self._until = 0.0


silence = Silence()


def the_directory() -> Directory:
    found: Directory | None = settings.DIRECTORY
    if found is None:
        raise DirectoryAway("No directory is set up (LDAP_URL).")
    return found


@contextmanager
def asking() -> Iterator[None]:
    silence.check()
    try:
        yield
    except OSError as error:  # of the knock
        silence.begins()
        raise DirectoryAway(str(error)) from error
    except (ldap.SERVER_DOWN, ldap.TIMEOUT, ldap.CONNECT_ERROR, ldap.UNAVAILABLE, ldap.BUSY) as error:
        silence.begins()
        raise DirectoryAway(_words(error)) from error
    except ldap.LDAPError as error:
        raise DirectoryAway(_words(error)) from error


def _words(error: ldap.LDAPError) -> str:
    told = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    parts = [str(told[part]) for part in ("desc", "info") if told.get(part)]
    return ": ".join(parts) or type(error).__name__


def options_of(directory: Directory, *, patience: float) -> dict[int, Any]:
    """For one connection. The order counts: the TLS context is made from what was set before it."""
    options: dict[int, Any] = {
        ldap.OPT_NETWORK_TIMEOUT: directory.patience,
        ldap.OPT_TIMEOUT: patience,
        ldap.OPT_REFERRALS: ldap.OPT_OFF,
        ldap.OPT_X_TLS_REQUIRE_CERT: ldap.OPT_X_TLS_DEMAND,
    }
    if directory.ca_file:
        options[ldap.OPT_X_TLS_CACERTFILE] = directory.ca_file
    options[ldap.OPT_X_TLS_NEWCTX] = 0
    return options


@contextmanager
def connected(directory: Directory) -> Iterator[Any]:
    connection = ldap.initialize(door_that_opens(directory))
    for option, value in options_of(directory, patience=PATIENCE_OF_A_PAGE).items():
        connection.set_option(option, value)
    try:
        if directory.tls == "start":
            connection.start_tls_s()
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
