"""The list as a file of comma-separated values: every row of it, in its order, made some hundred at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework.request import Request

from accounts import audit
from accounts.models import User
from accounts.spreadsheet import MARK, lines
from jobs.documents import job_row
from jobs.lists.columns import Look, read_look
from jobs.lists.filters import JobFilter, read_filter
from jobs.lists.places import Place, places, with_places
from jobs.models import Job
from jobs.querysets import POSITION

ROWS_AT_ONCE = 500
_Fields = Mapping[str, Callable[[dict[str, Any]], Any]]


def _spent(row: dict[str, Any]) -> float | None:
    """Seconds it ran, or runs, or waits: what the column Time says in words."""
    since = row["queued_at"] if row["status"] == "queued" else row["started_at"]
    start, end = _moment(since), _moment(row["finished_at"]) or timezone.now()
    return round((end - start).total_seconds(), 1) if start else None


def _moment(text: str | None) -> datetime | None:
    return parse_datetime(text) if text else None


def _first(row: dict[str, Any]) -> tuple[str, Any]:
    return next(iter(row["headline"].items()), ("", None))


# What each column of the list becomes: the names are those of REST, where it has the value.
COLUMNS: Mapping[str, _Fields] = {
    "status": {"status": lambda row: row["status"]},
    "name": {"name": lambda row: row["name"]},
    "how": {
        "queue_position": lambda row: row["queue_position"],
        "progress": lambda row: (row["progress"] or {}).get("fraction"),
        "reason": lambda row: row["reason"]["text"],
    },
    "metric": {"metric": lambda row: _first(row)[0], "metric_value": lambda row: _first(row)[1]},
    "who": {"user": lambda row: row["user"], "namespace": lambda row: row["namespace"]},
    "cluster": {"cluster": lambda row: row["cluster"]},
    "gpus": {
        "total_gpus": lambda row: row["resources"]["total_gpus"],
        "gpu_type": lambda row: row["resources"]["gpu_type"],
        "workers": lambda row: row["resources"]["workers"],
    },
    "spent": {
        "seconds": _spent,
        "started_at": lambda row: row["started_at"],
        "finished_at": lambda row: row["finished_at"],
    },
    "age": {"created_at": lambda row: row["created_at"]},
    "priority": {"priority": lambda row: row["priority"]},
    "tags": {"tags": lambda row: ", ".join(row["tags"])},
    "id": {"id": lambda row: row["id"]},
}


def csv_response(
    query: QueryDict, *, user: User, request: HttpRequest | Request, marked: bool = False
) -> StreamingHttpResponse:
    """The rows that /jobs/ shows of this query string, all pages of it. Raise SpecError where a filter is wrong.

    `marked`: with the mark by which spreadsheets know that names in any script are UTF-8; programs do without.
    """
    wanted, look = read_filter(query, me=user.username), read_look(query)
    line = places() if look.sort == POSITION or "how" in look.columns else {}
    jobs = Job.objects.visible_to(user).matching(**wanted.as_arguments()).in_order(look.sort, line=line)
    ids = list(jobs.values_list("pk", flat=True))
    fields = fields_of(look, wanted)
    audit.record(
        user,
        "jobs.export",
        after={"query": query.urlencode()[:1000], "columns": list(fields), "jobs": len(ids)},
        request=request,
    )
    response = StreamingHttpResponse(
        _body(ids, fields, line, MARK if marked else b""), content_type="text/csv; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="jobs-{timezone.now():%Y-%m-%d}.csv"'
    return response


def fields_of(look: Look, wanted: JobFilter) -> _Fields:
    """By the columns that are shown, in their order; the id is always there, and who archived it where that may be."""
    fields = {name: make for column in look.columns for name, make in COLUMNS[column].items()}
    if wanted.archived:
        fields |= {"archived_at": lambda row: row["archived_at"], "archived_by": lambda row: row["archived_by"]}
    return {"id": COLUMNS["id"]["id"], **fields} if "id" not in fields else fields


async def _body(ids: Sequence[str], fields: _Fields, line: Mapping[str, Place], mark: bytes) -> AsyncIterator[bytes]:
    yield mark + lines([list(fields)])
    for start in range(0, len(ids), ROWS_AT_ONCE):
        yield await sync_to_async(_piece)(ids[start : start + ROWS_AT_ONCE], fields, line)


def _piece(ids: Sequence[str], fields: _Fields, line: Mapping[str, Place]) -> bytes:
    rows = [job_row(job) for job in Job.objects.rows(ids)]
    with_places(rows, line)
    return lines([make(row) for make in fields.values()] for row in rows)
