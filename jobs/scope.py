"""Fetching through the caller's scope: what is not theirs is answered like what does not exist."""

from __future__ import annotations

from django.http import Http404, HttpRequest
from rest_framework.request import Request

from accounts.models import User
from jobs.models import Job


def person(request: Request | HttpRequest) -> User:
    """The signed-in person; the middleware and the permissions have let nobody else in."""
    assert isinstance(request.user, User)
    return request.user


def visible_job(request: Request | HttpRequest, job_id: str) -> Job:
    # no id holds a NUL, and PostgreSQL would refuse to look for one
    job: Job | None = Job.objects.visible_to(request.user).for_rows().filter(pk=job_id.replace("\0", "\ufffd")).first()
    if job is None:
        raise Http404
    return job
