"""The one place that changes Job.status.

Every write to a job is a compare-and-set on its version, in one transaction with its JobEvent and the ledger. Who loses looks
at the job again instead of insisting. Who writes an attempt and its job writes the attempt first: launch and stop hold it, and
two orders would be a deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from jobs import exits, faults, live, retries
from jobs.cluster.observed import Observed
from jobs.gang import leader_name, places
from jobs.models import Attempt, Job, JobEvent, JobSecret, UsageInterval, Worker
from jobs.states import FINAL, NOT_CHARGED, JobStatus, Reason, check_move

ONCE = "It was made with kubectl, and such a job is started once: make it again to run it again."


def write(job: Job, **fields: Any) -> bool:
    """Write fields of a job, once. False if somebody else wrote it since it was read."""
    written = Job.objects.filter(pk=job.pk, version=job.version).update(version=F("version") + 1, **fields)
    if not written:
        return False
    job.version += 1
    for name, value in fields.items():
        setattr(job, name, value)
    live.publish(f"job/{job.pk}", job.version, namespace_id=job.namespace_id)
    return True


def touch(jobs: Sequence[Job]) -> None:
    """Raise the version of each, for pages to show anew what belongs to it, in one statement.

    It waits for no row: somebody who holds several in another order would wait for ours. What is held is written after that.
    """
    if not jobs:
        return
    table = Job._meta.db_table
    query = (
        f"UPDATE {table} SET version = version + 1 WHERE id IN (SELECT id FROM {table} JOIN"  # noqa: S608
        " unnest(%s::text[], %s::bigint[]) AS known (job, read) ON id = job AND version = read"
        f" FOR NO KEY UPDATE OF {table} SKIP LOCKED) RETURNING id"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [[job.pk for job in jobs], [job.version for job in jobs]])
        written = {job_id for (job_id,) in cursor.fetchall()}
    for job in jobs:
        if job.pk in written:
            job.version += 1
        else:
            write(job)
    live.publish_all([(f"job/{job.pk}", job.version, job.namespace_id) for job in jobs if job.pk in written])


def move(
    job: Job, new: str, *, code: str = "", reason: str = "", shown: str = "", actor: str = "", **fields: Any
) -> bool:
    """Move a job to a new status, once. `shown`: what the job says of it, where that is plainer than the event's reason.

    Return False if another process moved it first: the caller's picture of the job is stale, and it should look again
    rather than insist.
    """
    old = job.status
    check_move(old, new)
    with transaction.atomic():
        if not write(job, status=new, reason_code=code, reason=shown or reason, **fields):
            return False
        record(job, old=old, new=new, code=code, reason=reason, actor=actor)
        if new in FINAL:
            JobSecret.objects.filter(job=job).delete()
        faults.point("move.before_commit")
    return True


def record(
    job: Job,
    *,
    kind: str = "move",
    old: str = "",
    new: str = "",
    code: str = "",
    reason: str = "",
    actor: str = "",
    attempt: int | None = None,  # an earlier one
) -> None:
    JobEvent.objects.create(
        job=job,
        kind=kind,
        attempt=job.attempt_number if attempt is None else attempt,
        old=old,
        new=new,
        reason_code=code,
        reason=reason,
        actor=actor,
    )


def explain(job: Job, code: str, reason: str) -> bool:
    """Say why a job stands where it stands, without moving it; an event only when the kind of reason changes."""
    if (job.reason_code, job.reason) == (code, reason):
        return True
    with transaction.atomic():
        changed = job.reason_code != code
        if not write(job, reason_code=code, reason=reason):
            return False
        if changed:
            record(job, kind="cluster" if job.status != JobStatus.QUEUED else "intent", code=code, reason=reason)
    return True


def admit(job: Job, nodes: Sequence[str]) -> Attempt | None:
    """queued -> starting: attempt N, its workers and their open usage intervals, in the dispatcher's transaction."""
    now = timezone.now()
    number = job.attempt_number + 1
    groups = job.pod_groups
    waited = job.waited_seconds + (now - job.queued_at).total_seconds()
    text = f"Admitted on {', '.join(dict.fromkeys(nodes))}; its pods are being made."
    adopted = job.adoption if job.is_adopted else None
    with transaction.atomic():
        if not move(
            job,
            JobStatus.STARTING,
            code=Reason.ADMITTED,
            reason=text,
            attempt_number=number,
            waited_seconds=waited,
            exit_code=None,
            not_before=None,
            warned_at=None,
        ):
            return None
        attempt = Attempt.objects.create(
            job=job,
            number=number,
            cluster_id=job.cluster_id,
            kubernetes_namespace=adopted.kubernetes_namespace if adopted else job.namespace.kubernetes_name,
            object_name=adopted.object_name if adopted else leader_name(job.pk, number, groups),
            uid=adopted.uid if adopted else "",
            placement=list(nodes),
            admitted_at=now,
        )
        workers = Worker.objects.bulk_create(
            Worker(attempt=attempt, role=role, index=index, node=node)
            for (role, index), node in zip(places(groups), nodes, strict=True)
        )
        sizes = {group.role: group for group in groups}
        UsageInterval.objects.bulk_create(
            UsageInterval(
                worker=worker,
                namespace_id=job.namespace_id,
                owner_id=job.owner_id,
                priority=job.priority_id,
                gpus=sizes[worker.role].gpus,
                gpu_type=job.gpu_type if sizes[worker.role].gpus else "",
                cpu_millis=sizes[worker.role].cpu_millis,
                memory_bytes=sizes[worker.role].memory_bytes,
                started_at=now,
            )
            for worker in workers
        )
    return attempt


def mark_running(job: Job, attempt: Attempt, *, reason: str = "") -> bool:
    now = timezone.now()
    with transaction.atomic():
        Attempt.objects.filter(pk=attempt.pk, started_at=None).update(started_at=now)
        if not move(job, JobStatus.RUNNING, reason=reason, started_at=job.started_at or now):
            transaction.set_rollback(True)
            return False
    return True


def end_attempt(attempt: Attempt, *, code: str, reason: str, exit_code: int | None) -> bool:
    """Store how an attempt ended and give back what it held; the pods are gone. Once: False if it was stored before."""
    now = timezone.now()
    with transaction.atomic():
        ended = Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(
            ended_at=now, reason_code=code, reason=reason, exit_code=exit_code
        )
        if not ended:
            return False
        UsageInterval.objects.filter(worker__attempt=attempt, ended_at=None).update(ended_at=now)
        attempt.ended_at, attempt.reason_code, attempt.reason, attempt.exit_code = now, code, reason, exit_code
    return True


def conclude(job: Job, attempt: Attempt, outcome: Observed) -> bool:
    """The leader of an attempt has succeeded while pods of other roles still run: the job is over, and what they hold is held.

    False if the job was written meanwhile; nothing is stored then and the caller looks again.
    """
    code, text = outcome.reason or Reason.COMPLETED, outcome.text
    with transaction.atomic():
        known = Attempt.objects.filter(pk=attempt.pk, ended_at=None, reason_code="")
        known.update(reason_code=code, reason=text, exit_code=outcome.exit_code)
        attempt.reason_code, attempt.reason, attempt.exit_code = code, text, outcome.exit_code
        if job.attempt_number != attempt.number or job.is_final:
            return True
        if not _move_on(job, attempt, outcome.status, code, text):
            transaction.set_rollback(True)
            return False
    return True


def settle(job: Job, attempt: Attempt, outcome: Observed) -> bool:
    """The attempt is over, its pods are gone: store that, return the quota, and move the job where that leads.

    False if the job was written meanwhile; nothing is stored then and the caller looks again.
    """
    with transaction.atomic():
        code, text, exit_code = outcome.reason or Reason.OUTCOME_UNKNOWN, outcome.text, outcome.exit_code
        if attempt.reason_code and attempt.ended_at is None:  # it was concluded, whatever became of the rest
            code, text, exit_code = Reason(attempt.reason_code), attempt.reason, attempt.exit_code
        if not end_attempt(attempt, code=code, reason=text, exit_code=exit_code):
            attempt.refresh_from_db()
            code, text = Reason(attempt.reason_code), attempt.reason
        if job.attempt_number != attempt.number:
            return True
        if job.is_final:
            write(job)  # its page shows how the last pods ended
            live.wake("jobs.tasks.dispatch_waiting")
            return True
        if not _move_on(job, attempt, outcome.status, code, text):
            transaction.set_rollback(True)
            return False
        live.wake("jobs.tasks.dispatch_waiting")
    return True


def _move_on(job: Job, attempt: Attempt, status: JobStatus | None, code: Reason, text: str) -> bool:
    now = timezone.now()
    over: dict[str, Any] = {"finished_at": now, "exit_code": attempt.exit_code}
    if job.cancel_requested_at and status != JobStatus.SUCCEEDED:
        by = job.cancel_requested_by.username if job.cancel_requested_by else "an admin"
        return move(job, JobStatus.CANCELLED, code=Reason.STOPPED, reason=_stopped_text(job, attempt, by), **over)
    if status == JobStatus.SUCCEEDED:
        return move(job, JobStatus.SUCCEEDED, code=code, reason=text, **over)
    if job.is_adopted and attempt.released_at:
        return _end_adopted(job, attempt, status, code, text, over)
    if attempt.stop_code in NOT_CHARGED:
        held = f"Held by {job.held_by.username}. " if attempt.stop_code == Reason.HELD and job.held_by else ""
        late = attempt.stop_code == Reason.START_TIMEOUT
        return _queue_again(
            job,
            Reason(attempt.stop_code),
            f"{held}Attempt {attempt.number}: {text}{_not_charged(job)}",
            **({"not_before": now + retries.start_again_in(job)} if late else {}),
        )
    if code in NOT_CHARGED or attempt.exit_code == exits.CHECKPOINTED:
        return _queue_again(job, code, f"Attempt {attempt.number}: {text}{_not_charged(job)}")
    verdict = retries.judge(job, attempt, code)
    # the job tells the cause that was found; the cluster's own words stay with the attempt and the event
    told = attempt.cause.get("text") or text
    if verdict.again:
        failures = job.charged_failures + 1
        at = now + retries.backoff(failures)
        first, then = (
            f"Attempt {attempt.number} of at most {retries.at_most(job)}:",
            f"Tries again at {at:%H:%M:%S} UTC.",
        )
        return _queue_again(
            job,
            Reason.RETRIED,
            f"{first} {text} {then}",
            shown=f"{first} {told} {then}",
            charged_failures=failures,
            not_before=at,
        )
    because = verdict.because.replace(f": {told.rstrip('.')}.", ".")  # not the same words twice
    return move(
        job,
        JobStatus.FAILED,
        code=code,
        reason=f"{text} {verdict.because}".strip(),
        shown=f"{told} {because}".strip(),
        **over,
    )


def _end_adopted(
    job: Job, attempt: Attempt, status: JobStatus | None, code: Reason, text: str, over: dict[str, Any]
) -> bool:
    """Its one object is used up, whatever ended it: there is no manifest of ours from which to make another."""
    if status == JobStatus.CANCELLED:
        return move(job, JobStatus.CANCELLED, code=code, reason=text, **over)
    again = attempt.stop_code in NOT_CHARGED or code in NOT_CHARGED
    words = f" {ONCE}" if again else ""
    told = attempt.cause.get("text") or text
    return move(job, JobStatus.FAILED, code=code, reason=f"{text}{words}", shown=f"{told}{words}", **over)


def _not_charged(job: Job) -> str:
    return " Not charged to its retries." if job.spec["retries"] else ""


def _stopped_text(job: Job, attempt: Attempt, by: str) -> str:
    note = f" {job.cancel_note}" if job.cancel_note else ""
    exit_text = f" Exit code {attempt.exit_code}." if attempt.exit_code is not None else ""
    return f"Stopped by {by}.{note}{exit_text}"


def _queue_again(job: Job, code: Reason, text: str, **fields: Any) -> bool:
    return move(
        job,
        JobStatus.QUEUED,
        code=code,
        reason=text,
        queued_at=timezone.now(),
        **fields,
    )


def warn_of_limit(job: Job, *, ends_at: datetime) -> bool:
    """Nine tenths of its time limit are over: once an attempt."""
    with transaction.atomic():
        if not write(job, warned_at=timezone.now()):
            return False
        record(job, kind="cluster", code=Reason.TIME_LIMIT, reason=f"Ends at {ends_at:%H:%M:%S} UTC: time limit.")
    return True


def mark_cleaned(job: Job, *, days: int) -> bool:
    """Its files are gone from the cluster; what the database has of it stays."""
    with transaction.atomic():
        if not write(job, cleaned_at=timezone.now()):
            return False
        kept = "a day" if days == 1 else f"{days} days"
        record(
            job, kind="cluster", reason=f"Its files were removed, {kept} after its end; logs, metrics and events stay."
        )
    return True


def code_is_ready(job: Job, *, archive_id: str, label: str, at: datetime | None = None) -> bool:
    with transaction.atomic():
        if not write(job, code_id=archive_id, code_label=label, code_ready_at=at or timezone.now()):
            return False
        record(job, kind="code", reason=f"Code fetched: {label}.")
        live.wake("jobs.tasks.dispatch_waiting")
    return True
