"""Whether an attempt that failed is tried again, and how that is said (C14).

The platform's doings are never charged. Of the user's own failures some cannot be mended by another try: they end the job,
however many retries are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from jobs import exits
from jobs.models import Attempt, Job
from jobs.states import ACTIVE, Reason

BACKOFF_FIRST = timedelta(seconds=10)
BACKOFF_LAST = timedelta(minutes=10)
START_FIRST, START_LAST = timedelta(minutes=1), timedelta(hours=1)
RETRIABLE = frozenset({Reason.NON_ZERO_EXIT, Reason.KILLED_BY_SIGNAL})

# kinds of causes.catalogue that stay what they are until somebody changes the job
PERMANENT_KINDS = frozenset(
    {
        "command_not_found",
        "cuda_architecture",
        "cuda_out_of_memory",
        "host_out_of_memory",
        "import_failed",
        "library_missing",
        "module_missing",
        "name_missing",
        "no_gpu_asked",
        "not_executable",
        "script_missing",
        "shell_syntax",
        "syntax_error",
        "variable_missing",
        "wrong_arguments",
    }
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`because` says why not, where a retry would have been left or none is."""

    again: bool
    because: str = ""


def judge(job: Job, attempt: Attempt, code: Reason) -> Verdict:
    """Of an attempt that failed by itself."""
    retries = job.spec["retries"]
    if not retries:
        return Verdict(False)
    if cause := _cannot_be_mended(attempt, code):
        return Verdict(False, f"Not tried again, since another try cannot mend this: {cause.rstrip('.')}.")
    if job.charged_failures >= retries:
        return Verdict(False, f"Not tried again: {_used(retries)}.")
    return Verdict(True)


def _used(retries: int) -> str:
    return "its one retry is used" if retries == 1 else f"its {retries} retries are used"


def _cannot_be_mended(attempt: Attempt, code: Reason) -> str:
    """The cause that makes another try useless, "" where it may help."""
    # a line after which the program went on may have been a warning, and takes nobody's retries away
    if attempt.cause and attempt.cause["kind"] in PERMANENT_KINDS and not attempt.cause.get("went_on"):
        return str(attempt.cause["text"])
    if code not in RETRIABLE:
        return attempt.reason or code
    return exits.PERMANENT.get(attempt.exit_code or 0, "")


def backoff(failures: int) -> timedelta:
    return min(BACKOFF_LAST, BACKOFF_FIRST * (1 << (failures - 1)))


def start_again_in(job: Job) -> timedelta:
    """After attempts that did not start: longer each time, for whatever hinders them has its own pace."""
    before = job.attempts.filter(reason_code=Reason.START_TIMEOUT).count()
    return min(START_LAST, START_FIRST * (1 << min(max(before, 1) - 1, 10)))


def at_most(job: Job) -> int:
    """How many attempts there will have been if every charged one fails; those not charged come on top."""
    coming = 0 if job.status in ACTIVE or job.is_final else 1
    left: int = job.spec["retries"] - job.charged_failures
    return max(job.attempt_number, job.attempt_number + coming + left)


def short_cause(code: str, exit_code: int | None) -> str:
    """Why an attempt was followed by another, in two or three words."""
    if code == Reason.NON_ZERO_EXIT and exit_code is not None:
        return f"exit code {exit_code}"
    return _SHORT.get(code, code)


_SHORT: dict[str, str] = {
    Reason.PREEMPTED: "preempted",
    Reason.DISRUPTION: "disrupted",
    Reason.NODE_LOST: "node lost",
    Reason.START_TIMEOUT: "did not start in time",
    Reason.HELD: "held",
    Reason.FORBIDDEN: "forbidden by the cluster",
    Reason.STOPPED: "held",  # its pods were stopped; only a hold is followed by another attempt
    Reason.KILLED_BY_SIGNAL: "killed by a signal",
    Reason.OUTCOME_UNKNOWN: "outcome unknown",
}
