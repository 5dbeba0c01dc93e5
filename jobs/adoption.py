"""Jobs made on a cluster beside the portal, with kubectl or by a CronJob: each is taken into the queue, once (DESIGN 11.10).

The cluster itself keeps them suspended until the portal starts them. Their object is their maker's: the portal starts it,
stops it, and deletes it only where somebody stopped it here.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from functools import lru_cache

from django.db import IntegrityError, OperationalError, transaction
from django.utils import timezone

from accounts import audit
from accounts.models import Namespace, User
from jobs import faults, lifecycle, live
from jobs.cluster.adopted import MOST_WORKERS, created_by, is_waiting, kept, spec_of, workers_of
from jobs.cluster.observed import DELETED
from jobs.cluster.port import Cluster as Port
from jobs.cluster.port import Manifest, ObjectRef
from jobs.cluster.registry import connect, setting_of
from jobs.exceptions import ClusterError, ClusterUnavailable, ObjectDiffers
from jobs.models import ADOPTED, Adoption, Attempt, ClusterNamespace, Job, JobEvent, JobFeed, PriorityClass
from jobs.spec import JobSpec, spec_to_dict
from jobs.states import JobStatus, Reason
from jobs.tenants import Rights
from jobs.yaml_text import to_yaml

DAY = 24 * 3600  # seconds; the limit of a Job that has none, as of a document that says nothing
NOBODY = "somebody:unknown"  # the subject of the account that stands for makers whom the portal does not know
logger = logging.getLogger(__name__)


def look(cluster: str, port: Port, jobs: Sequence[Manifest], *, asked: Collection[str] | None = None) -> int:
    """Take in what waits on the cluster, and cancel what was taken away while it waited; how many are new.

    `jobs` is everything, or what there is of the UIDs that were asked for.
    """
    waiting = {job["metadata"]["uid"]: job for job in jobs if is_waiting(job)}
    known = (
        set(Adoption.objects.filter(cluster=cluster, uid__in=waiting).values_list("uid", flat=True)) if waiting else ()
    )
    new = [job for uid, job in waiting.items() if uid not in known]
    there = {job["metadata"]["uid"] for job in jobs}
    if asked is None or set(asked) - there:
        _cancel_deleted(cluster, port, there, asked)
    return sum(_adopt(cluster, job) for job in new) if new else 0


def _adopt(cluster: str, job: Manifest) -> bool:
    """One job, or none. What is wrong with one must not keep the others waiting."""
    row = (
        ClusterNamespace.objects.filter(cluster=cluster, namespace__kubernetes_name=job["metadata"]["namespace"])
        .exclude(digest="")
        .select_related("namespace__owner")
        .first()
    )
    if row is None:
        return False  # not a namespace of this portal
    try:
        with transaction.atomic():
            _insert(cluster, row.namespace, job)
            faults.point("adopt.before_commit")
    except IntegrityError:
        logger.info("%s was adopted by another process", job["metadata"]["name"])
        return False
    except OperationalError:
        raise
    except Exception as error:
        _complain(job["metadata"]["uid"], f"{job['metadata']['name']} in {row.namespace}", repr(error))
        return False
    faults.point("adopt.after_commit")
    return True


@lru_cache(maxsize=1000)
def _complain(_uid: str, name: str, _error: str) -> None:
    """Once about each Job and what is wrong with it, though it is met again with every look."""
    logger.exception("%s could not be adopted", name)


def _insert(cluster: str, namespace: Namespace, manifest: Manifest) -> None:
    maker = created_by(manifest)
    user = _person(cluster, namespace, maker)
    metadata, written = manifest["metadata"], kept(manifest)
    spec = spec_of(written, namespace=namespace.slug, cluster=cluster, time_limit=DAY)
    job = Job.objects.create(
        namespace=namespace,
        owner=user or _nobody(),
        cluster_id=cluster,
        runtime_snapshot={"slug": "", "version": 1, "title": ADOPTED, "metric_rules": []},
        spec_text=to_yaml([written]),
        spec_format="yaml",
        spec=spec_to_dict(spec),
        origin=ADOPTED,
        reason_code=Reason.PENDING_EVALUATION,
        reason="Waits for the dispatcher's next look.",
        name=spec.name,
        priority=_priority(spec),
        preemptible=False,
        workers=spec.resources.workers,
        gpus=spec.resources.gpus,
        gpu_type=spec.resources.gpu_type,
        cpu_millis=spec.resources.cpu_millis,
        memory_bytes=spec.resources.memory_bytes,
        code_ready_at=timezone.now(),
    )
    Adoption.objects.create(
        job=job,
        cluster_id=cluster,
        uid=metadata["uid"],
        kubernetes_namespace=metadata["namespace"],
        object_name=metadata["name"],
        created_by=maker,
        is_known=user is not None,
        manifest=written,
    )
    JobFeed.objects.create(job=job)
    JobEvent.objects.create(
        job=job,
        new=JobStatus.QUEUED,
        reason_code=job.reason_code,
        reason=f"Found on {cluster} as {metadata['namespace']}/{metadata['name']}, made by {maker or 'nobody knows whom'}.",
        actor=user.username if user else "",
    )
    told = {"name": job.name, "gpus": job.total_gpus, "origin": job.origin, "uid": metadata["uid"], "created_by": maker}
    audit.record(user, "job.adopt", target=job.pk, namespace=namespace.slug, after=told)
    live.publish(f"job/{job.pk}", job.version, namespace_id=namespace.pk)
    live.wake("jobs.tasks.dispatch_waiting")
    if (count := workers_of(manifest)) > MOST_WORKERS:
        text = f"It asks for {count} pods at one time; a job may have {MOST_WORKERS}."
        lifecycle.move(job, JobStatus.FAILED, code=Reason.NEVER_FITS, reason=text, finished_at=timezone.now())


def _person(cluster: str, namespace: Namespace, maker: str) -> User | None:
    """Who that is, of those who have a role in the namespace; None for controllers, admins of the cluster and strangers."""
    setting = setting_of(cluster)
    if setting is None or not maker:
        return None
    rights = Rights.now(namespace)
    people = (one for one in rights.roles_in(namespace) if setting.users.name(rights.person(one)) == maker)
    return next(people, None)


def _nobody() -> User:
    """Rows need an owner. Nobody can sign in as this one, and no role is ever given to it."""
    user = User.objects.filter(subject=NOBODY).first()
    if user is not None:
        return user
    taken = set(User.objects.filter(username__startswith="unknown").values_list("username", flat=True))
    names = ("unknown", *(f"unknown-{number}" for number in range(2, len(taken) + 3)))
    return User.objects.create_user(
        next(name for name in names if name not in taken),
        subject=NOBODY,
        source="cluster",
        display_name="Not known here",
        is_active=False,
        disabled_by="admin",
    )


def _priority(spec: JobSpec) -> PriorityClass:
    """The one it names; where an admin has none of that name, the last in line."""
    found = PriorityClass.objects.filter(name=spec.priority).first() or PriorityClass.objects.order_by("value").first()
    if found is None:
        raise LookupError("This portal has no priority classes.")
    return found


# What becomes of them


def last_form(job: Job) -> Manifest:
    """Of an adopted job, what was adopted; {} for one of ours."""
    return dict(job.adoption.manifest) if job.is_adopted else {}


def _cancel_deleted(cluster: str, port: Port, there: Collection[str], asked: Collection[str] | None) -> None:
    """Who deletes with kubectl what still waits has cancelled it. Of one that was started the watcher tells the end."""
    waiting = Adoption.objects.filter(cluster=cluster, gone_at=None, job__status=JobStatus.QUEUED)
    if asked is not None:
        waiting = waiting.filter(uid__in=set(asked) - set(there))
    for adoption in waiting.exclude(uid__in=there).select_related("job__namespace").defer("manifest"):
        if _is_there(port, adoption):
            continue  # the list was older than it
        with transaction.atomic():
            moved = lifecycle.move(
                adoption.job, JobStatus.CANCELLED, code=Reason.STOPPED, reason=DELETED, finished_at=timezone.now()
            )
            if moved:  # else another process was quicker; the next look sees what it did
                Adoption.objects.filter(pk=adoption.pk).update(gone_at=timezone.now())


def note_deletion(attempt: Attempt) -> None:
    """Its Job is gone while its pods run on: whatever they end with, somebody wanted its end."""
    if not attempt.reason_code:
        attempt.reason_code, attempt.reason = Reason.STOPPED, DELETED
        attempt.save(update_fields=["reason_code", "reason"])


def remove_cancelled() -> int:
    """Delete the objects of adopted jobs that were stopped here, above all before they ran; how many are gone."""
    left = Adoption.objects.filter(gone_at=None, job__status=JobStatus.CANCELLED)
    gone = 0
    for adoption in left.defer("manifest").order_by("pk")[:100]:
        try:
            port = connect(adoption.cluster_id)
            port.delete(_reference(adoption), person=None)
            if _is_there(port, adoption):
                continue
        except ObjectDiffers:
            logger.info("%s is gone, and its name is another's", adoption)
        except ClusterError as error:
            logger.warning("%s is not removed yet: %s", adoption, error)
            continue
        gone += Adoption.objects.filter(pk=adoption.pk, gone_at=None).update(gone_at=timezone.now())
    return gone


def _is_there(port: Port, adoption: Adoption) -> bool:
    try:
        return port.find(_reference(adoption)) is not None
    except ObjectDiffers:
        return False
    except ClusterUnavailable:
        return True  # not known: asked again with the next look


def _reference(adoption: Adoption) -> ObjectRef:
    return ObjectRef(adoption.kubernetes_namespace, adoption.object_name, adoption.uid)
