"""What an attempt's objects say, in our words: a pure function of the Job and its Pods as last seen (RELIABILITY, STATE).

The most final question is asked first. What cannot be known is never success. A field that is missing is not an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.cluster.fields import condition, is_true, moment, number, part, text
from jobs.cluster.pods import PodView, Verdict, WorkerState, named_in, read_pod, verdict, waiting
from jobs.cluster.port import Manifest
from jobs.cluster.room import NodeCapacity, free_capacity
from jobs.states import JobStatus, Reason

__all__ = ["NodeCapacity", "Observed", "WorkerState", "free_capacity", "observe_attempt"]

IN_ITS_GRACE = "It is ending."


@dataclass(frozen=True, slots=True)
class Observed:
    """One attempt as its cluster shows it.

    `status` is starting, running, succeeded or failed; None leaves the job where it is (an attempt that is being ended, or
    was stopped: the intent that we stored decides). A reason in states.NOT_CHARGED means another attempt, not a failed job.
    """

    status: JobStatus | None
    reason: Reason | None = None
    text: str = ""
    ended: bool = False  # the attempt is over: nothing of it runs and nothing will
    pods_gone: bool = False  # no pod holds anything at this moment
    workers: tuple[WorkerState, ...] = ()
    exit_code: int | None = None

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

    job: Manifest
    pods: tuple[PodView, ...]
    deleted: bool

    @property
    def workers(self) -> tuple[WorkerState, ...]:
        """In order; of pods with the same index the one that counts comes last."""
        return tuple(
            sorted(
                (pod.worker for pod in self.pods),
                key=lambda worker: (worker.role, worker.index, worker.phase != "Failed", worker.pod_uid),
            )
        )

    @property
    def pods_gone(self) -> bool:
        return all(pod.is_terminal for pod in self.pods)

    @property
    def expected(self) -> int:
        return number(self.job, "spec", "parallelism") or number(self.job, "spec", "completions") or 1

    @property
    def is_suspended(self) -> bool:
        return part(self.job, "spec").get("suspend") is True

    @property
    def retries_itself(self) -> bool:
        """A Job made by kubectl with a backoffLimit of its own: a failed pod is not its end. Ours have 0."""
        return bool(number(self.job, "spec", "backoffLimit"))

    def says(self, status: JobStatus | None, found: Verdict | None = None, *, ended: bool = False) -> Observed:
        return Observed(
            status=status,
            reason=found.reason if found else None,
            text=found.text if found else "",
            ended=ended,
            pods_gone=self.pods_gone,
            workers=self.workers,
            exit_code=found.exit_code if found else None,
        )


def observe_attempt(job: Manifest | None, pods: Sequence[Manifest], *, deleted: bool = False) -> Observed:
    """Where the attempt stands. `deleted` says that the Job was there and is gone; `job` is then its last form, if kept."""
    look = _Look(job=job or {}, pods=tuple(read_pod(pod) for pod in pods), deleted=deleted)
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
    return look.says(JobStatus.SUCCEEDED, _success(look), ended=True)


def _success(look: _Look) -> Verdict:
    """Exit code 0, but not always plain: a child may have been killed at the memory limit (RELIABILITY R23)."""
    for pod in look.pods:
        if pod.out_of_memory:
            words = f"Finished, memory limit hit: a process of {pod.worker.name} was killed at the limit."
            return Verdict(Reason.OUT_OF_MEMORY, words, 0)
    workers = f"all {len(look.pods)} workers ended" if len(look.pods) > 1 else "it ended"
    return Verdict(Reason.COMPLETED, f"Finished: {workers} with exit code 0.", 0)


def _failed(look: _Look) -> Observed | None:
    failed = condition(look.job, "Failed")
    if failed.get("status") != "True":
        return None
    if text(failed, "reason") == "DeadlineExceeded":
        return look.says(JobStatus.FAILED, _time_limit(look), ended=True)
    return look.says(JobStatus.FAILED, _blame(look, text(failed, "message")), ended=True)


def _time_limit(look: _Look) -> Verdict:
    seconds = number(look.job, "spec", "activeDeadlineSeconds")
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
    if look.pods and len(look.pods) >= look.expected and all(pod.succeeded for pod in look.pods):
        return look.says(JobStatus.SUCCEEDED, _success(look), ended=True)
    if any(pod.failed for pod in look.pods):
        return look.says(JobStatus.FAILED, _blame(look, ""), ended=True)
    return Observed.vanished(look.workers)


def _suspended(look: _Look) -> Observed | None:
    """Not released yet, or being stopped by us: then the intent that we stored says what follows."""
    if not look.is_suspended or is_true(look.job, "FailureTarget"):
        return None
    has_started = moment(look.job, "status", "startTime") is not None
    if not look.pods and not has_started:
        return look.says(
            JobStatus.STARTING, Verdict(Reason.ADMITTED, "Its objects are created; it is about to be released.")
        )
    if not look.pods_gone:
        return look.says(None, Verdict(Reason.STOPPED, IN_ITS_GRACE))
    codes = [pod.worker.exit_code for pod in look.pods if pod.worker.exit_code is not None]
    worst = max(codes, default=None)
    words = "Stopped." if worst is None else f"Stopped; exit code {worst}."
    return look.says(None, Verdict(Reason.STOPPED, words, worst), ended=True)


def _ending(look: _Look) -> Observed | None:
    """The outcome is certain, but pods still hold their machines: shown, not yet moved."""
    target = condition(look.job, "FailureTarget")
    if target.get("status") == "True":
        found = (
            _time_limit(look) if text(target, "reason") == "DeadlineExceeded" else _blame(look, text(target, "message"))
        )
        return look.says(None, found)
    if is_true(look.job, "SuccessCriteriaMet") and not look.pods_gone:
        return look.says(None, Verdict(Reason.COMPLETED, IN_ITS_GRACE, 0))
    return None


def _over_by_its_pods(look: _Look) -> Observed | None:
    """The pods have ended and the Job does not say so yet: they cannot come back."""
    if not look.pods or look.retries_itself:
        return None
    if any(pod.failed for pod in look.pods):
        if look.pods_gone:
            return look.says(JobStatus.FAILED, _blame(look, ""), ended=True)
        return look.says(None, _blame(look, ""))
    if len(look.pods) >= look.expected and all(pod.succeeded for pod in look.pods):
        return look.says(JobStatus.SUCCEEDED, _success(look), ended=True)
    return None


def _alive(look: _Look, *, seen: bool) -> Observed:
    if not seen and not look.pods:
        return look.says(None)
    here = [pod for pod in look.pods if pod.is_ready or pod.succeeded]
    if len(here) >= look.expected:
        return look.says(JobStatus.RUNNING)
    late = [pod for pod in look.pods if not (pod.is_ready or pod.is_terminal)]
    if late:
        # the gravest of what the workers wait for: an image that is missing tells more than a pod that is starting
        found = min((waiting(pod) for pod in late), key=lambda one: (_GRAVITY.index(one.reason), one.text))
        count = f" {len(here)} of {look.expected} workers run." if look.expected > 1 else ""
        return look.says(JobStatus.STARTING, Verdict(found.reason, f"{found.text}{count}"))
    return look.says(JobStatus.STARTING, Verdict(Reason.ADMITTED, "Released; its pods are not there yet."))


_GRAVITY = [Reason.IMAGE_NOT_FOUND, Reason.WAITING_FOR_CAPACITY, Reason.SETTING_UP, Reason.ADMITTED]


def _duration(seconds: int) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
