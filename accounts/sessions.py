"""Whose a session is, for sockets: they stay open long after their request."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, load_backend
from django.utils.crypto import constant_time_compare

from accounts.models import User


def person_of_session(session_key: str) -> User | None:
    """Who is signed in with it, or None where it is over.

    Unlike the middleware of a page this never writes: a socket cannot hand a new cookie to the browser.
    """
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    backend = session.get(BACKEND_SESSION_KEY)
    if backend not in settings.AUTHENTICATION_BACKENDS:
        return None
    user = load_backend(backend).get_user(session[SESSION_KEY])
    if not isinstance(user, User) or not user.is_active:
        return None
    given = session.get(HASH_SESSION_KEY, "")
    known = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return user if any(constant_time_compare(given, one) for one in known) else None
