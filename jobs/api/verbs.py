"""REST of what one may do to a job; each is one verb of `submission`."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import FormParser, JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs import labels, submission
from jobs.api.jobs import ANY_OBJECT
from jobs.documents import job_document
from jobs.scope import person, visible_job


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


class JobArchiveView(APIView):
    @extend_schema(
        operation_id="jobs_archive",
        request=None,
        responses={200: ANY_OBJECT, 403: ANY_OBJECT, 404: ANY_OBJECT, 409: ANY_OBJECT},
    )
    def post(self, request: Request, job_id: str) -> Response:
        """Take a job that is over out of the lists. Nothing is deleted: its page, points, lines and files stay."""
        return Response(
            job_document(labels.archive(visible_job(request, job_id), user=person(request), request=request))
        )


class JobUnarchiveView(APIView):
    @extend_schema(
        operation_id="jobs_unarchive", request=None, responses={200: ANY_OBJECT, 403: ANY_OBJECT, 404: ANY_OBJECT}
    )
    def post(self, request: Request, job_id: str) -> Response:
        """Put an archived job back into the lists."""
        return Response(
            job_document(labels.unarchive(visible_job(request, job_id), user=person(request), request=request))
        )
