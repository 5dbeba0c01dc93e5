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
from jobs.logs import MAX_LIMIT, download, read_lines, worker_of
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
            OpenApiParameter("format", str, enum=["json", "text"]),
        ],
        responses={200: ANY_OBJECT, 404: ANY_OBJECT},
    )
    def get(self, request: Request, job_id: str) -> Response | StreamingHttpResponse:
        """Lines above `after`, or the last below `before`; `text=1` streams the whole log."""
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
            return text_response(job, attempt=attempt, worker=worker)
        after = whole(query, "after", default=0) or 0
        lines = read_lines(
            job.pk,
            after=after,
            before=whole(query, "before", default=None),
            worker=worker,
            attempt=attempt,
            limit=min(MAX_LIMIT, whole(query, "limit", default=500) or 500),
        )
        return Response({"lines": lines, "next": lines[-1]["seq"] if lines else after})


def whole(query: Any, name: str, *, default: int | None) -> int | None:
    """A whole number of the query string. Raise SpecError naming it."""
    text = query.get(name)
    if text in (None, ""):
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        words = f"must be a whole number, not {text[:40]!r}"
        raise SpecError(f"{name}: {words}", fields={name: [words]})
    return int(text)


def text_response(job: Job, *, attempt: int | None, worker: str | None) -> StreamingHttpResponse:
    chunks = download(job.pk, attempt=attempt, worker=worker)

    async def body() -> AsyncIterator[bytes]:
        # never the generator itself: under ASGI Django would gather it in memory
        while chunk := await sync_to_async(lambda: next(chunks, b""))():
            yield chunk

    response = StreamingHttpResponse(body(), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{job.pk}.log"'
    return response
