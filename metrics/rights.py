"""Who is at the other end of a socket, and what they may see: asked at its start, every 10 s and when a right changes."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, load_backend
from django.utils.crypto import constant_time_compare

from accounts.access import visible_namespace_ids
from accounts.models import Namespace, User
from jobs.models import Job


@dataclass(frozen=True, slots=True)
class Rights:
    user_id: int
    namespaces: frozenset[int] | None  # None is all of them

    def reach(self, namespace_id: int | None) -> bool:
        return namespace_id is not None and (self.namespaces is None or namespace_id in self.namespaces)


def of_session(session_key: str) -> Rights | None:
    """The rights of whoever is signed in with this session, or None where it is over.

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
    if not any(constant_time_compare(given, one) for one in known):
        return None
    return Rights(user.pk, visible_namespace_ids(user))


def of_sessions(session_keys: list[str]) -> dict[str, Rights | None]:
    return {session_key: of_session(session_key) for session_key in session_keys}


def namespace_of_job(job_id: str) -> int | None:
    return Job.objects.filter(pk=job_id).values_list("namespace_id", flat=True).first()


def namespace_of_slug(slug: str) -> int | None:
    return Namespace.objects.filter(slug=slug).values_list("pk", flat=True).first()
