"""REST of the job list as a file."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from jobs.lists import columns
from jobs.lists.export import csv_response
from jobs.lists.filters import PARAMETERS
from jobs.scope import person


class JobsCsvView(APIView):
    @extend_schema(
        operation_id="jobs_csv",
        parameters=[
            *(OpenApiParameter(name, str) for name in PARAMETERS),
            OpenApiParameter("cols", str, description=f"By comma, of {', '.join(columns.COLUMNS)}."),
            OpenApiParameter("sort", str, enum=list(columns.SORTS)),
        ],
        responses={(200, "text/csv"): OpenApiResponse(OpenApiTypes.STR)},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Every job of the list, filtered, sorted and with columns as /jobs/ shows it, as comma-separated values.

        Text that a spreadsheet would compute has a quote before it.
        """
        return csv_response(request.query_params, user=person(request), request=request)
