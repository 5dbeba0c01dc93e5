"""REST of drafts: each person's own, on every device."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api.jobs import ANY_OBJECT
from jobs.form import drafts
from jobs.scope import person


class DraftsView(APIView):
    parser_classes = [JSONParser]

    @extend_schema(operation_id="drafts_list", responses={200: ANY_OBJECT})
    def get(self, request: Request) -> Response:
        """One's own drafts, the newest first, without what was typed in them."""
        found = drafts.drafts_of(person(request))
        return Response({"results": [drafts.draft_document(draft, whole=False) for draft in found]})

    @extend_schema(
        operation_id="drafts_create", request=OpenApiTypes.OBJECT, responses={201: ANY_OBJECT, 422: ANY_OBJECT}
    )
    def post(self, request: Request) -> Response:
        """Keep the fields of the form, by name; a secret's value is left out."""
        draft = drafts.create(person(request), request.data, request=request)
        return Response(drafts.draft_document(draft, whole=False), status=201)


class DraftView(APIView):
    parser_classes = [JSONParser]

    @extend_schema(operation_id="drafts_get", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, draft_id: str) -> Response:
        """One draft with its fields."""
        return Response(drafts.draft_document(drafts.draft_of(person(request), draft_id), whole=True))

    @extend_schema(
        operation_id="drafts_save",
        request=OpenApiTypes.OBJECT,
        responses={200: ANY_OBJECT, 404: ANY_OBJECT, 422: ANY_OBJECT},
    )
    def put(self, request: Request, draft_id: str) -> Response:
        """Save it as it now stands; 404 where its job was made, or it was removed."""
        draft = drafts.save(drafts.draft_of(person(request), draft_id), request.data)
        return Response(drafts.draft_document(draft, whole=False))

    @extend_schema(operation_id="drafts_delete", request=None, responses={204: None, 404: ANY_OBJECT})
    def delete(self, request: Request, draft_id: str) -> Response:
        """Remove it for good."""
        user = person(request)
        drafts.remove(drafts.draft_of(user, draft_id), user=user, request=request)
        return Response(status=204)
