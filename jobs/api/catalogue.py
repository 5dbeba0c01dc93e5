"""REST of what a job is made from: places, uploads, and the forecast."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import audit
from jobs import archives, chart_fields, shared_volumes, submission
from jobs.api.jobs import ANY_OBJECT
from jobs.bodies import DOCUMENT_PARSERS, document_in
from jobs.exceptions import UploadError
from jobs.forecast import Forecast
from jobs.form import code_names
from jobs.models import Cluster
from jobs.outlook import cluster_document, look_ahead
from jobs.scope import person


def forecast_document(will: Forecast) -> dict[str, Any]:
    return {
        "verdict": will.verdict,
        "reasons": [{"code": will.code, "text": will.text}],
        "ahead": will.ahead,
        "fit": list(will.nodes),
        "alternatives": list(will.alternatives),
    }


class ForecastView(APIView):
    parser_classes = DOCUMENT_PARSERS

    @extend_schema(operation_id="forecast", request=OpenApiTypes.OBJECT, responses={200: ANY_OBJECT, 422: ANY_OBJECT})
    def post(self, request: Request) -> Response:
        """Would this document start now, wait, or never run? Nothing is stored."""
        parsed = submission.check(document_in(request))
        namespace = submission.namespace_to_submit(person(request), parsed.spec.namespace)
        shared_volumes.filled_in(parsed.spec, namespace=namespace, user=person(request))
        will = look_ahead(parsed, namespace=namespace, user=person(request))
        return Response({**forecast_document(will), "charts": chart_fields.told(parsed.spec.charts)})


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
        answer = {"sha256": archive.sha256, "files": archive.file_count, "size": archive.size}
        # what the archive holds, which of a zip only the portal knows
        return Response({**answer, "paths": code_names.first_of(archive)}, status=201)


class ClustersView(APIView):
    @extend_schema(operation_id="clusters_list", responses={200: ANY_OBJECT})
    def get(self, request: Request) -> Response:
        """Places where jobs run, as last seen, and what is free there by our own ledger."""
        return Response(
            {"results": [cluster_document(cluster, reader=person(request)) for cluster in Cluster.objects.all()]}
        )
