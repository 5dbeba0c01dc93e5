"""Signing in with the directory: django-auth-ldap connects and binds; which account an entry is, its UUID decides (`people`)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import ldap
from django.http import HttpRequest
from django.utils import timezone
from django_auth_ldap.backend import LDAPBackend, _LDAPUser, ldap_error
from django_auth_ldap.config import LDAPSearch, LDAPSettings

from accounts import people, sync, throttle
from accounts.auth import LONGEST_SECRET, Refusal, deadline_of, is_empty_secret, refusal_of, refuse
from accounts.deadline import Deadline
from accounts.directory import PERSON_ATTRIBUTES, EntryUnusable, Search, read_person
from accounts.ldap.connection import (
    SCOPES,
    WHILE_SOMEBODY_WAITS,
    Conversation,
    DirectoryAway,
    asking,
    lowered,
    normal,
    the_directory,
)
from accounts.ldap.reading import groups_of
from accounts.models import User
from accounts.namespaces import spelling

logger = logging.getLogger(__name__)
# its lines tell what was typed as a name, which is a password now and then; what matters is told here
logging.getLogger("django_auth_ldap").setLevel(logging.CRITICAL)


# How directories refuse the password of one entry, other than by calling it wrong: 389 DS that of a locked account, and of one
# that has none (RFC 4511 appendix A, draft-behera-ldap-password-policy).
REFUSALS = (ldap.UNWILLING_TO_PERFORM, ldap.INAPPROPRIATE_AUTH, ldap.CONSTRAINT_VIOLATION)


LEAST = 1.0  # seconds that a conversation is begun with


class _Known(_LDAPUser):
    """One person's conversation with the directory. `is_heard`: it was told a password, and has not called it right."""

    _connection: Conversation | None

    def __init__(self, backend: LDAPBackend, *, username: str, request: HttpRequest | None, deadline: Deadline) -> None:
        super().__init__(backend, username=username, request=request)
        self.typed = username
        self.deadline = deadline
        self.is_heard = False

    def _get_connection(self) -> Conversation:
        if self._connection is None:
            directory = the_directory()
            self._connection = Conversation(directory, self.deadline, patience=directory.patience)
        return self._connection

    def _bind_as(self, bind_dn: str, bind_password: str, sticky: bool = False) -> None:
        if sticky:  # as the portal itself
            super()._bind_as(bind_dn, bind_password, sticky=True)
            return
        self.is_heard = True
        super()._bind_as(bind_dn, bind_password)
        self.is_heard = False

    def close(self) -> None:
        if self._connection is not None:
            self._connection.unbind_s()

    def _authenticate_user_dn(self, password: str) -> None:
        """A refusal is not an outage, which would tell a stranger that there is such an account."""
        try:
            super()._authenticate_user_dn(password)
        except REFUSALS as error:
            raise self.AuthenticationFailed(str(error)) from error


class _Ended(Exception):
    """The password was right, and the account is over."""


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
        directory = the_directory()
        return LDAPSettings(
            "TRAINHALL_NEVER_SET_",
            {
                "BIND_DN": directory.bind_dn,
                "BIND_PASSWORD": directory.bind_password,
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
        whole = deadline_of(request)
        if whole.rest < LEAST:  # so late, for it waited for a thread, that asking would only add to the crowd
            refuse(request, Refusal("busy"))
            return None
        deadline = Deadline(min(whole.rest, WHILE_SOMEBODY_WAITS))
        known = _Known(self, username=username.strip(), request=request, deadline=deadline)
        try:
            with asking(deadline), closing(known):
                return self._person(request, known, password)
        except DirectoryAway as error:
            logger.warning("The directory cannot be asked: %s", error)
            refuse(request, Refusal("away"))
        return None

    def _person(self, request: HttpRequest | None, known: _Known, password: str) -> User | None:
        # counted for a name that nobody has, too: what is refused must not tell who exists
        attempt = throttle.begin_bind(known.dn or f"? {spelling(known.typed)}")
        if isinstance(attempt, throttle.TooMany):
            refuse(request, Refusal("too_many", seconds=attempt.seconds))
            return None
        try:
            found = self._with_password(request, known, password)
        except BaseException:
            if not known.is_heard:  # else the directory may have counted it as a wrong one
                attempt.take_back()
            raise
        if found is not None:
            attempt.was_right()
        elif refusal_of(request) is None:
            refuse(request, Refusal("wrong", left=attempt.left))
        else:
            attempt.take_back()
        return found

    def _with_password(self, request: HttpRequest | None, known: _Known, password: str) -> User | None:
        if known.dn is None:
            self._take_as_long(known)
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

    def _take_as_long(self, unknown: _Known) -> None:
        """A name that nobody has is answered after a bind, too: the time would tell it from one that exists.

        What was typed may be the password of an account here, which is none of the directory's business.
        """
        nobody = f"{the_directory().people.attribute}={secrets.token_hex(8)},{the_directory().people.base}"
        try:
            unknown._bind_as(nobody, secrets.token_hex(8))
        except (ldap.INVALID_CREDENTIALS, ldap.NO_SUCH_OBJECT, ldap.UNWILLING_TO_PERFORM, ldap.INVALID_DN_SYNTAX):
            return

    def get_or_build_user(self, username: str, ldap_user: _LDAPUser) -> tuple[User, bool]:
        """The account of this entry, whatever was typed; asked by django-auth-ldap once the password was right."""
        name = the_directory().people.attribute
        entry = read_person(normal(ldap_user.dn), lowered(ldap_user.attrs), name=name, now=timezone.now())
        if entry.has_ended:
            people.end([entry.subject])
            raise _Ended
        found = groups_of(ldap_user.connection, entry)  # before anything is written: there may be no time left for it
        person = people.from_directory(entry)
        sync.give_roles(person, entry, found)
        return person, False

    def get_user(self, user_id: int) -> User | None:
        return User.objects.filter(pk=user_id, is_active=True).first()


def _raise(exception: ldap.LDAPError, **_signal: Any) -> None:
    """Django-auth-ldap would take an outage for a name that nobody has."""
    raise exception


ldap_error.connect(_raise, sender=DirectoryBackend, dispatch_uid="an outage is not a wrong password")
