"""One verb for many jobs: each goes through the verb of one job, and each gets an answer of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.models import User
from jobs import labels, submission
from jobs.exceptions import JobError, SpecError, WrongState
from jobs.models import STATUS_LABELS, Job, PriorityClass
from jobs.states import JobStatus

MOST = 500  # jobs of one request
ACTIONS = ("stop", "hold", "release", "tag", "untag", "priority", "archive", "unarchive")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one job: `outcome` is done, skipped (nothing to do) or refused (not this person's, or not there)."""

    id: str
    name: str | None
    outcome: str
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Wish:
    action: str
    reason: str = ""
    tags: tuple[str, ...] = ()
    priority: str = ""


def act(
    *, user: User, wish: Wish, ids: Sequence[str], request: HttpRequest | None = None
) -> tuple[list[Result], dict[str, int]]:
    """Do it to each job in turn, in the order asked for, and count the outcomes. A repeat finds nothing left to do.

    Raise SpecError only where the request itself is wrong: one job's refusal stops no other.
    """
    ids = _checked(wish, ids)
    seen = Job.objects.visible_to(user).for_rows().in_bulk([job_id for job_id in ids if "\0" not in job_id])
    results = [_one(seen.get(job_id), job_id, user=user, wish=wish, request=request) for job_id in ids]
    counts = dict.fromkeys(("done", "skipped", "refused"), 0)
    for result in results:
        counts[result.outcome] += 1
    return results, counts


def document(results: Sequence[Result], counts: dict[str, int], wish: Wish) -> dict[str, Any]:
    return {"action": wish.action, "counts": counts, "results": [asdict(result) for result in results]}


def _checked(wish: Wish, ids: Sequence[str]) -> list[str]:
    if wish.action not in ACTIONS:
        words = _("must be one of %(known)s") % {"known": ", ".join(ACTIONS)}
        raise SpecError(f"action: {words}", fields={"action": [words]})
    if not ids:
        words = _("choose at least one job")
        raise SpecError(f"ids: {words}", fields={"ids": [words]})
    if len(ids) > MOST:
        words = _("at most %(most)s jobs at a time, not %(count)s") % {"most": MOST, "count": len(ids)}
        raise SpecError(f"ids: {words}", fields={"ids": [words]})
    if wish.action in ("tag", "untag") and not wish.tags:
        words = _("name at least one tag")
        raise SpecError(f"tags: {words}", fields={"tags": [words]})
    if wish.action == "priority":
        known = list(PriorityClass.objects.values_list("name", flat=True))
        if wish.priority not in known:
            words = _("must be one of %(known)s") % {"known": ", ".join(known)}
            raise SpecError(f"priority: {words}", fields={"priority": [words]})
    return list(dict.fromkeys(ids))


def _one(job: Job | None, job_id: str, *, user: User, wish: Wish, request: HttpRequest | None) -> Result:
    if job is None:
        # the same words for what is not there and what is not theirs to see
        return Result(job_id[:40], None, "refused", "not_found", _("There is no such job for you."))
    try:
        if nothing := _nothing_to_do(job, wish):
            return Result(job.pk, job.name, "skipped", *nothing)
        done = _VERBS[wish.action](job, user, wish, request)
    except WrongState as error:
        return Result(job.pk, job.name, "skipped", error.code, error.message)
    except JobError as error:
        return Result(job.pk, job.name, "refused", error.code, error.message)
    return Result(job.pk, job.name, "done", "done", done)


def _nothing_to_do(job: Job, wish: Wish) -> tuple[str, str] | None:
    """Code and words of why this job needs nothing, if so."""
    match wish.action:
        case "stop" | "hold" if job.is_final:
            status = STATUS_LABELS[JobStatus(job.status)]
            return "over", _("It is over already: %(status)s.") % {"status": status}
        case "stop" if job.cancel_requested_at:
            return "already", _("It is being stopped already.")
        case "hold" if job.held_by_id:
            return "already", _("It is held already.")
        case "release" if not job.held_by_id:
            return "already", _("It is not held.")
        case "priority" if job.status == JobStatus.QUEUED and job.priority_id == wish.priority:
            return "already", _("It has this priority already.")
        case "archive" if job.archived_at:
            return "already", _("It is archived already.")
        case "unarchive" if not job.archived_at:
            return "already", _("It is not archived.")
        case "tag" if set(wish.tags) <= set(job.tags):
            return "already", _("It has the tag already.")
        case "untag" if not set(wish.tags) & set(job.tags):
            return "already", _("It does not have the tag.")
    return None


def _stop(job: Job, user: User, wish: Wish, request: HttpRequest | None) -> str:
    after = submission.cancel(job, user=user, note=wish.reason, request=request)
    if after.is_final:
        return _("Stopped.")
    return _("Stopping: it has %(grace)s s to save what it needs.") % {"grace": job.spec["stop_grace"]}


def _hold(job: Job, user: User, wish: Wish, request: HttpRequest | None) -> str:
    submission.hold(job, user=user, request=request)
    return _("Held: it waits until it is released.")


def _release(job: Job, user: User, wish: Wish, request: HttpRequest | None) -> str:
    submission.release(job, user=user, request=request)
    return _("Released: it starts when its turn comes.")


def _tag(job: Job, user: User, wish: Wish, request: HttpRequest | None) -> str:
    change = "remove" if wish.action == "untag" else "add"
    after = labels.tag(job, user=user, request=request, **{change: wish.tags})
    return _("Tags: %(tags)s.") % {"tags": ", ".join(after.tags) or "–"}


def _priority(job: Job, user: User, wish: Wish, request: HttpRequest | None) -> str:
    before = job.priority_id
    labels.edit(job, user=user, values={"priority": wish.priority}, request=request)
    return _("Priority: %(after)s; it was %(before)s.") % {"after": wish.priority, "before": before}


def _archive(job: Job, user: User, wish: Wish, request: HttpRequest | None) -> str:
    labels.archive(job, user=user, request=request)
    return _("Archived: out of the lists; nothing is deleted.")


def _unarchive(job: Job, user: User, wish: Wish, request: HttpRequest | None) -> str:
    labels.unarchive(job, user=user, request=request)
    return _("Back in the lists.")


_VERBS: dict[str, Callable[[Job, User, Wish, HttpRequest | None], str]] = {
    "stop": _stop,
    "hold": _hold,
    "release": _release,
    "tag": _tag,
    "untag": _tag,
    "priority": _priority,
    "archive": _archive,
    "unarchive": _unarchive,
}
