"""Who is at the other end of a socket, and what they may see: asked at its start, every 10 s and when a right changes."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.access import visible_namespace_ids
from accounts.models import Namespace
from accounts.sessions import person_of_session
from jobs.models import Job


@dataclass(frozen=True, slots=True)
class Rights:
    user_id: int
    namespaces: frozenset[int] | None  # None is all of them

    def reach(self, namespace_id: int | None) -> bool:
        return namespace_id is not None and (self.namespaces is None or namespace_id in self.namespaces)


def of_session(session_key: str) -> Rights | None:
    """The rights of whoever is signed in with this session, or None where it is over."""
    user = person_of_session(session_key)
    return Rights(user.pk, visible_namespace_ids(user)) if user else None


def of_sessions(session_keys: list[str]) -> dict[str, Rights | None]:
    return {session_key: of_session(session_key) for session_key in session_keys}


def namespace_of_job(job_id: str) -> int | None:
    return Job.objects.filter(pk=job_id).values_list("namespace_id", flat=True).first()


def namespace_of_slug(slug: str) -> int | None:
    return Namespace.objects.filter(slug=slug).values_list("pk", flat=True).first()
