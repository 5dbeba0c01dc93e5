"""From waiting to launched: one dispatcher at a time admits, then each attempt is created and released on its cluster.

Ending an attempt before its time is here too: the same objects, the other way.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from jobs import credentials, faults, interruptions, lifecycle, shared_secrets, shared_volumes, tenancy
from jobs.checkpoints import resume_from
from jobs.cluster.adopted import workers_of
from jobs.cluster.manifests import Rendering, render
from jobs.cluster.messages.creation import of_refusal
from jobs.cluster.observed import DELETED, Observed
from jobs.cluster.port import Cluster, ObjectRef, Objects
from jobs.cluster.registry import connect, helper_image, internal_url, tolerations, topology
from jobs.exceptions import (
    ClusterForbids,
    ClusterRefuses,
    ClusterUnavailable,
    ObjectDiffers,
    ObjectGone,
    SecretGone,
    VolumeGone,
)
from jobs.models import Attempt, Job
from jobs.parsing import argv_of
from jobs.placement import shared_domain
from jobs.queue import plan
from jobs.snapshot import domains_of, take_snapshot
from jobs.states import JobStatus, Reason
from jobs.tenants import numbers_of, person_of

DISPATCH_LOCK = 0x7261696E  # any number, the same in every process
EXPLAINED_PER_PASS = 1000  # rows whose sentence is rewritten in one transaction; the next pass does the rest
logger = logging.getLogger(__name__)


def admit_waiting() -> list[int]:
    """One pass of the dispatcher over every cluster; the ids of the attempts to launch."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '10s'")
            # blocking, and of the transaction: a session lock would stay behind on a pooled connection
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [DISPATCH_LOCK])
        # READ COMMITTED: what is read after the lock is what the last dispatcher left
        admitted: list[int] = []
        for cluster_name, snapshot, jobs in take_snapshot():
            decided = plan(snapshot, timezone.now())
            for admission in decided.admissions:
                attempt = lifecycle.admit(jobs[admission.job_id], admission.nodes)
                if attempt:
                    admitted.append(attempt.pk)
            stale = [wait for wait in decided.waits if _differs(jobs[wait.job_id], wait.code, wait.text)]
            for wait in stale[:EXPLAINED_PER_PASS]:
                lifecycle.explain(jobs[wait.job_id], wait.code, wait.text)
            if decided.admissions:
                logger.info("%s: admitted %d, %d wait", cluster_name, len(decided.admissions), len(decided.waits))
        faults.point("dispatch.before_commit")
    faults.point("dispatch.after_commit")
    return admitted


def _differs(job: Job, code: str, text: str) -> bool:
    return (job.reason_code, job.reason) != (code, text)


@contextmanager
def _only_one(attempt_id: int) -> Iterator[Attempt | None]:
    """The attempt, locked for this transaction: launch and stop of one attempt never overlap.

    So a stop that finds no object knows that no create is in flight (the lock of a killed process is gone with it).
    """
    with transaction.atomic():
        yield (
            Attempt.objects.select_for_update(of=("self",))
            .select_related("cluster", "job__namespace__owner", "job__owner", "job__code")
            .filter(pk=attempt_id)
            .first()
        )


def launch(attempt_id: int) -> None:
    """Create an admitted attempt's objects and release them. Safe to repeat, whatever a crash left."""
    # in a transaction of its own: what an attempt was told stays what it was told, whatever becomes of the rest
    with _only_one(attempt_id) as attempt:
        if attempt is not None and not _knows_resume(attempt):
            return
    with _only_one(attempt_id) as attempt:
        if attempt is None or attempt.ended_at or attempt.released_at:
            return
        if attempt.stop_code:
            _stop(attempt)
        else:
            _launch(attempt)
    faults.point("launch.after_commit")


def _knows_resume(attempt: Attempt) -> bool:
    """Store the checkpoint that an attempt is to go on from; False where its cluster cannot be asked for it now."""
    if attempt.resume_from is not None or attempt.ended_at or attempt.stop_code or attempt.job.is_adopted:
        return True
    interruptions.note_before(attempt)
    try:
        attempt.resume_from = resume_from(attempt)
    except ClusterUnavailable as error:
        _launch_later(attempt, error)
        return False
    attempt.save(update_fields=["resume_from"])
    return True


def _launch_later(attempt: Attempt, error: ClusterUnavailable) -> None:
    logger.warning("%s is not launched yet: %s", attempt, error)
    lifecycle.explain(attempt.job, Reason.WAITING_FOR_CLUSTER, f"{error} Tried again by itself.")


def _launch(attempt: Attempt) -> None:
    job = attempt.job
    try:
        port = connect(attempt.cluster_id)
        tenancy.ensure(port, attempt.cluster, job.namespace)
        if job.is_adopted:
            _release_adopted(port, attempt)
            return
        objects = objects_of(attempt)
        faults.point("launch.before_create")
        uid = port.create(objects, person=person_of(job.owner))
        faults.point("launch.after_create")
        if not attempt.uid:
            attempt.uid, attempt.created_on_cluster_at = uid, timezone.now()
            attempt.save(update_fields=["uid", "created_on_cluster_at"])
            faults.point("launch.after_uid")
        elif attempt.uid != uid:
            raise ObjectDiffers(f"{attempt.object_name} is not the object that was created before.")
        port.release(reference(attempt))
        _note_release(attempt)
    except ClusterUnavailable as error:
        _launch_later(attempt, error)
    except ClusterForbids as error:
        if tenancy.is_fresh(attempt.cluster, job.namespace):
            _launch_later(attempt, ClusterUnavailable(f"The cluster does not know of new rights yet: {error}"))
            return
        # nothing exists; the wish of the owner stays, and a person with the right may release it
        _give_up(attempt, Reason.FORBIDDEN, of_refusal(str(error)).text, hold=True)
    except SecretGone as error:
        _give_up(attempt, Reason.SECRET_GONE, str(error), hold=True)
    except VolumeGone as error:
        _give_up(attempt, Reason.VOLUME_GONE, str(error), hold=True)
    except (ClusterRefuses, ObjectDiffers, ObjectGone) as error:
        _give_up(attempt, Reason.REFUSED_BY_CLUSTER, f"The cluster refuses it: {error}", hold=False)


def _note_release(attempt: Attempt) -> None:
    faults.point("launch.after_release")
    attempt.released_at = timezone.now()
    attempt.save(update_fields=["released_at"])
    lifecycle.explain(attempt.job, Reason.SETTING_UP, "Its pods are starting.")


def _release_adopted(port: Cluster, attempt: Attempt) -> None:
    """Its object is there, made by somebody else: it is what was queued, or it is not started."""
    job = attempt.job
    found = port.find(reference(attempt))
    if found is None:
        lifecycle.end_attempt(attempt, code=Reason.STOPPED, reason=DELETED, exit_code=None)
        lifecycle.move(job, JobStatus.CANCELLED, code=Reason.STOPPED, reason=DELETED, finished_at=timezone.now())
        Attempt.objects.filter(pk=attempt.pk).update(deleted_at=timezone.now())
        return
    if workers_of(found) != job.workers:
        raise ObjectDiffers(f"It asks for {workers_of(found)} pods now and was queued with {job.workers}.")
    port.release(reference(attempt), job_id=job.pk, time_limit=job.spec["time_limit"])
    _note_release(attempt)


def _give_up(attempt: Attempt, code: Reason, text: str, *, hold: bool) -> None:
    lifecycle.end_attempt(attempt, code=code, reason=text, exit_code=None)
    job = attempt.job
    if hold:
        lifecycle.move(job, JobStatus.QUEUED, code=code, reason=text, held_by=job.owner, queued_at=timezone.now())
    else:
        lifecycle.move(job, JobStatus.FAILED, code=code, reason=text, finished_at=timezone.now())


def stop(attempt_id: int) -> None:
    """Take the next step of ending an attempt, and return: waiting for the grace is the watcher's work."""
    with _only_one(attempt_id) as attempt:
        if attempt is None or attempt.ended_at or not attempt.stop_code:
            return
        try:
            _stop(attempt)
        except ClusterUnavailable as error:
            logger.warning("%s is not stopped yet: %s", attempt, error)


def _stop(attempt: Attempt) -> None:
    job, port, ref = attempt.job, connect(attempt.cluster_id), reference(attempt)
    by_person = attempt.stop_code in (Reason.STOPPED, Reason.HELD)
    is_nobodys = job.is_adopted and not job.adoption.is_known  # then a lead stops it, whom the cluster need not know
    person = person_of(job.owner) if by_person and not is_nobodys else None
    if not attempt.released_at:
        # nothing of the user's has run; a create that crashed may have left the object, whose uid we then never read
        if not job.is_adopted or attempt.stop_code == Reason.STOPPED:
            port.delete(ref, person=person)
        if left := _still_there(port, ref, unless_suspended=job.is_adopted):
            # released by a process that died before it could store that: its pods end now, and the watcher settles it
            attempt.uid, attempt.released_at, attempt.stop_requested_at = left, timezone.now(), timezone.now()
            attempt.save(update_fields=["uid", "released_at", "stop_requested_at"])
            return
        Attempt.objects.filter(pk=attempt.pk).update(deleted_at=timezone.now())
        words = "Ended before anything of it ran."
        lifecycle.settle(job, attempt, Observed.ended_without_running(Reason(attempt.stop_code), words))
        return
    if job.stop_now_at:
        port.kill(ref, person=person)
    elif attempt.stop_requested_at is None:
        port.delete(ref, person=person, dry_run=True)  # the cluster's own rights decide whether one may
        port.suspend(ref)
    if attempt.stop_requested_at is None:
        attempt.stop_requested_at = timezone.now()
        grace = 0 if job.stop_now_at else job.parsed.stop_grace
        attempt.stop_deadline = attempt.stop_requested_at + timedelta(seconds=grace)
        attempt.save(update_fields=["stop_requested_at", "stop_deadline"])
        lifecycle.write(job)  # viewers see the countdown


def end_the_rest(attempt: Attempt) -> None:
    """End the pods of an attempt whose outcome is certain: a parameter server would wait for ever. Safe to repeat."""
    if attempt.stop_requested_at is not None:
        return
    try:
        connect(attempt.cluster_id).suspend(reference(attempt))
    except ClusterUnavailable as error:
        logger.warning("The rest of %s is not ended yet: %s", attempt, error)
        return
    attempt.stop_requested_at = timezone.now()
    attempt.stop_deadline = attempt.stop_requested_at + timedelta(seconds=attempt.job.parsed.stop_grace)
    attempt.save(update_fields=["stop_requested_at", "stop_deadline"])


def delete_objects(attempt: Attempt) -> bool:
    """Remove what an attempt that is over left on its cluster; True once it is gone, which may take another look.

    What was adopted is its maker's, and stays unless somebody has stopped it here.
    """
    port = connect(attempt.cluster_id)
    if attempt.job.is_adopted and attempt.stop_code != Reason.STOPPED:
        return bool(Attempt.objects.filter(pk=attempt.pk, deleted_at=None).update(deleted_at=timezone.now()))
    try:
        port.delete(reference(attempt), person=None)
        if _still_there(port, reference(attempt)):
            return False  # its pods are still being taken away
    except ObjectDiffers as error:
        logger.warning("%s is gone, and its name is another's: %s", attempt, error)
    except (ClusterUnavailable, ClusterForbids, ClusterRefuses) as error:
        logger.warning("%s is not removed yet: %s", attempt, error)
        return False
    faults.point("remove.before_write")
    return bool(Attempt.objects.filter(pk=attempt.pk, deleted_at=None).update(deleted_at=timezone.now()))


def _still_there(port: Cluster, ref: ObjectRef, *, unless_suspended: bool = False) -> str:
    """The UID of an object that is there although it was deleted: its pods have not ended yet."""
    found = port.find(ref)
    if found and unless_suspended and found["spec"].get("suspend"):
        return ""
    return str(found["metadata"]["uid"]) if found else ""


def reference(attempt: Attempt) -> ObjectRef:
    return ObjectRef(namespace=attempt.kubernetes_namespace, name=attempt.object_name, uid=attempt.uid)


def objects_of(attempt: Attempt, *, with_secrets: bool = True) -> Objects:
    """All that goes to the cluster for one attempt; the same whenever it is asked, so a launch can be repeated.

    Without secrets their names stay, for showing: the values of a job that is over are gone anyway.
    """
    job = attempt.job
    spec = job.parsed
    pull_config = ""
    mounted = shared_volumes.mounted(job.namespace, user=job.owner, cluster=attempt.cluster_id)
    if with_secrets:
        shared_volumes.check_at_launch(spec, namespace=job.namespace, home=mounted.home)
        secrets = {secret.name: credentials.decrypt(bytes(secret.ciphertext)) for secret in job.secrets.all()}
        secrets |= shared_secrets.values_for(job.namespace, spec.secrets)
        pull_config = shared_secrets.pull_config(job.namespace, [spec.image])
    else:
        secrets = {secret.name: "" for secret in spec.secrets}
    code_url = ""
    if job.code:
        query = credentials.sign_code(job.code.sha256, job.pk, attempt.number)
        code_url = f"{internal_url(attempt.cluster_id)}/code/{job.code.sha256}/?{query}"
    return render(
        Rendering(
            spec=spec,
            job_id=job.pk,
            attempt=attempt.number,
            instance=settings.TRAINHALL_INSTANCE,
            kubernetes_namespace=attempt.kubernetes_namespace,
            username=job.owner.username,
            internal_url=internal_url(attempt.cluster_id),
            token=credentials.attempt_token(job.pk, attempt.number),
            code_url=code_url,
            code_sha256=job.code.sha256 if job.code else "",
            secret_env=secrets,
            pull_config=pull_config,
            helper_image=helper_image(attempt.cluster_id),
            resume_from=attempt.resume_from or "",
            argv=argv_of(spec.command, spec.parameters),
            identity=_identity(job),
            launcher=spec.launcher,
            topology=topology(attempt.cluster_id),
            tolerations=tolerations(attempt.cluster_id),
            close_to=shared_domain(attempt.placement, domains_of(attempt.cluster), topology(attempt.cluster_id)),
            home=mounted.home,
            read_only_claims=mounted.read_only_claims,
            ssh_key=credentials.ssh_key_pair(job.pk, attempt.number) if spec.launcher == "mpi" else ("", ""),
        )
    )


def _identity(job: Job) -> tuple[int, int, tuple[int, ...]]:
    uid, gids = numbers_of(job.owner)
    return uid, gids[0], gids[1:]
