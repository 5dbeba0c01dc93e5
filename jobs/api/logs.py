"""REST of the lines a job wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api.jobs import ANY_OBJECT
from jobs.exceptions import SpecError
from jobs.logs import search
from jobs.logs.lines import MAX_LIMIT, download, read_lines, worker_of, zipped
from jobs.logs.stretches import NO_END, PAGE_BYTES, Wanted
from jobs.models import Job
from jobs.scope import visible_job


class JobLogsView(APIView):
    @extend_schema(
        operation_id="jobs_logs",
        parameters=[
            OpenApiParameter("attempt", int),
            OpenApiParameter("worker", str),
            OpenApiParameter("after", int),
            OpenApiParameter("before", int),
            OpenApiParameter("limit", int),
            OpenApiParameter("q", str, description="RE2; only lines in which it is found."),
            OpenApiParameter("case", str, enum=["i"], description="Of q: capitals do not matter."),
            OpenApiParameter("literal", bool, description="q is plain text."),
            OpenApiParameter("count", bool, description="How many lines q is found in, and the first 10,000 seqs."),
            OpenApiParameter("text", bool, description="The whole log, streamed."),
            OpenApiParameter("gzip", bool, description="With text: as .log.gz."),
        ],
        responses={200: ANY_OBJECT, 404: ANY_OBJECT},
    )
    def get(self, request: Request, job_id: str) -> Response | StreamingHttpResponse:
        """Lines above `after`, or the last below `before`; with `q` those that match; `text=1` streams the whole log."""
        job = visible_job(request, job_id)
        query = request.query_params
        worker = query.get("worker") or None
        if worker is not None:
            try:
                worker = "{}-{}".format(*worker_of(worker))
            except ValueError as error:
                raise SpecError(str(error), fields={"worker": [str(error)]}) from error
        attempt = whole(query, "attempt", default=None)
        if query.get("text"):
            return text_response(job, attempt=attempt, worker=worker, gzip=bool(query.get("gzip")))
        after = whole(query, "after", default=0) or 0
        before = whole(query, "before", default=None)
        limit = max(1, min(MAX_LIMIT, whole(query, "limit", default=500) or 500))
        if query.get("q"):
            wanted = Wanted(attempt, worker, after, NO_END if before is None else before)
            backwards = before is not None and "after" not in query
            return Response(search_answer(job.pk, query, wanted, limit=limit, backwards=backwards))
        lines = read_lines(
            job.pk, after=after, before=before, worker=worker, attempt=attempt, limit=limit, most_bytes=PAGE_BYTES
        )
        return Response({"lines": lines, "next": lines[-1]["seq"] if lines else after})


def search_answer(job_id: str, query: Any, wanted: Wanted, *, limit: int, backwards: bool) -> dict[str, Any]:
    """What of a log matches, as far as a request's time allows; `next` is where to go on, until `done`."""
    pattern = search.Pattern.parse(
        query["q"], ignore_case="i" in query.get("case", ""), literal=bool(query.get("literal"))
    )
    if query.get("count"):
        counted = search.count(job_id, pattern, wanted)
        return {
            "count": counted.total,
            "seqs": counted.seqs,
            "searched": counted.searched,
            "done": counted.done,
        }
    find = search.find_before if backwards else search.find_after
    found = find(job_id, pattern, wanted, limit=limit)
    return {"lines": found.lines, "next": found.searched, "done": found.done}


def whole(query: Any, name: str, *, default: int | None) -> int | None:
    """A whole number of the query string. Raise SpecError naming it."""
    text = query.get(name)
    if text in (None, ""):
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        words = f"must be a whole number, not {text[:40]!r}"
        raise SpecError(f"{name}: {words}", fields={name: [words]})
    return int(text)


def text_response(job: Job, *, attempt: int | None, worker: str | None, gzip: bool = False) -> StreamingHttpResponse:
    pieces = download(job.pk, attempt=attempt, worker=worker)
    chunks = zipped(pieces) if gzip else pieces

    async def body() -> AsyncIterator[bytes]:
        # never the generator itself: under ASGI Django would gather it in memory
        while chunk := await sync_to_async(lambda: next(chunks, b""))():
            yield chunk

    name = "-".join([job.pk, *([f"attempt-{attempt}"] if attempt is not None else []), *([worker] if worker else [])])
    response = StreamingHttpResponse(body(), content_type="application/gzip" if gzip else "text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.log{".gz" if gzip else ""}"'
    return response
