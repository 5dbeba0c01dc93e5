"""Attempts beside what their objects say, and what follows for them and their jobs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from jobs import adoption, dispatch, failures, faults, interruptions, lifecycle
from jobs.cluster.observed import Observed, observe_attempt
from jobs.cluster.port import Manifest
from jobs.logs.lines import LogFollower
from jobs.models import Attempt, Job, Worker
from jobs.states import JobStatus, Reason
from jobs.worker_rows import store_workers, update_workers

LOGS_WAITED_FOR = timedelta(minutes=1)
SETTLE_TRIES = 5  # people write a job now and then, not five times while it ends
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Look:
    """One attempt beside what its objects say."""

    attempt: Attempt
    manifest: Manifest | None  # of its leader; None: it is gone
    observed: Observed
    workers: list[Worker]  # as they are now
    changed: list[Worker]  # those that the database has otherwise

    @classmethod
    def at(
        cls,
        attempt: Attempt,
        manifest: Manifest | None,
        pods: Sequence[Manifest],
        *,
        workers: list[Worker],
        others: Sequence[Manifest],
        events: Sequence[Manifest] = (),
    ) -> Look:
        leader = attempt.job.pod_groups[0]
        observed = observe_attempt(
            # gone: then only we know how many it had
            manifest or adoption.last_form(attempt.job) or {"spec": {"parallelism": leader.count}},
            pods,
            others=others,
            role=leader.role,
            deleted=manifest is None,
            events=events,
            stopped=attempt.stop_requested_at is not None,
            adopted=attempt.job.is_adopted,
            taken_away=attempt.job.is_adopted and attempt.reason_code == Reason.STOPPED,
        )
        return cls(attempt, manifest, observed, workers, update_workers(workers, observed.workers))


def bring_in_line(looks: Sequence[Look], follower: LogFollower) -> None:
    """Everything that these attempts' objects say, written once."""
    store_workers([worker for look in looks for worker in look.changed])
    faults.point("watch.pods_seen")
    lifecycle.touch([look.attempt.job for look in looks if conclude_or_show(look, follower)])


def conclude_or_show(look: Look, follower: LogFollower) -> bool:
    """What follows for the attempt and its job, the most final question first.

    True if only its workers have changed, which are stored already: pages are to be told.
    """
    attempt, observed, workers = look.attempt, look.observed, look.workers
    if observed.notice is not None:
        interruptions.tell(attempt, observed.notice)
    # what somebody deletes with kubectl has its grace, in which it writes on
    is_gone = look.manifest is None and not attempt.job.is_adopted
    is_read = is_gone or follower.follow(attempt, workers)
    if observed.ended or look.manifest is None:
        follower.finish(workers)
    only_workers = False
    if attempt.ended_at is None:
        if observed.ended and not is_read and attempt.stop_code == Reason.STOPPED and not waited_for_logs(workers):
            return False  # its object goes as it is settled, and the last lines with it
        if observed.ended:
            settle(attempt, observed)
        elif look.manifest is None and attempt.job.is_adopted and not observed.pods_gone:
            adoption.note_deletion(attempt)
            return False  # its pods are in their grace: they hold what they hold until they have ended
        elif look.manifest is None:
            settle(attempt, Observed.vanished())
        elif observed.decided:
            conclude(attempt, observed)
        else:
            only_workers = not show_progress(attempt.job, attempt, observed) and bool(look.changed)
    if attempt.ended_at is not None and observed.ended and (is_read or waited_for_logs(workers)):
        # logs were read to their end above, after the pods had ended: now the objects may go
        dispatch.delete_objects(attempt)
    return only_workers


def waited_for_logs(workers: Sequence[Worker]) -> bool:
    """A machine that cannot be asked for the last lines keeps an object for a while, not for ever."""
    ends = [worker.finished_at for worker in workers if worker.finished_at is not None]
    return not ends or timezone.now() - max(ends) > LOGS_WAITED_FOR


def settle(attempt: Attempt, observed: Observed) -> None:
    failures.note_cause(attempt, observed)
    faults.point("settle.before")
    for _try in range(SETTLE_TRIES):
        if attempt.stop_code == Reason.STOPPED and attempt.deleted_at is None and not dispatch.delete_objects(attempt):
            return  # "cancelled" is written only once the object is gone
        if lifecycle.settle(attempt.job, attempt, observed):
            break
        # decided anew at once, on the rows as they are now: an object that is gone will not be seen a second time
        logger.info("%s was written by another process; looked at again", attempt.job_id)
        attempt.refresh_from_db()
    faults.point("settle.after")


def conclude(attempt: Attempt, observed: Observed) -> None:
    """The leader has ended, or a role has failed, and the rest runs on: what is known is stored, then the rest is ended.

    Quota and another attempt wait until its pods are gone; the news of a success does not.
    """
    for _try in range(SETTLE_TRIES):
        if observed.status != JobStatus.SUCCEEDED or lifecycle.conclude(attempt.job, attempt, observed):
            break
        attempt.refresh_from_db()
    faults.point("conclude.before_end")
    dispatch.end_the_rest(attempt)


def show_progress(job: Job, attempt: Attempt, observed: Observed) -> bool:
    """Whether the job itself had anything new to say, or has gone on without this attempt."""
    if job.attempt_number != attempt.number or job.is_final:
        return True
    if observed.status == JobStatus.RUNNING and job.status == JobStatus.STARTING:
        faults.point("watch.running_seen")
        return lifecycle.mark_running(job, attempt, reason=observed.text)
    if job.status == JobStatus.STARTING and observed.text and attempt.released_at:
        reason = observed.reason or Reason.SETTING_UP
        if (job.reason_code, job.reason) != (reason, observed.text):
            return lifecycle.explain(job, reason, observed.text)
    return False
