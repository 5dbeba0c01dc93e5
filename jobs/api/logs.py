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
from jobs.logs import search
from jobs.logs.asked import read_wanted, whole
from jobs.logs.levels import NAMES
from jobs.logs.lines import MAX_LIMIT, download, read_lines, zipped
from jobs.logs.stretches import PAGE_BYTES, Wanted
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
            OpenApiParameter("level", str, description="Of " + ", ".join(NAMES) + "; several by comma."),
            OpenApiParameter("from", str, description="Written from then on: a moment, or 10m for ten minutes ago."),
            OpenApiParameter("to", str, description="Written before then."),
            OpenApiParameter(
                "levels", bool, description="How many lines there are of each level; with q of those that match."
            ),
            OpenApiParameter("q", str, description="RE2; only lines in which it is found."),
            OpenApiParameter("case", str, enum=["i"], description="Of q: capitals do not matter."),
            OpenApiParameter("literal", bool, description="q is plain text."),
            OpenApiParameter("count", bool, description="How many lines there are, and the first 10,000 seqs."),
            OpenApiParameter("text", bool, description="The whole log, streamed."),
            OpenApiParameter("gzip", bool, description="With text: as .log.gz."),
        ],
        responses={200: ANY_OBJECT, 404: ANY_OBJECT},
    )
    def get(self, request: Request, job_id: str) -> Response | StreamingHttpResponse:
        """Lines above `after`, or the last below `before`; with `q`, `level`, `from`, `to` those that fit.

        `text=1` streams the whole log.
        """
        job = visible_job(request, job_id)
        query = request.query_params
        wanted = read_wanted(query)
        if query.get("text"):
            return text_response(job, wanted, gzip=bool(query.get("gzip")))
        limit = max(1, min(MAX_LIMIT, whole(query, "limit", default=500) or 500))
        backwards = bool(query.get("before")) and "after" not in query
        if query.get("levels") or query.get("q") or query.get("count") or wanted.is_sparse:
            return Response(search_answer(job.pk, query, wanted, limit=limit, backwards=backwards))
        before = wanted.before if query.get("before") else None
        lines = read_lines(
            job.pk,
            after=wanted.after,
            before=before,
            worker=wanted.worker,
            attempt=wanted.attempt,
            limit=limit,
            most_bytes=PAGE_BYTES,
        )
        return Response({"lines": lines, "next": lines[-1]["seq"] if lines else wanted.after})


def search_answer(job_id: str, query: Any, wanted: Wanted, *, limit: int, backwards: bool) -> dict[str, Any]:
    """What of a log is asked for, as far as a request's time allows; `next` is where to go on, until `done`."""
    counts = bool(query.get("levels") or query.get("count"))
    matcher: search.Matcher = search.Anything(seen_only=counts)
    if query.get("q"):
        matcher = search.Pattern.parse(
            query["q"], ignore_case="i" in query.get("case", ""), literal=bool(query.get("literal"))
        )
    if query.get("levels"):
        found_levels = search.count_levels(job_id, matcher, wanted)
        return {"levels": found_levels.counts, "searched": found_levels.searched, "done": found_levels.done}
    if query.get("count"):
        counted = search.count(job_id, matcher, wanted)
        return {
            "count": counted.total,
            "seqs": counted.seqs,
            "searched": counted.searched,
            "done": counted.done,
        }
    find = search.find_before if backwards else search.find_after
    found = find(job_id, matcher, wanted, limit=limit)
    return {"lines": found.lines, "next": found.searched, "done": found.done}


def text_response(job: Job, wanted: Wanted, *, gzip: bool = False) -> StreamingHttpResponse:
    pieces = download(job.pk, wanted)
    chunks = zipped(pieces) if gzip else pieces

    async def body() -> AsyncIterator[bytes]:
        # never the generator itself: under ASGI Django would gather it in memory
        while chunk := await sync_to_async(lambda: next(chunks, b""))():
            yield chunk

    response = StreamingHttpResponse(body(), content_type="application/gzip" if gzip else "text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{_name_of(job, wanted)}.log{".gz" if gzip else ""}"'
    return response


def _name_of(job: Job, wanted: Wanted) -> str:
    attempt = [f"attempt-{wanted.attempt}"] if wanted.attempt is not None else []
    levels = [name for name, level in NAMES.items() if level in wanted.levels]
    part = ["part"] if wanted.since is not None or wanted.until is not None else []
    return "-".join([job.pk, *attempt, *([wanted.worker] if wanted.worker else []), *levels, *part])
