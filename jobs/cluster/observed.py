"""What an attempt's objects say, in our words: a pure function of its Jobs and Pods as last seen (RELIABILITY, STATE).

The most final question is asked first. What cannot be known is never success. A field that is missing is not an error.
Of several roles the leader's end is the end of all, and so is the failure of any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobs.cluster.fields import condition, is_true, moment, number, part, seen_at, text
from jobs.cluster.manifests import ROLE
from jobs.cluster.messages.creation import of_creation
from jobs.cluster.notices import Notice, notice_of
from jobs.cluster.pods import PodView, Verdict, WorkerState, named_in, read_pod, verdict, waiting
from jobs.cluster.port import Manifest
from jobs.cluster.room import NodeCapacity, free_capacity
from jobs.states import JobStatus, Reason

__all__ = ["NodeCapacity", "Observed", "WorkerState", "free_capacity", "observe_attempt"]

IN_ITS_GRACE = "It is ending."
DELETED = "Its Job was deleted on the cluster, not through the portal."


@dataclass(frozen=True, slots=True)
class Observed:
    """One attempt as its cluster shows it.

    `status` is starting, running, succeeded, failed or, where others deleted it, cancelled; None leaves the job where it is
    (an attempt that is being ended, or was stopped: the intent that we stored decides). A reason in states.NOT_CHARGED means
    another attempt, not a failed job.
    """

    status: JobStatus | None
    reason: Reason | None = None
    text: str = ""
    ended: bool = False  # the attempt is over: nothing of it runs and nothing will
    decided: bool = False  # how it ends is certain, and pods of other roles, which nothing else ends, may still run
    pods_gone: bool = False  # no pod holds anything at this moment
    workers: tuple[WorkerState, ...] = ()
    exit_code: int | None = None
    notice: Notice | None = None  # somebody else is ending it, or did

    @classmethod
    def vanished(cls, workers: tuple[WorkerState, ...] = ()) -> Observed:
        """The object is gone and nothing tells how it ended."""
        return cls(
            status=JobStatus.FAILED,
            reason=Reason.OUTCOME_UNKNOWN,
            text="Its object vanished from the cluster, so how it ended is not known.",
            ended=True,
            pods_gone=True,
            workers=workers,
        )

    @classmethod
    def ended_without_running(cls, reason: Reason, words: str) -> Observed:
        """Ended by us before anything of it ran."""
        return cls(status=JobStatus.FAILED, reason=reason, text=words, ended=True, pods_gone=True)


@dataclass(frozen=True, slots=True)
class _Look:
    """The objects of one attempt, read."""

    job: Manifest  # the leader's, or the only one
    others: tuple[Manifest, ...]
    pods: tuple[PodView, ...]  # of all roles
    role: str  # the leader's
    deleted: bool
    events: tuple[Manifest, ...] = ()  # warnings about its Jobs and Pods
    stopped: bool = False
    adopted: bool = False
    taken_away: bool = False

    @property
    def jobs(self) -> tuple[Manifest, ...]:
        return (self.job, *self.others)

    @property
    def leading(self) -> tuple[PodView, ...]:
        """The pods whose end decides: where there are but workers, all."""
        return self.pods if self.role == ROLE else tuple(pod for pod in self.pods if pod.worker.role == self.role)

    def about(self, pod: PodView) -> list[Manifest]:
        return [event for event in self.events if text(event, "involvedObject", "uid") == pod.worker.pod_uid]

    @property
    def workers(self) -> tuple[WorkerState, ...]:
        """In order; of pods with the same index the one that counts comes last."""
        in_time = sorted(
            self.pods, key=lambda pod: (text(pod.pod, "metadata", "creationTimestamp"), pod.worker.pod_uid)
        )
        workers = (pod.worker for pod in in_time)
        return tuple(sorted(workers, key=lambda worker: (worker.role, worker.index, worker.phase != "Failed")))

    @property
    def pods_gone(self) -> bool:
        return all(pod.is_terminal for pod in self.pods)

    @property
    def expected(self) -> int:
        return sum(_expected(job) for job in self.jobs)

    @property
    def has_succeeded(self) -> bool:
        """By its pods alone, whatever a Job says of them."""
        leading = self.leading
        if self.adopted:  # it may have tried again, and have had more to do than its pods at one time
            wanted = number(self.job, "spec", "completions") or _expected(self.job)
            return sum(pod.succeeded for pod in leading) >= wanted
        return bool(leading) and len(leading) >= _expected(self.job) and all(pod.succeeded for pod in leading)

    @property
    def leader_is_gone(self) -> bool:
        return all(pod.is_terminal for pod in self.leading)

    @property
    def is_suspended(self) -> bool:
        return part(self.job, "spec").get("suspend") is True

    @property
    def retries_itself(self) -> bool:
        """A Job made by kubectl with a backoffLimit of its own, or more to do than its pods at one time: the end of these
        is not its end. Ours have 0, and as many completions as pods."""
        spec = part(self.job, "spec")
        return bool(number(spec, "backoffLimit")) or (
            self.adopted and spec.get("completions") != spec.get("parallelism")
        )

    def says(
        self, status: JobStatus | None, found: Verdict | None = None, *, ended: bool = False, decided: bool = False
    ) -> Observed:
        return Observed(
            status=status,
            reason=found.reason if found else None,
            text=found.text if found else "",
            ended=ended,
            decided=decided and bool(self.others),
            pods_gone=self.pods_gone,
            workers=self.workers,
            exit_code=found.exit_code if found else None,
            notice=notice_of(self.pods),
        )


def observe_attempt(
    job: Manifest | None,
    pods: Sequence[Manifest],
    *,
    others: Sequence[Manifest] = (),
    role: str = ROLE,
    deleted: bool = False,
    events: Sequence[Manifest] = (),
    stopped: bool = False,
    adopted: bool = False,
    taken_away: bool = False,
) -> Observed:
    """Where the attempt stands. `job` is the leader's, which has that role; `others` are the Jobs of the other roles.

    `events` are the cluster's warnings about them: only these tell that a pod cannot be made, or its volume mounted.
    `stopped` says that it was released and suspended again by us, which a Job without pods does not tell.

    `adopted` says that it was made beside the portal, so that its maker may delete it; `taken_away`, that its Job was seen
    gone while pods of it still ran.

    `deleted` says that the leader's Job was there and is gone; `job` is then its last form, if kept.
    """
    look = _Look(
        job=job or {},
        others=tuple(others),
        pods=tuple(read_pod(pod) for pod in pods),
        role=role,
        deleted=deleted,
        events=tuple(events),
        stopped=stopped,
        adopted=adopted,
        taken_away=taken_away,
    )
    return (
        _complete(look)
        or _failed(look)
        or _deleted(look)
        or _suspended(look)
        or _ending(look)
        or _over_by_its_pods(look)
        or _alive(look, seen=job is not None)
    )


def _complete(look: _Look) -> Observed | None:
    if not is_true(look.job, "Complete"):
        return None
    if not look.leader_is_gone:  # it says so only once they have ended: their last words are still on their way
        return look.says(None, Verdict(Reason.COMPLETED, IN_ITS_GRACE, 0))
    seen = look.says(JobStatus.SUCCEEDED, _success(look), ended=look.pods_gone, decided=True)
    ended_by_us = {pod.worker.pod_uid for pod in look.pods if pod.was_asked_to_end} - {
        pod.worker.pod_uid for pod in look.leading
    }
    words = f"Ended with the {look.role}."
    workers = (replace(one, message=words) if one.pod_uid in ended_by_us else one for one in seen.workers)
    return replace(seen, workers=tuple(workers))


def _success(look: _Look) -> Verdict:
    """Exit code 0, but not always plain: a child may have been killed at the memory limit (RELIABILITY R23)."""
    for pod in look.leading:
        if pod.out_of_memory:
            words = f"Finished, memory limit hit: a process of {pod.worker.name} was killed at the limit."
            return Verdict(Reason.OUT_OF_MEMORY, words, 0)
    count = sum(pod.succeeded for pod in look.pods) if look.adopted else len(look.pods)
    workers = f"all {count} workers ended" if count > 1 else "it ended"
    if look.role != ROLE:
        words = " and ".join(pod.worker.name for pod in look.leading) or look.role
        return Verdict(Reason.COMPLETED, f"Finished: {words} ended with exit code 0, which ends the others.", 0)
    return Verdict(Reason.COMPLETED, f"Finished: {workers} with exit code 0.", 0)


def _failed(look: _Look) -> Observed | None:
    if not any(is_true(job, "Failed") for job in look.jobs):
        return None
    found = _why_failed(look)
    if not look.pods_gone:
        return look.says(None, found, decided=True)
    return look.says(JobStatus.FAILED, found, ended=True)


def _why_failed(look: _Look) -> Verdict | None:
    """The failure that came first: what follows in other roles follows from it, the leader's above all."""
    failures = [
        (text(found, "lastTransitionTime"), job, found)
        for job in (*look.others, look.job)
        for found in (condition(job, "FailureTarget"), condition(job, "Failed"))
        if found.get("status") == "True"
    ]
    if not failures:
        return None
    _at, job, found = min(failures, key=lambda one: one[0])
    if text(found, "reason") == "DeadlineExceeded":
        return _time_limit(look, job)
    return _blame(look, text(found, "message"))


def _time_limit(look: _Look, job: Manifest) -> Verdict:
    seconds = number(job, "spec", "activeDeadlineSeconds")
    limit = f"its limit of {_duration(seconds)}" if seconds else "its time limit"
    codes = [pod.worker.exit_code for pod in look.pods if pod.worker.exit_code is not None]
    return Verdict(
        Reason.TIME_LIMIT, f"It ran for {limit} and was ended; what it saved is kept.", codes[0] if codes else None
    )


def _blame(look: _Look, message: str) -> Verdict:
    """The pod that the Job names, else the first that failed by itself; else the Job's own words."""
    failed = [pod for pod in look.pods if pod.failed]
    named = named_in(message)
    failed.sort(
        key=lambda pod: (
            pod.worker.pod_name != named,
            pod.was_asked_to_end and not pod.is_disrupted,
            pod.worker.finished_at.timestamp() if pod.worker.finished_at else float("inf"),
            pod.worker.index,
        )
    )
    if failed:
        return verdict(failed[0])
    if "DisruptionTarget" in message:
        return Verdict(Reason.DISRUPTION, f"It was taken away by the cluster: {message}")
    return Verdict(Reason.OUTCOME_UNKNOWN, f"It failed, and no pod is left that tells why. {message}".strip())


def _deleted(look: _Look) -> Observed | None:
    """The Job is gone; the last form of its pods may still tell the outcome (RELIABILITY R19)."""
    if not look.deleted:
        return None
    if not look.pods_gone:
        return look.says(None)
    # somebody may delete what they made: what that has ended was not at its own end
    cancelled = look.says(JobStatus.CANCELLED, Verdict(Reason.STOPPED, DELETED), ended=True)
    theirs = look.adopted and bool(look.pods)
    if theirs and (look.taken_away or not all(pod.ended_by_itself for pod in look.pods)):
        return cancelled
    if look.has_succeeded:
        return look.says(JobStatus.SUCCEEDED, _success(look), ended=True)
    if any(pod.failed for pod in look.pods):
        return look.says(JobStatus.FAILED, _blame(look, ""), ended=True)
    if theirs:
        return cancelled
    return Observed.vanished(look.workers)


def _suspended(look: _Look) -> Observed | None:
    """Not released yet, or being stopped by us: then the intent that we stored says what follows."""
    if not look.is_suspended or any(is_true(job, "FailureTarget") for job in look.jobs):
        return None
    # 1.36 takes the start time away from a Job that is suspended; without one, its controller must have said so
    has_started = moment(look.job, "status", "startTime") is not None or (look.stopped and _at_rest(look.jobs))
    if not look.leading and not has_started and any(part(job, "spec").get("suspend") is False for job in look.others):
        return look.says(
            JobStatus.STARTING, Verdict(Reason.ADMITTED, f"It is being released: its {look.role} comes last.")
        )
    if not look.pods and not has_started:
        return look.says(
            JobStatus.STARTING, Verdict(Reason.ADMITTED, "Its objects are created; it is about to be released.")
        )
    if not look.pods_gone:
        return look.says(None, Verdict(Reason.STOPPED, IN_ITS_GRACE))
    codes = [pod.worker.exit_code for pod in look.leading if pod.worker.exit_code is not None]
    worst = max(codes, default=None)
    words = "Stopped." if worst is None else f"Stopped; exit code {worst}."
    return look.says(None, Verdict(Reason.STOPPED, words, worst), ended=True)


def _at_rest(jobs: Sequence[Manifest]) -> bool:
    """Suspended, and no pod is on its way any more."""
    return all(
        is_true(job, "Suspended") and not number(job, "status", "active") and not number(job, "status", "terminating")
        for job in jobs
    )


def _stays_failing(look: _Look) -> bool:
    """A pod failed just as its Job was suspended, and 1.36 never says Failed: a suspended Job has no start time, and the API
    server refuses an end without one (seen: 422 with every try of the controller)."""
    return look.is_suspended and look.pods_gone and _at_rest(look.jobs)


def _ending(look: _Look) -> Observed | None:
    """The outcome is certain, but pods still hold their machines: shown, not yet moved."""
    if found := _why_failed(look):
        if _stays_failing(look):
            return look.says(JobStatus.FAILED, found, ended=True)
        return look.says(None, found, decided=True)
    if is_true(look.job, "SuccessCriteriaMet") and not look.leader_is_gone:
        return look.says(None, Verdict(Reason.COMPLETED, IN_ITS_GRACE, 0))
    return None


def _over_by_its_pods(look: _Look) -> Observed | None:
    """The pods have ended and the Job does not say so yet: they cannot come back."""
    if not look.pods or look.retries_itself:
        return None
    if look.has_succeeded:
        if look.pods_gone:
            return look.says(JobStatus.SUCCEEDED, _success(look), ended=True)
        return look.says(None, Verdict(Reason.COMPLETED, IN_ITS_GRACE, 0))
    if any(pod.failed for pod in look.pods):
        if look.pods_gone:
            return look.says(JobStatus.FAILED, _blame(look, ""), ended=True)
        return look.says(None, _blame(look, ""))
    return None


def _alive(look: _Look, *, seen: bool) -> Observed:
    if not seen and not look.pods:
        return look.says(None)
    here = [pod for pod in look.pods if pod.is_ready or pod.succeeded]
    if len(here) >= look.expected:
        return look.says(JobStatus.RUNNING)
    late = [waiting(pod, look.about(pod)) for pod in look.pods if not (pod.is_ready or pod.is_terminal)]
    if (refused := _not_made(look)) is not None:
        late.append(refused)
    if late:
        # the gravest of what the workers wait for: an image that is missing tells more than a pod that is starting
        found = min(late, key=lambda one: (_GRAVITY.index(one.reason), one.text))
        what = "pods" if look.others else "workers"
        count = f" {len(here)} of {look.expected} {what} run." if look.expected > 1 else ""
        return look.says(JobStatus.STARTING, replace(found, text=f"{found.text}{count}"))
    return look.says(JobStatus.STARTING, Verdict(Reason.ADMITTED, "Released; its pods are not there yet."))


def _not_made(look: _Look) -> Verdict | None:
    """A pod that is missing since the API server refuses it: of its Job the last such event tells why."""
    if len(look.pods) >= look.expected:
        return None
    said = [event for event in look.events if text(event, "reason") == "FailedCreate"]
    if not said:
        return None
    told = of_creation(text(max(said, key=seen_at), "message"))
    return Verdict(told.reason, told.text, is_known=told.is_known)


# what nobody but a person can mend comes first
_GRAVITY = [
    Reason.NOT_ALLOWED,
    Reason.CLUSTER_NOT_SET_UP,
    Reason.IMAGE_NOT_FOUND,
    Reason.SECRET_MISSING,
    Reason.VOLUME_MISSING,
    Reason.VOLUME_UNAVAILABLE,
    Reason.MACHINE_FAULT,
    Reason.REGISTRY_UNAVAILABLE,
    Reason.QUOTA_EXCEEDED,
    Reason.WAITING_FOR_CAPACITY,
    Reason.SETTING_UP,
    Reason.ADMITTED,
]


def _expected(job: Manifest) -> int:
    """Never more than are still to be completed: the controller makes no others."""
    at_once, completions = number(job, "spec", "parallelism"), number(job, "spec", "completions")
    return min(at_once or completions or 1, completions or at_once or 1)


def _duration(seconds: int) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
