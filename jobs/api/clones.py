"""REST of clones: a job again, with some fields set by dotted name."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs import clones, lineage, submission
from jobs.api.jobs import ANY_OBJECT
from jobs.documents import job_document
from jobs.exceptions import SpecError
from jobs.models import Job
from jobs.scope import person, visible_job


class Clone(serializers.Serializer):
    """What is to be different."""

    set = serializers.DictField(
        required=False, default=dict, help_text='By dotted field, such as {"parameters.lr": 0.1}; null takes one out.'
    )
    code = serializers.ChoiceField(
        choices=("same", "latest"),
        required=False,
        default="same",
        help_text="Of code from git: the commit that ran, or the branch looked up again.",
    )

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict | QueryDict) and (unknown := set(data) - set(self.fields)):
            name = sorted(map(str, unknown))[0]
            text = f"there is no such field; changes go into `set`, such as {{set: {{{name}: …}}}}"
            raise SpecError(f"{name}: {text}", fields={name: [text]})
        return super().to_internal_value(data)


class JobCloneView(APIView):
    parser_classes = [JSONParser]

    @extend_schema(
        operation_id="jobs_clone",
        request=Clone,
        responses={
            201: ANY_OBJECT,
            200: ANY_OBJECT,
            403: ANY_OBJECT,
            404: ANY_OBJECT,
            409: ANY_OBJECT,
            422: ANY_OBJECT,
        },
    )
    def post(self, request: Request, job_id: str) -> Response:
        """Submit a job again: its document as sent, the same code, and what `set` changes. Secret values must come again."""
        parent = visible_job(request, job_id)
        wish = Clone(data=request.data or {})
        wish.is_valid(raise_exception=True)
        user = person(request)
        document = clones.document_to_clone(
            parent, changes=wish.validated_data["set"], code=wish.validated_data["code"]
        )
        done = submission.submit(
            user=user,
            document=document,
            request=request,
            origin="cli" if request.headers.get("User-Agent", "").startswith("trainhall-cli") else "api",
            idempotency_key=request.headers.get("Idempotency-Key", ""),
            parent=parent,
            asked={"clone": parent.pk, **wish.validated_data},
        )
        job = Job.objects.for_rows().get(pk=done.job.pk)
        told = {**job_document(job), **lineage.told(job, user)}
        return Response(told, status=200 if done.repeated else 201)
