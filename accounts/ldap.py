"""The only file that speaks LDAP: who signs in, which groups they are in, and everybody at once.

Every call has a time-out, certificates are checked, referrals are not followed. A directory that cannot be asked raises
DirectoryAway: nothing here takes silence for "no such person". Django-auth-ldap connects, searches and binds; which account an
entry is, is decided by its UUID in `people`.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ldap
import ldap.dn
import ldap.filter
from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django_auth_ldap.backend import LDAPBackend, _LDAPUser, ldap_error
from django_auth_ldap.config import LDAPSearch, LDAPSettings
from ldap.controls import SimplePagedResultsControl

from accounts import people, sync, throttle
from accounts.auth import LONGEST_SECRET, Refusal, is_empty_secret, refusal_of, refuse
from accounts.directory import (
    GROUP_ATTRIBUTES,
    MEMBER_ATTRIBUTES,
    PERSON_ATTRIBUTES,
    Directory,
    Entry,
    EntryUnusable,
    Everybody,
    Group,
    Search,
    read_group,
    read_person,
)
from accounts.knock import door_that_opens
from accounts.models import User
from accounts.namespaces import spelling

SCOPES = {"base": ldap.SCOPE_BASE, "one": ldap.SCOPE_ONELEVEL, "sub": ldap.SCOPE_SUBTREE}
PAGE = 500  # entries in one answer; Active Directory refuses more than 1,000
PATIENCE_OF_A_PAGE = 20.0  # seconds: nobody waits for it
DEEPEST = 20  # levels of groups in groups
MOST_TERMS = 200  # of one filter
REST = 3.0  # seconds in which a directory that was silent is not asked again: others would wait for nothing
logger = logging.getLogger(__name__)


class DirectoryAway(Exception):
    """The directory did not answer, or not as a directory the portal may use; the words say why."""


class _Ended(Exception):
    """The password was right, and the account is over."""


class _Silence:
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


_silence = _Silence()


def _directory() -> Directory:
    found: Directory | None = settings.DIRECTORY
    if found is None:
        raise DirectoryAway("No directory is set up (LDAP_URL).")
    return found


@contextmanager
def _asking() -> Iterator[None]:
    _silence.check()
    try:
        yield
    except OSError as error:  # of the knock
        _silence.begins()
        raise DirectoryAway(str(error)) from error
    except (ldap.SERVER_DOWN, ldap.TIMEOUT, ldap.CONNECT_ERROR, ldap.UNAVAILABLE, ldap.BUSY) as error:
        _silence.begins()
        raise DirectoryAway(_words(error)) from error
    except ldap.LDAPError as error:
        raise DirectoryAway(_words(error)) from error


def _words(error: ldap.LDAPError) -> str:
    told = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    parts = [str(told[part]) for part in ("desc", "info") if told.get(part)]
    return ": ".join(parts) or type(error).__name__


def _options(directory: Directory, *, patience: float) -> dict[int, Any]:
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


def _ldap_search(search: Search, *, typed: bool, attributes: Iterable[str]) -> LDAPSearch:
    wanted = search.filter.replace("%", "%%")
    return LDAPSearch(
        search.base,
        SCOPES[search.scope],
        f"(&{wanted}({search.attribute}=%(user)s))" if typed else wanted,
        attrlist=[search.attribute, *attributes],
    )


class DirectoryBackend(LDAPBackend):
    """People whose password the directory keeps."""

    @property
    def settings(self) -> LDAPSettings:
        """From the portal's own settings at each use, so that a test or a reload never sees those of before."""
        directory = _directory()
        return LDAPSettings(
            "TRAINHALL_NEVER_SET_",
            {
                "SERVER_URI": lambda _request: door_that_opens(directory),
                "BIND_DN": directory.bind_dn,
                "BIND_PASSWORD": directory.bind_password,
                "START_TLS": directory.tls == "start",
                "CONNECTION_OPTIONS": _options(directory, patience=directory.patience),
                "USER_SEARCH": _ldap_search(directory.people, typed=True, attributes=PERSON_ATTRIBUTES),
                "ALWAYS_UPDATE_USER": False,  # `people` writes what it knows of them
            },
        )

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **_more: Any
    ) -> User | None:
        """None for a name or password that is wrong; whatever else keeps them out is left with `refuse`."""
        if not username or password is None or is_empty_secret(password) or len(password) > LONGEST_SECRET:
            return None  # an empty one would be an anonymous bind, which succeeds
        try:
            with _asking():
                return self._person(request, username, password)
        except DirectoryAway as error:
            logger.warning("The directory cannot be asked: %s", error)
            refuse(request, Refusal("away"))
        return None

    def _person(self, request: HttpRequest | None, username: str, password: str) -> User | None:
        known = _LDAPUser(self, username=username.strip(), request=request)
        # counted for a name that nobody has, too: what is refused must not tell who exists
        attempt = throttle.begin_bind(known.dn or f"? {spelling(username)}")
        if isinstance(attempt, throttle.TooMany):
            refuse(request, Refusal("too_many", seconds=attempt.seconds))
            return None
        try:
            found = self._with_password(request, known, password)
        except BaseException:
            attempt.take_back()  # the password was not looked at, or it was right
            raise
        if found is not None:
            attempt.was_right()
        elif refusal_of(request) is None:
            refuse(request, Refusal("wrong", left=attempt.left))
        else:
            attempt.take_back()
        return found

    def _with_password(self, request: HttpRequest | None, known: _LDAPUser, password: str) -> User | None:
        if known.dn is None:
            self._take_as_long(known, password)
            return None
        try:
            found: User | None = known.authenticate(password)
        except EntryUnusable as error:
            logger.error("Somebody with the right password cannot sign in: %s", error)
            refuse(request, Refusal("unusable"))
            return None
        except _Ended:
            refuse(request, Refusal("ended"))
            return None
        if found is not None and not found.is_active:
            refuse(request, Refusal("ended"))
            return None
        return found

    def _take_as_long(self, unknown: _LDAPUser, password: str) -> None:
        """A name that nobody has is answered after a bind, too: the time would tell it from one that exists."""
        nobody = f"{_directory().people.attribute}={secrets.token_hex(8)},{_directory().people.base}"
        try:
            unknown._bind_as(nobody, password)
        except (ldap.INVALID_CREDENTIALS, ldap.NO_SUCH_OBJECT, ldap.UNWILLING_TO_PERFORM, ldap.INVALID_DN_SYNTAX):
            return

    def get_or_build_user(self, username: str, ldap_user: _LDAPUser) -> tuple[User, bool]:
        """The account of this entry, whatever was typed; asked by django-auth-ldap once the password was right."""
        name = _directory().people.attribute
        entry = read_person(normal(ldap_user.dn), _lowered(ldap_user.attrs), name=name, now=timezone.now())
        if entry.has_ended:
            people.end([entry.subject])
            raise _Ended
        person = people.from_directory(entry)
        sync.give_roles(person, entry, groups_of(ldap_user.connection, entry))
        return person, False

    def get_user(self, user_id: int) -> User | None:
        return User.objects.filter(pk=user_id, is_active=True).first()


def _raise(exception: ldap.LDAPError, **_signal: Any) -> None:
    """Django-auth-ldap would take an outage for a name that nobody has."""
    raise exception


ldap_error.connect(_raise, sender=DirectoryBackend, dispatch_uid="an outage is not a wrong password")


def groups_of(connection: Any, entry: Entry) -> list[Group]:
    """The groups of one person, through groups in groups: one search for each level."""
    search = _directory().groups
    if search is None:
        return []
    found: dict[str, Group] = {}
    terms = [_is(attribute, entry.dn) for attribute in MEMBER_ATTRIBUTES] + [_is("memberUid", entry.username)]
    if entry.gid_number is not None:
        terms.append(f"(&(objectClass=posixGroup){_is('gidNumber', str(entry.gid_number))})")
    for _level in range(DEEPEST):
        level: dict[str, Group] = {}
        for start in range(0, len(terms), MOST_TERMS):
            wanted = f"(&{search.filter}(|{''.join(terms[start : start + MOST_TERMS])}))"
            for dn, attributes in _paged(connection, search, wanted, GROUP_ATTRIBUTES):
                group = _group(dn, attributes, search)
                level[group.dn] = group
        fresh = [dn for dn in level if dn not in found]
        found |= level
        if not fresh:
            break
        terms = [_is(attribute, dn) for dn in fresh for attribute in MEMBER_ATTRIBUTES]
    return list(found.values())


def look_up(username: str) -> tuple[Entry, list[Group]] | None:
    """The entry behind a name that somebody would type, and its groups; None if there is none, or more than one."""
    search = _directory().people
    wanted = f"(&{search.filter}{_is(search.attribute, username)})"
    with _asking(), _connected(_directory()) as connection:
        rows = list(_paged(connection, search, wanted, PERSON_ATTRIBUTES))
        if len(rows) != 1:
            return None
        dn, attributes = rows[0]
        try:
            entry = read_person(normal(dn), attributes, name=search.attribute, now=timezone.now())
        except EntryUnusable as error:
            raise DirectoryAway(str(error)) from error
        return entry, groups_of(connection, entry)


def read_everybody() -> Everybody:
    """All people and groups, whole: what asks only for changes never sees an entry that is gone. Raise DirectoryAway."""
    directory = _directory()
    found: dict[str, Entry] = {}
    groups: dict[str, Group] = {}
    unusable: list[str] = []
    with _asking(), _connected(directory) as connection:
        now, name = timezone.now(), directory.people.attribute
        for dn, attributes in _paged(connection, directory.people, directory.people.filter, PERSON_ATTRIBUTES):
            try:
                entry = read_person(normal(dn), attributes, name=name, now=now)
            except EntryUnusable as error:
                unusable.append(str(error))
            else:
                found[entry.subject] = entry
        if directory.groups is not None:
            for dn, attributes in _paged(connection, directory.groups, directory.groups.filter, GROUP_ATTRIBUTES):
                group = _group(dn, attributes, directory.groups)
                groups[group.dn] = group
    return Everybody(people=found, groups=groups, unusable=unusable)


@contextmanager
def _connected(directory: Directory) -> Iterator[Any]:
    connection = ldap.initialize(door_that_opens(directory))
    for option, value in _options(directory, patience=PATIENCE_OF_A_PAGE).items():
        connection.set_option(option, value)
    try:
        if directory.tls == "start":
            connection.start_tls_s()
        connection.simple_bind_s(directory.bind_dn, directory.bind_password)
        yield connection
    finally:
        connection.unbind_s()


def _paged(
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
                yield dn, _lowered(values)
        cookies = [one.cookie for one in controls if one.controlType == SimplePagedResultsControl.controlType]
        if not cookies or not cookies[0]:
            return
        control.cookie = cookies[0]


def _group(dn: str, attributes: Mapping[str, list[str | bytes]], search: Search) -> Group:
    members = (
        normal(value if isinstance(value, str) else value.decode("utf-8", "replace"))
        for name in MEMBER_ATTRIBUTES
        for value in attributes.get(name, [])
    )
    return read_group(normal(dn), attributes, members, name=search.attribute)


def normal(dn: str) -> str:
    """One spelling for DNs that mean the same entry: case, blanks and ways to escape do not count."""
    try:
        parts = ldap.dn.str2dn(dn)
    except ldap.DECODING_ERROR:
        return dn.lower()
    lowered = [[(name.lower(), value.lower(), flags) for name, value, flags in sorted(part)] for part in parts]
    return str(ldap.dn.dn2str(lowered))


def _lowered(attributes: Mapping[str, list[Any]]) -> dict[str, list[str | bytes]]:
    return {name.lower(): list(values) for name, values in attributes.items()}


def _is(attribute: str, value: str) -> str:
    return f"({attribute}={ldap.filter.escape_filter_chars(value)})"
