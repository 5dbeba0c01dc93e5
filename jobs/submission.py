"""What a person may do to jobs: the one home of each verb. Page, API and command are doors to it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.access import get_namespace, may
from accounts.models import Namespace, User
from accounts.roles import Verb
from jobs import archives, credentials, faults, git_address, intents, live, shared_secrets, shared_volumes
from jobs.cluster.registry import chosen
from jobs.exceptions import IdempotencyConflict, NeverFits, NotAllowed, SpecError, WrongState
from jobs.forecast import Forecast, Verdict
from jobs.models import Cluster, CodeArchive, Job, JobEvent, JobFeed, JobSecret, PriorityClass, Runtime
from jobs.outlook import look_ahead
from jobs.parsing import Parsed, parse_job
from jobs.reading import Document
from jobs.spec import JobSpec, spec_to_dict
from jobs.states import JobStatus, Reason


@dataclass(frozen=True, slots=True)
class Submitted:
    job: Job
    repeated: bool  # the same Idempotency-Key came before: this is that job


def check(document: Document) -> Parsed:
    """Read a document against the runtimes and priorities there are. Raise SpecError."""
    runtimes = {runtime.slug: runtime.snapshot() for runtime in Runtime.objects.filter(is_active=True)}
    parsed = parse_job(document, runtimes=runtimes, priorities=PriorityClass.objects.values_list("name", flat=True))
    # what the fetch would refuse for sure is said now, in its words
    url = parsed.spec.code.git
    if url and (text := git_address.private_trouble(url, allowed=settings.TRAINHALL_FETCH_HOSTS)):
        raise SpecError(f"code.git: {text}", fields={"code.git": [text]})
    return parsed


def submit(
    *,
    user: User,
    document: Document,
    request: HttpRequest | None,
    origin: str,
    idempotency_key: str = "",
    parent: Job | None = None,
    asked: Any = None,
) -> Submitted:
    """One accepted request is one job: the row, its first event and its audit row in one transaction.

    `asked` is what a repeat is known by, where the document is not what was sent: that of a clone counts its name on.
    """
    told = document.data if asked is None else asked
    digest = hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()
    if len(idempotency_key) > 100:
        raise SpecError(_("Idempotency-Key is longer than 100 characters."))
    if earlier := _earlier(user, idempotency_key, digest):
        return earlier
    parsed = check(document)
    namespace = namespace_to_submit(user, parsed.spec.namespace)
    shared_secrets.check(namespace, parsed.spec.secrets)
    parsed = replace(parsed, spec=shared_volumes.filled_in(parsed.spec, namespace=namespace, user=user))
    code = _code_of(user, parsed)
    faults.point("submit.parsed")
    cluster = Cluster.objects.filter(name=chosen(parsed.spec.cluster, namespace.slug)).first()
    if cluster is None:
        raise SpecError(_("This portal has no cluster yet; an admin adds one in TRAINHALL_CLUSTERS."))
    will = look_ahead(parsed, namespace=namespace, user=user)
    if will.verdict is Verdict.NEVER:
        raise NeverFits(will.text, fields={"resources": [will.text, *_offer(will)]})
    try:
        with transaction.atomic():
            job = _insert(
                user=user,
                namespace=namespace,
                cluster=cluster,
                document=document,
                parsed=parsed,
                code=code,
                origin=origin,
                idempotency_key=idempotency_key,
                digest=digest,
                parent=parent,
            )
            audit.record(
                user, "job.submit", target=job.pk, namespace=namespace.slug, after=_audited(job), request=request
            )
            faults.point("submit.before_commit")
    except IntegrityError:
        # two requests with one key at the same moment: the unique constraint lets one through
        if earlier := _earlier(user, idempotency_key, digest):
            return earlier
        raise
    faults.point("submit.after_commit")
    return Submitted(job, repeated=False)


def _earlier(user: User, key: str, digest: str) -> Submitted | None:
    job = Job.objects.for_rows().filter(owner=user, idempotency_key=key).first() if key else None
    if job is None:
        return None
    # one that is out of sight, as for a token of another namespace, is a job of which nothing is told
    if job.idempotency_digest != digest or not may(user, Verb.VIEW, job.namespace):
        raise IdempotencyConflict(_("This Idempotency-Key came before with another document; use a new key."))
    return Submitted(job, repeated=True)


def namespace_to_submit(user: User, slug: str) -> Namespace:
    """Raise SpecError in the same words for a namespace that is not there and one that is not the user's."""
    try:
        namespace = get_namespace(user, slug, Verb.VIEW)
    except Http404:
        text = _("there is no namespace %(name)s in which you may submit") % {"name": repr(slug)}
        raise SpecError(f"namespace: {text}", fields={"namespace": [text]}) from None
    if not may(user, Verb.SUBMIT, namespace):
        raise NotAllowed(_("You may look at %(name)s, but not submit there.") % {"name": slug})
    return namespace


def _code_of(user: User, parsed: Parsed) -> CodeArchive | None:
    source = parsed.spec.code
    if source.kind == "files":
        return archives.from_files(source.files)
    if source.kind == "upload":
        archive = archives.known_to(user, source.upload)
        if archive is None:
            text = _("you have uploaded nothing with this sha256; send it to /api/v1/uploads/ first")
            raise SpecError(f"code.upload: {text}", fields={"code.upload": [text]})
        return archive
    return None


def _insert(
    *,
    user: User,
    namespace: Namespace,
    cluster: Cluster,
    document: Document,
    parsed: Parsed,
    code: CodeArchive | None,
    origin: str,
    idempotency_key: str,
    digest: str,
    parent: Job | None,
) -> Job:
    spec = parsed.spec
    from_git = spec.code.kind == "git"
    job = Job.objects.create(
        namespace=namespace,
        owner=user,
        cluster=cluster,
        runtime_snapshot=Runtime.objects.get(pk=spec.runtime).snapshot(),
        spec_text=document.without_values_of_secrets(),
        spec_format=document.format,
        spec=_stored(spec),
        idempotency_key=idempotency_key or None,
        idempotency_digest=digest,
        parent=parent,
        origin=origin,
        reason_code=Reason.FETCHING_CODE if from_git else Reason.PENDING_EVALUATION,
        reason=_("Its code is being fetched; that is tried for up to 10 minutes.")
        if from_git
        else _("Waits for the dispatcher's next look."),
        name=spec.name,
        priority_id=spec.priority,
        preemptible=spec.preemptible,
        workers=spec.resources.workers,
        gpus=spec.resources.gpus,
        gpu_type=spec.resources.gpu_type,
        cpu_millis=spec.resources.cpu_millis,
        memory_bytes=spec.resources.memory_bytes,
        tags=list(spec.tags),
        code=code,
        code_label=f"sha256:{code.sha256[:12]}" if code else "",
        code_ready_at=None if from_git else timezone.now(),
    )
    JobFeed.objects.create(job=job)
    JobSecret.objects.bulk_create(
        JobSecret(job=job, name=name, ciphertext=credentials.encrypt(value))
        for name, value in parsed.secret_values.items()
    )
    JobEvent.objects.create(job=job, new=JobStatus.QUEUED, reason_code=job.reason_code, actor=user.username)
    live.publish(f"job/{job.pk}", job.version, namespace_id=namespace.pk)
    live.wake("jobs.tasks.fetch_waiting_code" if from_git else "jobs.tasks.dispatch_waiting")
    return job


def _stored(spec: JobSpec) -> dict[str, Any]:
    """The parsed form without the text of pasted files, which the archive and `spec_text` have."""
    stored = spec_to_dict(spec)
    stored["code"]["files"] = dict.fromkeys(spec.code.files, "")
    return stored


def _audited(job: Job) -> dict[str, Any]:
    return {"name": job.name, "gpus": job.total_gpus, "priority": job.priority_id, "origin": job.origin}


def _offer(will: Forecast) -> list[str]:
    return [_("Would fit: %(shapes)s.") % {"shapes": ", ".join(will.alternatives)}] if will.alternatives else []


def cancel(job: Job, *, user: User, note: str = "", at_once: bool = False, request: HttpRequest | None = None) -> Job:
    """Stop a job. Asking again changes nothing; stopping one that is over is a quiet no-op."""
    may_change(user, job)

    def act(job: Job) -> bool:
        if job.is_final or (job.cancel_requested_at and not (at_once and not job.stop_now_at)):
            return True
        if not intents.request_cancel(job, actor=user, note=note, at_once=at_once):
            return False
        audit.record(user, "job.stop", target=job.pk, namespace=job.namespace.slug, request=request)
        live.wake("jobs.tasks.stop_wanted")
        return True

    return _insist(job, act)


def hold(job: Job, *, user: User, request: HttpRequest | None = None) -> Job:
    may_change(user, job)

    def act(job: Job) -> bool:
        if job.is_final:
            raise WrongState(_("A job that is over cannot be held."))
        if job.held_by_id:
            return True
        if job.is_adopted and job.status != JobStatus.QUEUED:
            raise WrongState(_("A job that was made with kubectl is started once: it can be held only while it waits."))
        if not intents.hold(job, actor=user):
            return False
        audit.record(user, "job.hold", target=job.pk, namespace=job.namespace.slug, request=request)
        live.wake("jobs.tasks.stop_wanted")
        return True

    return _insist(job, act)


def release(job: Job, *, user: User, request: HttpRequest | None = None) -> Job:
    may_change(user, job)

    def act(job: Job) -> bool:
        if job.held_by_id is None:
            return True
        if not intents.release(job, actor=user):
            return False
        audit.record(user, "job.release", target=job.pk, namespace=job.namespace.slug, request=request)
        live.wake("jobs.tasks.dispatch_waiting")
        return True

    return _insist(job, act)


def may_change(user: User, job: Job) -> None:
    """Raise NotAllowed unless this person, who sees the job, may stop or change it."""
    if not may(user, Verb.CHANGE_OWN, job.namespace, owns=job.owner_id == user.pk):
        raise NotAllowed(
            _("Only its owner, a lead of %(name)s or an admin may do this.") % {"name": job.namespace.slug}
        )


def _insist(job: Job, act: Callable[[Job], bool]) -> Job:
    """A person's wish is not dropped because the watcher wrote the job at the same moment: look again, then act."""
    for _try in range(20):
        with transaction.atomic():
            if act(job):
                return job
        job = Job.objects.for_rows().get(pk=job.pk)
    raise WrongState(_("The job changes too quickly; try again."))
