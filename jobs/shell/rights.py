"""Who may open a shell where, asked when it opens, every 10 s and when a right changes; and what is written down of it.

Its owner, for whose account the pod runs, and a site admin, whom the cluster may still refuse. Nobody else of the
namespace, not even its lead: a shell sees the owner's secrets and acts as them. By a browser's session only, no token.
"""

from __future__ import annotations

from dataclasses import dataclass

from accounts import audit
from accounts.access import may
from accounts.models import User
from accounts.roles import Verb
from accounts.sessions import person_of_session
from jobs.cluster.adopted import main_container
from jobs.cluster.fields import part, text
from jobs.cluster.manifests import MAIN
from jobs.cluster.port import ObjectRef, Person
from jobs.logs.lines import worker_of
from jobs.models import Job, Worker
from jobs.tenants import person_of

RUNNING = "Running"


def may_open(user: User, job: Job) -> bool:
    mine = job.owner_id == user.pk or user.is_site_admin
    return mine and may(user, Verb.CHANGE_OWN, job.namespace, owns=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """A shell that somebody may open, wherever it goes."""

    user: User
    job_id: str
    namespace: str
    address: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """A worker that runs."""

    cluster: str
    ref: ObjectRef
    worker: str
    worker_id: int
    pod: str
    person: Person
    container: str


def ask(session_key: str, job_id: str, address: str | None) -> Asked | None:
    """None for who may not, and for what there is not: one answer."""
    user = person_of_session(session_key)
    if user is None:
        return None
    job = _job(user, job_id)
    if job is None or not may_open(user, job):
        return None
    return Asked(user, job.pk, job.namespace.slug, address)


def _job(user: User, job_id: str) -> Job | None:
    found: Job | None = Job.objects.visible_to(user).for_rows().filter(pk=job_id.replace("\0", "\ufffd")).first()
    return found


def place_of(asked: Asked, name: str) -> Place | None:
    """The worker of the latest attempt; None where it does not run, or there is none of this name."""
    try:
        role, index = worker_of(name)
    except ValueError:
        return None
    worker = (
        Worker.objects.filter(attempt__job_id=asked.job_id, role=role, index=index)
        .select_related("attempt__cluster", "attempt__job")
        .order_by("-attempt__number")
        .first()
    )
    if worker is None or not _runs(worker):
        return None
    attempt = worker.attempt
    ref = ObjectRef(attempt.kubernetes_namespace, attempt.object_name, attempt.uid)
    return Place(
        cluster=attempt.cluster.name,
        ref=ref,
        worker=str(worker),
        worker_id=worker.pk,
        pod=worker.pod_name,
        person=person_of(asked.user),
        container=_container(attempt.job),
    )


def _container(job: Job) -> str:
    """Ours is always called the same; who makes a Job with kubectl calls it as they like."""
    if not job.is_adopted:
        return MAIN
    return text(main_container(part(job.adoption.manifest, "spec", "template", "spec")), "name")


def _runs(worker: Worker) -> bool:
    return worker.phase == RUNNING and worker.attempt.ended_at is None


def why_not_any_more(session_key: str, asked: Asked, place: Place) -> str:
    """ "" while it may stay open, else the code of why it closes."""
    user = person_of_session(session_key)
    if user is None or user.pk != asked.user.pk:
        return "session_over"
    job = _job(user, asked.job_id)
    if job is None or not may_open(user, job):
        return "no_right"
    worker = Worker.objects.select_related("attempt").filter(pk=place.worker_id).first()
    return "" if worker is not None and _runs(worker) else "worker_ended"


def write_down(asked: Asked, verb: str, **facts: object) -> None:
    """Never what was typed."""
    row = audit.event(
        asked.user, f"shell.{verb}", target=asked.job_id, namespace=asked.namespace, after=facts, via="page"
    )
    row.address = asked.address
    row.save()
