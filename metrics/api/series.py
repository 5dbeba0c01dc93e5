"""REST of points: the series of a job, as a list, as points or buckets, or all points as a file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from django.http import HttpResponseBase, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.models import Job
from metrics import export, store
from metrics.batches import why_not_a_name
from metrics.chunks import Run
from metrics.documents import series_document, summary
from metrics.downsample import MAX_BUCKETS
from metrics.smoothing import EMA, MODES, MOST, Smoothing

MAX_KEYS = 100  # of one request
MAX_PLAIN = 1_000_000  # points of one JSON answer
FORMATS = ("json", *export.WRITERS)


class _FormatIsOurs(DefaultContentNegotiation):
    """`?format=` names a kind of file here; it picks no renderer of the framework's."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class NoParquet(APIException):
    status_code = 501
    default_code = "no_parquet"


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
            OpenApiParameter("format", str, enum=list(FORMATS), description="All but json hold every stored point."),
            OpenApiParameter(
                "smooth", str, description="`auto`, or a weight from 0 to 0.999: a curve beside the points."
            ),
            OpenApiParameter("smooth_by", str, enum=list(MODES)),
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
        if asked.format != "json":
            return _file(job.pk, asked)
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
            smoothing=asked.smoothing,
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
        if self.format not in FORMATS:
            _refuse("format", _("must be one of %(formats)s") % {"formats": ", ".join(FORMATS)})
        self.start, self.end = _number(query, "from"), _number(query, "to")
        self.buckets = _whole("buckets", query.get("buckets", str(MAX_BUCKETS)), most=MAX_BUCKETS)
        self.all_attempts = query.getlist("attempt") == ["all"]
        self.attempts = None if self.all_attempts else _all_whole(query, "attempt")
        self.ranks = _all_whole(query, "rank")
        self.smoothing = _smoothing(query)

    def takes(self, one: dict[str, Any]) -> bool:
        return (self.attempts is None or one["attempt"] in self.attempts) and (
            self.ranks is None or one["rank"] in self.ranks
        )

    def part(self, run: Run) -> Run:
        """The points of a run that lie in the range."""
        axis = run.step if self.x == "step" else run.time
        chosen = np.ones(len(run), dtype=bool)
        if self.start is not None:
            chosen &= axis >= self.start
        if self.end is not None:
            chosen &= axis <= self.end
        return run if chosen.all() else run.where(chosen)


def _file(job_id: str, asked: _Asked) -> StreamingHttpResponse:
    if asked.format == "parquet" and not export.has_parquet():
        raise NoParquet(
            _(
                "This portal writes no Parquet: its administrator can install the requirements of export.txt. CSV is there."
            )
        )
    writer = export.WRITERS[asked.format]()
    keys = set(asked.keys)
    pieces = export.body(
        job_id, writer, takes=lambda one: asked.takes(one) and (not keys or one["key"] in keys), part=asked.part
    )
    response = StreamingHttpResponse(pieces, content_type=writer.content_type)
    response["Content-Disposition"] = f'attachment; filename="{job_id}.{writer.ending}"'
    return response


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


def _smoothing(query: QueryDict) -> Smoothing | None:
    mode = query.get("smooth_by", EMA)
    if mode not in MODES:
        _refuse("smooth_by", _("must be one of %(modes)s") % {"modes": ", ".join(MODES)})
    if query.get("smooth") == "auto":
        return Smoothing(None, mode)
    weight = _number(query, "smooth")
    if weight is None:
        return None
    if not 0 <= weight <= MOST:
        _refuse("smooth", _("must be a number from 0 to %(most)s, or auto") % {"most": MOST})
    return Smoothing(weight, mode)


def _whole(name: str, text: str, *, most: int = 2**31 - 1) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most):
        _refuse(name, _("must be a whole number from 0 to %(most)s") % {"most": most})
    return int(text)


def _all_whole(query: QueryDict, name: str) -> set[int] | None:
    return {_whole(name, text) for text in query.getlist(name)} or None
