"""What a client can follow (DESIGN 11.12), read from the text it subscribes with."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.http import QueryDict

from jobs.exceptions import SpecError
from jobs.lists.filters import JobFilter, read_filter
from jobs.logs.lines import worker_of

_JOB_ID = re.compile(r"[0-9a-z]{1,32}")
_SLUG = re.compile(r"[-a-zA-Z0-9_]{1,63}")
LONGEST = 500  # characters


@dataclass(frozen=True, slots=True)
class Topic:
    """`name` is the client's own spelling, with which it is answered."""

    name: str
    kind: str  # job, points, logs, jobs, namespace, cluster, inbox
    id: str = ""  # of the job, or the slug of the namespace
    worker: str = ""  # role-index; empty for all workers
    filter: JobFilter | None = None


def parse(name: str) -> Topic | None:
    """The topic, or None where there can be none of this name."""
    if len(name) > LONGEST:
        return None
    if name in ("cluster", "inbox"):
        return Topic(name, name)
    head, question, query = name.partition("?")
    if head == "jobs":
        try:
            return Topic(name, "jobs", filter=read_filter(QueryDict(query)))
        except SpecError:
            return None
    kind, _slash, rest = name.partition("/")
    if kind in ("job", "points") and _JOB_ID.fullmatch(rest):
        return Topic(name, kind, rest)
    if kind == "namespace" and _SLUG.fullmatch(rest):
        return Topic(name, kind, rest)
    if kind == "logs" and not question:
        job_id, slash, worker = rest.partition("/")
        if not _JOB_ID.fullmatch(job_id):
            return None
        if not slash:
            return Topic(name, kind, job_id)
        try:
            role, index = worker_of(worker)
        except ValueError:
            return None
        return Topic(name, kind, job_id, worker=f"{role}-{index}")
    return None
