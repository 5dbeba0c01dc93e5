"""REST of jobs: each view reads, asks `submission` or a queryset, and answers. Shapes: documents.py and DESIGN 12."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.parsers import FormParser, JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import audit
from jobs import archives, submission
from jobs.bodies import DOCUMENT_PARSERS, document_in
from jobs.documents import iso, job_document, job_row
from jobs.exceptions import SpecError, UploadError
from jobs.filters import read_filter
from jobs.forecast import Forecast
from jobs.logs import MAX_LIMIT, download, read_lines, worker_of
from jobs.models import Cluster, Job, Runtime
from jobs.outlook import cluster_document, look_ahead, why_waiting
from jobs.preview import manifests_of
from jobs.scope import person, visible_job
from jobs.states import JobStatus

ANY_OBJECT = OpenApiResponse(OpenApiTypes.OBJECT)


def forecast_document(will: Forecast) -> dict[str, Any]:
    return {
        "verdict": will.verdict,
        "reasons": [{"code": will.code, "text": will.text}],
        "ahead": will.ahead,
        "fit": list(will.nodes),
        "alternatives": list(will.alternatives),
    }


class JobsView(APIView):
    parser_classes = DOCUMENT_PARSERS

    @extend_schema(
        operation_id="jobs_list",
        parameters=[
            OpenApiParameter(name, str)
            for name in ("namespace", "status", "user", "tag", "q", "since", "fields", "cursor", "limit")
        ],
        responses={200: ANY_OBJECT},
    )
    def get(self, request: Request) -> Response:
        """Jobs one may see, newest first."""
        wanted = read_filter(request.query_params)
        jobs = Job.objects.visible_to(request.user).matching(**wanted.as_arguments()).only("id", "created_at")
        paginator = self.paginator_class()
        page = paginator.paginate_queryset(jobs, request, view=self)
        rows = [job_row(job) for job in Job.objects.rows([job.pk for job in page or []])]
        if fields := {name for name in request.query_params.get("fields", "").split(",") if name}:
            rows = [{name: value for name, value in row.items() if name in fields or name == "id"} for row in rows]
        answer: Response = paginator.get_paginated_response(rows)
        return answer

    @property
    def paginator_class(self) -> Any:
        return self.settings.DEFAULT_PAGINATION_CLASS

    @extend_schema(
        operation_id="jobs_submit",
        request={
            "application/json": OpenApiTypes.OBJECT,
            "application/yaml": OpenApiTypes.STR,
        },
        parameters=[OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER)],
        responses={201: ANY_OBJECT, 200: ANY_OBJECT, 409: ANY_OBJECT, 422: ANY_OBJECT},
    )
    def post(self, request: Request) -> Response:
        """Submit a job document. A repeat with the same Idempotency-Key answers 200 with the first job."""
        done = submission.submit(
            user=person(request),
            document=document_in(request),
            request=request,
            origin="cli" if request.headers.get("User-Agent", "").startswith("trainhall-cli") else "api",
            idempotency_key=request.headers.get("Idempotency-Key", ""),
        )
        return Response(job_document(Job.objects.for_rows().get(pk=done.job.pk)), status=200 if done.repeated else 201)


class JobView(APIView):
    @extend_schema(operation_id="jobs_get", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, job_id: str) -> Response:
        """One job, whole."""
        return Response(job_document(visible_job(request, job_id)))


class Reason(serializers.Serializer):
    """What may come with a stop."""

    reason = serializers.CharField(required=False, allow_blank=True, max_length=500, default="")
    now = serializers.BooleanField(required=False, default=False, help_text="Without the grace: SIGKILL.")


class JobCancelView(APIView):
    parser_classes = [JSONParser, FormParser, MultiPartParser]

    @extend_schema(
        operation_id="jobs_cancel", request=Reason, responses={200: ANY_OBJECT, 403: ANY_OBJECT, 404: ANY_OBJECT}
    )
    def post(self, request: Request, job_id: str) -> Response:
        """Stop a job: SIGTERM, its grace, SIGKILL. What it reported and wrote is kept. A repeat changes nothing."""
        job = visible_job(request, job_id)
        wish = Reason(data=request.data or {})
        wish.is_valid(raise_exception=True)
        job = submission.cancel(
            job,
            user=person(request),
            note=wish.validated_data["reason"],
            at_once=wish.validated_data["now"],
            request=request,
        )
        return Response(job_document(job))


class JobHoldView(APIView):
    @extend_schema(
        operation_id="jobs_hold", request=None, responses={200: ANY_OBJECT, 403: ANY_OBJECT, 409: ANY_OBJECT}
    )
    def post(self, request: Request, job_id: str) -> Response:
        """Keep it from starting; a running job is stopped and waits as queued and held."""
        return Response(
            job_document(submission.hold(visible_job(request, job_id), user=person(request), request=request))
        )


class JobReleaseView(APIView):
    @extend_schema(operation_id="jobs_release", request=None, responses={200: ANY_OBJECT, 403: ANY_OBJECT})
    def post(self, request: Request, job_id: str) -> Response:
        """Let a held job start when its turn comes."""
        return Response(
            job_document(submission.release(visible_job(request, job_id), user=person(request), request=request))
        )


class JobWhyView(APIView):
    @extend_schema(operation_id="jobs_why", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, job_id: str) -> Response:
        """Why it stands where it stands; of a waiting job also its exact place in the queue, asked now."""
        job = visible_job(request, job_id)
        answer: dict[str, Any] = {
            "id": job.pk,
            "status": job.status,
            "reason": {"code": job.reason_code, "text": job.reason},
            "position": None,
            "ahead": None,
            "cluster_seen_at": iso(Cluster.objects.values_list("seen_at", flat=True).get(pk=job.cluster_id)),
        }
        if job.status == JobStatus.QUEUED and (wait := why_waiting(job)):
            answer |= {
                "reason": {"code": wait.code, "text": wait.text},
                "position": wait.position,
                "ahead": wait.position - 1,
            }
        return Response(answer)


class JobEventsView(APIView):
    @extend_schema(operation_id="jobs_events", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, job_id: str) -> Response:
        """What happened to it, oldest first."""
        job = visible_job(request, job_id)
        return Response(
            {
                "results": [
                    {
                        "at": iso(event.at),
                        "kind": event.kind,
                        "attempt": event.attempt,
                        "old": event.old,
                        "new": event.new,
                        "reason": {"code": event.reason_code, "text": event.reason},
                        "actor": event.actor,
                    }
                    for event in job.events.all()
                ]
            }
        )


class JobManifestView(APIView):
    @extend_schema(operation_id="jobs_manifest", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, job_id: str) -> Response:
        """The exact objects of its latest attempt (of the first to come, where none was made), secrets masked."""
        job = visible_job(request, job_id)
        return Response({"results": manifests_of(job)})


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


class ForecastView(APIView):
    parser_classes = DOCUMENT_PARSERS

    @extend_schema(operation_id="forecast", request=OpenApiTypes.OBJECT, responses={200: ANY_OBJECT, 422: ANY_OBJECT})
    def post(self, request: Request) -> Response:
        """Would this document start now, wait, or never run? Nothing is stored."""
        parsed = submission.check(document_in(request))
        namespace = submission.namespace_to_submit(person(request), parsed.spec.namespace)
        return Response(forecast_document(look_ahead(parsed, namespace=namespace, user=person(request))))


class UploadsView(APIView):
    parser_classes = [MultiPartParser]

    @extend_schema(
        operation_id="uploads_create",
        request={"multipart/form-data": OpenApiTypes.OBJECT},
        responses={201: ANY_OBJECT, 400: ANY_OBJECT},
    )
    def post(self, request: Request) -> Response:
        """Send code: one zip or tar.gz, or several files in `file` with their paths in `path`, in the same order."""
        files = request.FILES.getlist("file")
        paths = request.data.getlist("path") if hasattr(request.data, "getlist") else []
        if paths and len(paths) != len(files):
            raise UploadError(f"{len(files)} files came with {len(paths)} paths; send one `path` for each `file`.")
        names = paths or [upload.name or "file" for upload in files]
        archive = archives.from_uploads(zip(names, files, strict=True), user=person(request))
        audit.record(person(request), "code.upload", target=archive.pk, request=request)
        return Response({"sha256": archive.sha256, "files": archive.file_count, "size": archive.size}, status=201)


class RuntimesView(APIView):
    @extend_schema(operation_id="runtimes_list", responses={200: ANY_OBJECT})
    def get(self, request: Request) -> Response:
        """The templates jobs are made from."""
        return Response(
            {
                "results": [
                    {**runtime.snapshot(), "description": runtime.description}
                    for runtime in Runtime.objects.filter(is_active=True)
                ]
            }
        )


class ClustersView(APIView):
    @extend_schema(operation_id="clusters_list", responses={200: ANY_OBJECT})
    def get(self, request: Request) -> Response:
        """Places where jobs run, as last seen, and what is free there by our own ledger."""
        return Response({"results": [cluster_document(cluster) for cluster in Cluster.objects.all()]})
