"""From the rows of an attempt to its cause, and from a stored cause to the words of whoever reads it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext, gettext_lazy

from jobs.causes.catalogue import KINDS
from jobs.causes.scene import Line, Scene, WorkerEnd, clean
from jobs.causes.words import OWNERS, Owner
from jobs.cluster.observed import Observed
from jobs.explain import explain
from jobs.logs.lines import read_lines
from jobs.logs.stretches import NO_END
from jobs.models import Attempt, Job, JobFeed, Worker
from jobs.states import JobStatus, Reason

LINES = 400  # of each worker that are looked at
WORKERS = 16  # of a large gang: those that ended first, of which one is the cause
logger = logging.getLogger(__name__)


def note_cause(attempt: Attempt, observed: Observed) -> None:
    """Store why the attempt ended badly, before its end is stored: whoever sees the one sees the other.

    Its lines have been read to their end by now. An attempt's end never waits for this: where explaining fails, the end is
    stored without, and the cause is looked for when somebody reads.
    """
    if attempt.cause or attempt.ended_at or not _ended_badly(attempt, observed):
        return
    try:
        with transaction.atomic():
            found = explain(_scene(attempt, observed))
            if found is None:
                return
            attempt.cause = found.as_dict()
            Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(cause=attempt.cause)
    except Exception:
        logger.exception("Why %s ended could not be told", attempt)


def _ended_badly(attempt: Attempt, observed: Observed) -> bool:
    """Also a success, which may have done nothing; but not what people wanted to end."""
    if attempt.stop_code in (Reason.STOPPED, Reason.HELD):
        return False
    wanted = attempt.job.cancel_requested_at and observed.status != JobStatus.SUCCEEDED
    return not wanted and (observed.status is not None or bool(attempt.stop_code))


def cause_of(job: Job, attempts: Sequence[Attempt]) -> dict[str, Any] | None:
    """Why a job that is over failed (or that it did nothing), in the reader's language; found now if it was not stored."""
    latest = attempts[-1] if attempts and attempts[-1].number == job.attempt_number else None
    if latest and latest.cause and job.status in (JobStatus.FAILED, JobStatus.SUCCEEDED):
        return told(latest.cause)
    if job.status != JobStatus.FAILED:
        return None
    observed = Observed(
        status=JobStatus.FAILED,
        reason=_reason(job.reason_code),
        text=job.reason,
        ended=True,
        exit_code=job.exit_code,
    )
    attempt = latest or Attempt(job=job, number=max(1, job.attempt_number))
    found = explain(_scene(attempt, observed))
    return told(found.as_dict()) if found else None


def _reason(code: str) -> Reason:
    try:
        return Reason(code)
    except ValueError:  # of a version that knew it, or none was written
        return Reason.OUTCOME_UNKNOWN


def told(stored: dict[str, Any]) -> dict[str, Any] | None:
    """A stored cause in the active language; its English words where the catalogue has changed since."""
    if not stored:
        return None
    kind, values, owner = KINDS.get(stored["kind"]), stored["values"], Owner(stored["owner"])
    return {
        **{name: stored[name] for name in ("kind", "code", "evidence", "others", "more_others", "worker")},
        "changes": [
            {"field": field, "label": _label(field), "value": value, "shown": values.get(SHOWN.get(field, ""), value)}
            for field, value in stored["changes"].items()
        ],
        "owner": owner.value,
        "owner_text": gettext(OWNERS[owner]),
        "text": (kind and kind.sentence(values, gettext)) or stored["text"],
        "steps": kind.next_steps(values, gettext) if kind else stored["steps"],
        "node": values.get("node", ""),
        "step": values.get("step", ""),
        "rank": values.get("rank", ""),
        "exit": values.get("exit", ""),
        "type": values.get("type", ""),
    }


SHOWN = {"memory": "more_memory", "shm": "more_shm", "time_limit": "more_time"}  # as the steps spell the same value
FIELDS = {
    "memory": gettext_lazy("memory"),
    "shm": gettext_lazy("shared memory"),
    "time_limit": gettext_lazy("time limit"),
    "gpus": gettext_lazy("GPUs"),
}


def _label(field: str) -> str:
    """A field of the form by its name on the page; of a parameter its own."""
    return str(FIELDS.get(field, field.removeprefix("param.")))


def _scene(attempt: Attempt, observed: Observed) -> Scene:
    job = attempt.job
    spec = job.parsed
    feed = JobFeed.objects.filter(pk=job.pk).first() or JobFeed(job=job)
    # progress and headline are one per job: an earlier attempt's are not told of this one
    its_own = feed.progress.get("attempt", 1) == attempt.number
    workers = list(attempt.workers.all()) if attempt.pk else []
    succeeded = observed.status == JobStatus.SUCCEEDED
    return Scene(
        code=_reason(attempt.stop_code or observed.reason or ""),
        text=clean(attempt.reason or observed.text),  # its own, where it was known before its pods had ended
        attempt=attempt.number,
        succeeded=succeeded,
        exit_code=observed.exit_code,
        workers=tuple(_ends(job.pk, attempt.number, workers, succeeded=succeeded)),
        headline=feed.headline if its_own else {},
        step=feed.progress.get("step") if its_own else None,
        has_points=bool(feed.points_seq),
        command=spec.command,
        image=spec.image,
        parameters=spec.parameters,
        gpus=spec.resources.gpus,
        memory_bytes=spec.resources.memory_bytes,
        shm_bytes=spec.resources.shm_bytes,
        time_limit=spec.time_limit,
        ran_seconds=_ran(workers),
    )


def _ends(job_id: str, attempt: int, workers: Sequence[Worker], *, succeeded: bool) -> Iterable[WorkerEnd]:
    def finished(worker: Worker) -> tuple[bool, float]:
        at = worker.finished_at
        return worker.exit_code == 0 and not succeeded, at.timestamp() if at else float("inf")

    for place, worker in enumerate(sorted(workers, key=finished)):
        lines = []
        if place < WORKERS and worker.log_number:
            read = read_lines(
                job_id, before=NO_END, worker=str(worker), attempt=attempt, limit=1 if succeeded else LINES
            )
            lines = [Line(one["seq"], clean(one["text"]), one["time"]) for one in read if not one["overwritten"]]
        yield WorkerEnd(
            name=str(worker),
            node=worker.node,
            exit_code=worker.exit_code,
            signal=worker.signal,
            reason=worker.reason,
            message=clean_text(worker.message),
            finished_at=worker.finished_at.timestamp() if worker.finished_at else None,
            lines=tuple(line for line in lines if line.text.strip()),
        )


def clean_text(text: str) -> str:
    return "\n".join(clean(line) for line in text.splitlines())


def _ran(workers: Sequence[Worker]) -> float | None:
    """From the first worker's start to the last one's end; None where either is not known."""
    starts = [worker.started_at for worker in workers if worker.started_at]
    ends = [worker.finished_at for worker in workers if worker.finished_at]
    return (max(ends) - min(starts)).total_seconds() if starts and ends else None
