"""REST of the small drawings of a list: one request for all rows of a page."""

from __future__ import annotations

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.documents import by_interest
from jobs.models import Job
from metrics.sketch import sketches
from metrics.spelling import as_json

MOST = 100  # jobs of one request


class SparklinesView(APIView):
    @extend_schema(
        operation_id="sparklines",
        parameters=[OpenApiParameter("job", str, many=True, description="At most 100 ids.")],
        responses={200: OpenApiResponse(OpenApiTypes.OBJECT), 400: OpenApiResponse(OpenApiTypes.OBJECT)},
    )
    def get(self, request: Request) -> Response:
        """Of each job its key metric in a few values; what one may not see, or has no points, is left out."""
        asked = list(dict.fromkeys(job_id for job_id in request.query_params.getlist("job") if "\0" not in job_id))
        if len(asked) > MOST:
            raise ValidationError({"job": [_("at most %(most)s in one request") % {"most": MOST}]})
        seen = Job.objects.visible_to(request.user).filter(pk__in=asked)
        heads = dict(seen.order_by().values_list("pk", "feed__headline"))
        keys = {job_id: next(iter(by_interest(headline or {})), "") for job_id, headline in heads.items()}
        found = sketches({job_id: key for job_id, key in keys.items() if key})
        return Response(
            {
                "results": {
                    job_id: {
                        "key": one.key,
                        "values": [as_json(value) for value in one.values],
                        "first_step": one.first_step,
                        "last_step": one.last_step,
                    }
                    for job_id, one in found.items()
                }
            }
        )
