"""What people say about a job: its name, notes, tags and priority, who keeps it on top, and who put it away."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.request import Request

from accounts import audit
from accounts.disguise import hidden_in
from accounts.models import User
from jobs import lifecycle, live
from jobs.exceptions import SpecError, WrongState
from jobs.models import Job, JobPin, PriorityClass
from jobs.states import JobStatus
from jobs.submission import may_change

EDITABLE = ("name", "notes", "tags", "priority")
MAX_NOTES = 20_000
MAX_TAGS, MAX_TAG = 50, 60
TRIES = 20


def edit(job: Job, *, user: User, values: Mapping[str, Any], request: HttpRequest | Request | None) -> Job:
    """Change the labels of a job. Raise SpecError naming each wrong field, NotAllowed, or WrongState."""
    may_change(user, job)  # before a word about what was typed
    wanted = _checked(values)
    return _insist(job, lambda _job: wanted, user=user, request=request)


def tag(
    job: Job,
    *,
    user: User,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    request: HttpRequest | Request | None,
) -> Job:
    """Add and take tags; those somebody else gives it at the same moment stay."""

    def wanted(job: Job) -> dict[str, Any]:
        return _checked({"tags": [*(tag for tag in job.tags if tag not in set(remove)), *add]})

    return _insist(job, wanted, user=user, request=request)


def _insist(
    job: Job, wanted_of: Callable[[Job], dict[str, Any]], *, user: User, request: HttpRequest | Request | None
) -> Job:
    """A person's wish is not dropped because the watcher wrote the job at the same moment: it is told anew and written."""
    may_change(user, job)
    for _try in range(TRIES):
        wanted = wanted_of(job)
        changed = {name: value for name, value in wanted.items() if getattr(job, name) != value}
        if not changed:
            return job
        if "priority_id" in changed and job.status != JobStatus.QUEUED:
            raise WrongState(_("Only a job that waits can change its priority; this one does not wait any more."))
        before = {name: getattr(job, name) for name in changed}
        written = dict(changed)
        if "priority_id" in changed:
            # what its next attempt is made from; it waits, so no object says otherwise
            written["spec"] = {**job.spec, "priority": changed["priority_id"]}
        with transaction.atomic():
            if lifecycle.write(job, **written):
                audit.record(
                    user,
                    "job.edit",
                    target=job.pk,
                    namespace=job.namespace.slug,
                    before=before,
                    after=changed,
                    request=request,
                )
                if "priority_id" in changed:
                    live.wake("jobs.tasks.dispatch_waiting")
                return job
        job = Job.objects.for_rows().get(pk=job.pk)
    raise WrongState(_("The job changes too quickly; try again."))


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    errors: dict[str, list[str]] = {}
    wanted: dict[str, Any] = {}
    for name, value in values.items():
        if name not in EDITABLE:
            errors[str(name)[:100]] = [_("cannot be changed; what can is %(names)s") % {"names": ", ".join(EDITABLE)}]
        elif name == "tags":
            wanted["tags"] = _tags(value, errors)
        elif not isinstance(value, str) or _is_odd(value, several_lines=name == "notes"):
            errors[name] = [_("must be text without control characters, and without those that nobody sees")]
        elif name == "name":
            wanted["name"] = value.strip()
            if not 1 <= len(wanted["name"]) <= 200:
                errors["name"] = [_("must have 1 to 200 characters")]
        elif name == "notes":
            wanted["notes"] = value.replace("\r\n", "\n").strip()
            if len(wanted["notes"]) > MAX_NOTES:
                errors["notes"] = [
                    _("has %(count)s characters; at most %(limit)s are kept")
                    % {"count": len(wanted["notes"]), "limit": MAX_NOTES}
                ]
        elif not PriorityClass.objects.filter(pk=value).exists():
            known = ", ".join(PriorityClass.objects.values_list("name", flat=True))
            errors["priority"] = [
                _("there is no priority %(name)r; there are %(known)s") % {"name": value, "known": known}
            ]
        else:
            wanted["priority_id"] = value
    if errors:
        field, texts = next(iter(errors.items()))
        raise SpecError(f"{field}: {texts[0]}", fields=errors)
    return wanted


def _tags(value: Any, errors: dict[str, list[str]]) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        errors["tags"] = [_("must be a list of short texts")]
        return []
    tags = list(dict.fromkeys(unicodedata.normalize("NFC", tag.strip()) for tag in value if tag.strip()))
    if long := [tag for tag in tags if len(tag) > MAX_TAG or _is_odd(tag)]:
        errors["tags"] = [
            _("%(tag)r is longer than %(limit)s characters, or holds a control character or one that nobody sees")
            % {"tag": long[0][:80], "limit": MAX_TAG}
        ]
    elif len(tags) > MAX_TAGS:
        errors["tags"] = [_("has %(count)s tags; at most %(limit)s") % {"count": len(tags), "limit": MAX_TAGS}]
    return tags


def _is_odd(text: str, *, several_lines: bool = False) -> bool:
    """Holds what a page, a file or PostgreSQL cannot keep, or what would make a name look like another."""
    allowed = "\n\r\t" if several_lines else ""
    if any(unicodedata.category(char) in ("Cc", "Cs") and char not in allowed for char in text):
        return True
    return not several_lines and bool(hidden_in(text))  # in notes it is shown with a mark


def pin(job: Job, *, user: User) -> None:
    """Keep a job on top of one's own pages; again changes nothing. It is one's own bookmark, so no audit."""
    JobPin.objects.get_or_create(job=job, user=user)


def unpin(job: Job, *, user: User) -> None:
    JobPin.objects.filter(job=job, user=user).delete()


def archive(job: Job, *, user: User, request: HttpRequest | Request | None = None) -> Job:
    """Take a job that is over out of the lists. Nothing of it is deleted, and every link to it goes on working."""
    return _put_away(job, True, user=user, request=request)


def unarchive(job: Job, *, user: User, request: HttpRequest | Request | None = None) -> Job:
    return _put_away(job, False, user=user, request=request)


def _put_away(job: Job, away: bool, *, user: User, request: HttpRequest | Request | None) -> Job:
    may_change(user, job)
    for _try in range(TRIES):
        if away and not job.is_final:
            raise WrongState(_("Only a job that is over can be archived."))
        if (job.archived_at is not None) == away:
            return job
        with transaction.atomic():
            if lifecycle.write(job, archived_at=timezone.now() if away else None, archived_by=user if away else None):
                did, verb = ("Archived", "job.archive") if away else ("Brought back from the archive", "job.unarchive")
                lifecycle.record(job, kind="intent", reason=f"{did} by {user.username}.", actor=user.username)
                audit.record(user, verb, target=job.pk, namespace=job.namespace.slug, request=request)
                return job
        job = Job.objects.for_rows().get(pk=job.pk)
    raise WrongState(_("The job changes too quickly; try again."))
