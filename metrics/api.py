"""REST of points: the series of a job, as a list, as points or buckets, or all of them as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpResponseBase, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.models import Job
from metrics import store
from metrics.chunks import Run
from metrics.documents import numbers, series_document, summary
from metrics.downsample import MAX_BUCKETS
from metrics.points import why_not_a_name
from metrics.store import SeriesId

MAX_KEYS = 100  # of one request
MAX_PLAIN = 1_000_000  # points of one JSON answer
ROWS_AT_ONCE = 4096  # lines of one piece of CSV
COLUMNS = ("key", "rank", "attempt", "step", "time", "value")


class _FormatIsOurs(DefaultContentNegotiation):
    """`?format=` says json or csv here; it picks no renderer of the framework's."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class SeriesView(APIView):
    content_negotiation_class = _FormatIsOurs

    @extend_schema(
        operation_id="jobs_series",
        parameters=[
            OpenApiParameter("key", str, many=True, description="Names of series; without it, the list of them."),
            OpenApiParameter("x", str, enum=["step", "time"]),
            OpenApiParameter("from", float, description="First step, or time in seconds since 1970."),
            OpenApiParameter("to", float),
            OpenApiParameter("buckets", int, description="At most 2,000, which is the default; 0 is every point."),
            OpenApiParameter("attempt", str, many=True, description="Numbers, or `all`; else the newest wins."),
            OpenApiParameter("rank", int, many=True),
            OpenApiParameter("format", str, enum=["json", "csv"]),
        ],
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT),
            400: OpenApiResponse(OpenApiTypes.OBJECT),
            404: OpenApiResponse(OpenApiTypes.OBJECT),
        },
    )
    def get(self, request: Request, job_id: str) -> HttpResponseBase:
        """Series of a job: which there are, or their points."""
        job = get_object_or_404(Job.objects.visible_to(request.user).only("pk"), pk=job_id)
        asked = _Asked(request.query_params)
        if asked.format == "csv":
            response = StreamingHttpResponse(_csv(job.pk, asked), content_type="text/csv; charset=utf-8")
            response["Content-Disposition"] = f'attachment; filename="{job.pk}.csv"'
            return response
        if not asked.keys:
            return Response({"series": [summary(one) for one in store.list_series(job.pk) if asked.takes(one)]})
        found = store.read_series(
            job.pk,
            keys=[key for key in asked.keys if not why_not_a_name(key)],
            x=asked.x,
            start=asked.start,
            end=asked.end,
            buckets=asked.buckets,
            attempts=asked.attempts,
            ranks=asked.ranks,
            all_attempts=asked.all_attempts,
        )
        if sum(len(one.run or ()) for one in found) > MAX_PLAIN:
            _refuse("buckets", _("More than %(most)s points: ask for buckets, a range, or csv.") % {"most": MAX_PLAIN})
        return Response({"series": [series_document(one) for one in found]})


class _Asked:
    """The parameters, each checked; a wrong one is named."""

    def __init__(self, query: QueryDict) -> None:
        self.keys = query.getlist("key")
        if len(self.keys) > MAX_KEYS:
            _refuse("key", _("at most %(most)s in one request") % {"most": MAX_KEYS})
        self.x = query.get("x", "step")
        if self.x not in ("step", "time"):
            _refuse("x", _("must be step or time"))
        self.format = query.get("format", "json")
        if self.format not in ("json", "csv"):
            _refuse("format", _("must be json or csv"))
        self.start, self.end = _number(query, "from"), _number(query, "to")
        self.buckets = _whole("buckets", query.get("buckets", str(MAX_BUCKETS)), most=MAX_BUCKETS)
        self.all_attempts = query.getlist("attempt") == ["all"]
        self.attempts = None if self.all_attempts else _all_whole(query, "attempt")
        self.ranks = _all_whole(query, "rank")

    def takes(self, one: dict[str, Any]) -> bool:
        return (self.attempts is None or one["attempt"] in self.attempts) and (
            self.ranks is None or one["rank"] in self.ranks
        )


def _refuse(name: str, message: str) -> None:
    raise ValidationError({name: [message]})


def _number(query: QueryDict, name: str) -> float | None:
    if (text := query.get(name)) is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        _refuse(name, _("must be a finite number"))
    return number


def _whole(name: str, text: str, *, most: int = 2**31 - 1) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most):
        _refuse(name, _("must be a whole number from 0 to %(most)s") % {"most": most})
    return int(text)


def _all_whole(query: QueryDict, name: str) -> set[int] | None:
    return {_whole(name, text) for text in query.getlist(name)} or None


async def _csv(job_id: str, asked: _Asked) -> AsyncIterator[bytes]:
    """Every point of every attempt that was asked for, one series after the other."""
    yield (",".join(COLUMNS) + "\r\n").encode()
    series = await sync_to_async(store.list_series)(job_id)
    for one in series:
        if asked.takes(one) and (not asked.keys or one["key"] in asked.keys):
            name = SeriesId(one["key"], one["rank"], one["attempt"])
            for piece in await sync_to_async(_csv_of)(job_id, name, asked):
                yield piece


def _csv_of(job_id: str, name: SeriesId, asked: _Asked) -> list[bytes]:
    found = store.read_series(
        job_id,
        keys=[name.key],
        x=asked.x,
        start=asked.start,
        end=asked.end,
        attempts=[name.attempt],
        ranks=[name.rank],
    )
    return [piece for one in found if one.run is not None for piece in _lines(name, one.run)]


def _lines(name: SeriesId, run: Run) -> Iterator[bytes]:
    for start in range(0, len(run), ROWS_AT_ONCE):
        part = run.part(start, start + ROWS_AT_ONCE)
        out = io.StringIO()
        writer = csv.writer(out)
        for row in zip(part.step.tolist(), part.time.tolist(), numbers(part.value), strict=True):
            writer.writerow([*name, *row])
        yield out.getvalue().encode()
