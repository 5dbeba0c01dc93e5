"""REST of one verb for many jobs."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs import bulk, labels
from jobs.api.jobs import ANY_OBJECT
from jobs.scope import person


class BulkWish(serializers.Serializer):
    """What to do, and to which jobs."""

    action = serializers.ChoiceField(choices=bulk.ACTIONS)
    ids = serializers.ListField(child=serializers.CharField(max_length=40))
    reason = serializers.CharField(required=False, allow_blank=True, max_length=500, default="")
    tags = serializers.ListField(child=serializers.CharField(max_length=labels.MAX_TAG), required=False, default=list)
    priority = serializers.CharField(required=False, allow_blank=True, max_length=20, default="")


class JobsBulkView(APIView):
    @extend_schema(operation_id="jobs_bulk", request=BulkWish, responses={200: ANY_OBJECT, 422: ANY_OBJECT})
    def post(self, request: Request) -> Response:
        """Stop, hold, release, tag, archive or give a priority to up to 500 jobs.

        `{results: [{id, name, outcome, code, why}], counts}`: `outcome` is done, skipped (nothing to do) or refused (not yours
        to change, or not there for you).
        """
        asked = BulkWish(data=request.data)
        asked.is_valid(raise_exception=True)
        given = asked.validated_data
        wish = bulk.Wish(given["action"], reason=given["reason"], tags=tuple(given["tags"]), priority=given["priority"])
        results, counts = bulk.act(user=person(request), wish=wish, ids=given["ids"], request=request)
        return Response(bulk.document(results, counts, wish))
