"""REST of jobs: submit, list, look. Shapes: documents.py and DESIGN 12."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs import cluster_events, labels, lineage, submission
from jobs.bodies import DOCUMENT_PARSERS, document_in
from jobs.documents import iso, job_document, job_row
from jobs.failures import cause_of
from jobs.lists.filters import PARAMETERS, read_filter
from jobs.lists.places import with_places
from jobs.models import Cluster, Job
from jobs.outlook import why_waiting
from jobs.preview import manifests_of
from jobs.scope import person, visible_job
from jobs.states import JobStatus

ANY_OBJECT = OpenApiResponse(OpenApiTypes.OBJECT)


class JobsView(APIView):
    parser_classes = DOCUMENT_PARSERS

    @extend_schema(
        operation_id="jobs_list",
        parameters=[OpenApiParameter(name, str) for name in (*PARAMETERS, "fields", "cursor", "limit")],
        responses={200: ANY_OBJECT},
    )
    def get(self, request: Request) -> Response:
        """Jobs one may see, newest first; `user=me` is whoever asks, `gpu` a type, `any` or `none`.

        `archived=1` tells archived ones too, `archived=only` them alone. `queue_position` is the place of a waiting job in the
        order in which the planner looks, of `queue_length`: a smaller or shorter job behind it may start first.
        """
        wanted = read_filter(request.query_params, me=person(request).username)
        jobs = Job.objects.visible_to(request.user).matching(**wanted.as_arguments()).only("id", "created_at")
        paginator = self.paginator_class()
        page = paginator.paginate_queryset(jobs, request, view=self)
        rows = [job_row(job) for job in Job.objects.rows([job.pk for job in page or []])]
        with_places(rows)
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
    parser_classes = [JSONParser]

    @extend_schema(operation_id="jobs_get", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, job_id: str) -> Response:
        """One job, whole."""
        job = visible_job(request, job_id)
        document = job_document(job)
        with_places([document])
        return Response({**document, **lineage.told(job, person(request))})

    @extend_schema(
        operation_id="jobs_edit",
        request=OpenApiTypes.OBJECT,
        responses={200: ANY_OBJECT, 403: ANY_OBJECT, 404: ANY_OBJECT, 409: ANY_OBJECT, 422: ANY_OBJECT},
    )
    def patch(self, request: Request, job_id: str) -> Response:
        """Change its `name`, `notes` (Markdown), `tags` or, while it waits, its `priority`."""
        job = visible_job(request, job_id)
        values = request.data if isinstance(request.data, dict) else {}
        return Response(job_document(labels.edit(job, user=person(request), values=values, request=request)))


class JobWhyView(APIView):
    @extend_schema(operation_id="jobs_why", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, job_id: str) -> Response:
        """Why it stands where it stands; of a waiting job also its exact place in the queue, asked now."""
        job = visible_job(request, job_id)
        answer: dict[str, Any] = {
            "id": job.pk,
            "status": job.status,
            "reason": {"code": job.reason_code, "text": job.reason},
            "cause": cause_of(job, list(job.attempts.order_by("number"))) if job.is_final else None,
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
        """What happened to it, and under `cluster` what its cluster said of its attempts; oldest first."""
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
                ],
                "cluster": cluster_events.of_job(job),
            }
        )


class JobManifestView(APIView):
    @extend_schema(operation_id="jobs_manifest", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, job_id: str) -> Response:
        """The exact objects of its latest attempt (of the first to come, where none was made), secrets masked."""
        job = visible_job(request, job_id)
        return Response({"results": manifests_of(job)})
