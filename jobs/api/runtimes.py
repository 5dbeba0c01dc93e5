"""REST of the catalogue: everybody signed in reads it, an admin changes it."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs import catalogue
from jobs.api.jobs import ANY_OBJECT
from jobs.documents import iso
from jobs.exceptions import SpecError
from jobs.models import Runtime
from jobs.scope import person


def runtime_document(runtime: Runtime) -> dict[str, Any]:
    return {
        **runtime.snapshot(),
        "description": runtime.description,
        "deprecation": runtime.deprecation,
        "is_active": runtime.is_active,
        "updated_at": iso(runtime.updated_at),
    }


def _values(request: Request) -> dict[str, Any]:
    if not isinstance(request.data, dict):
        raise SpecError("A runtime is a mapping of fields, such as {slug: …, title: …, image: …}.")
    return dict(request.data)


class RuntimesView(APIView):
    parser_classes = [JSONParser]

    @extend_schema(operation_id="runtimes_list", responses={200: ANY_OBJECT})
    def get(self, request: Request) -> Response:
        """The templates jobs are made from."""
        active = Runtime.objects.filter(is_active=True)
        return Response({"results": [runtime_document(runtime) for runtime in active]})

    @extend_schema(
        operation_id="runtimes_create",
        request=OpenApiTypes.OBJECT,
        responses={201: ANY_OBJECT, 403: ANY_OBJECT, 422: ANY_OBJECT},
    )
    def post(self, request: Request) -> Response:
        """Add a runtime, as an admin; jobs may choose it from the next request on."""
        values = _values(request)
        slug = values.pop("slug", "")
        made = catalogue.create(user=person(request), slug=slug, values=values, request=request)
        return Response(runtime_document(made), status=201)


class RuntimeView(APIView):
    parser_classes = [JSONParser]

    @extend_schema(operation_id="runtimes_get", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, slug: str) -> Response:
        """One runtime, also one that is not offered any more."""
        return Response(runtime_document(_found(slug)))

    @extend_schema(
        operation_id="runtimes_edit",
        request=OpenApiTypes.OBJECT,
        responses={200: ANY_OBJECT, 403: ANY_OBJECT, 404: ANY_OBJECT, 422: ANY_OBJECT},
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Change what new jobs get, as an admin; jobs that exist keep what they got. `version` refuses a stale edit."""
        values = _values(request)
        version = values.pop("version", None)
        if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
            raise SpecError("version: must be a whole number", fields={"version": ["must be a whole number"]})
        edited = catalogue.edit(_found(slug), user=person(request), values=values, version=version, request=request)
        return Response(runtime_document(edited))


class RuntimesReadView(RuntimesView):
    """Where no operator is: the catalogue as everybody reads it."""

    http_method_names = ("get", "head", "options")


class RuntimeReadView(RuntimeView):
    http_method_names = ("get", "head", "options")


def _found(slug: str) -> Runtime:
    runtime = Runtime.objects.filter(pk=slug.replace("\0", "\ufffd")).first()
    if runtime is None:
        raise Http404
    return runtime
