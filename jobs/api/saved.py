"""REST of saved views of the job list."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api.jobs import ANY_OBJECT
from jobs.lists import saved
from jobs.scope import person


class NewView(serializers.Serializer):
    """A view to keep."""

    name = serializers.CharField(max_length=saved.NAME_LENGTH)
    query = serializers.CharField(max_length=2000, allow_blank=True, help_text="The query string of /jobs/.")
    namespace = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, default="", help_text="Whom to share it with; empty: nobody."
    )


class ViewChange(serializers.Serializer):
    """What to change of a view; what is left out stays."""

    name = serializers.CharField(max_length=saved.NAME_LENGTH, required=False)
    query = serializers.CharField(max_length=2000, allow_blank=True, required=False)
    namespace = serializers.CharField(required=False, allow_blank=True, allow_null=True)


class SavedViewsView(APIView):
    @extend_schema(operation_id="views_list", responses={200: ANY_OBJECT})
    def get(self, request: Request) -> Response:
        """One's own views, and those shared in the namespaces one sees."""
        return Response({"results": [saved.view_document(view) for view in saved.views_for(person(request))]})

    @extend_schema(operation_id="views_save", request=NewView, responses={201: ANY_OBJECT, 409: ANY_OBJECT})
    def post(self, request: Request) -> Response:
        """Keep a view. The same name and query again answers with the same view."""
        wish = NewView(data=request.data)
        wish.is_valid(raise_exception=True)
        given = wish.validated_data
        view = saved.save(
            user=person(request),
            name=given["name"],
            query=given["query"],
            namespace=given["namespace"] or "",
            request=request,
        )
        return Response(saved.view_document(view), status=201)


class SavedViewView(APIView):
    @extend_schema(operation_id="views_get", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, view_id: int) -> Response:
        """One view."""
        return Response(saved.view_document(saved.visible_view(person(request), view_id)))

    @extend_schema(
        operation_id="views_change", request=ViewChange, responses={200: ANY_OBJECT, 403: ANY_OBJECT, 404: ANY_OBJECT}
    )
    def patch(self, request: Request, view_id: int) -> Response:
        """Rename it, share it, or point it elsewhere."""
        view = saved.visible_view(person(request), view_id)
        wish = ViewChange(data=request.data)
        wish.is_valid(raise_exception=True)
        given = dict(wish.validated_data)
        if "namespace" in given:
            given["namespace"] = given["namespace"] or ""
        return Response(saved.view_document(saved.change(view, user=person(request), request=request, **given)))

    @extend_schema(operation_id="views_delete", responses={204: None, 403: ANY_OBJECT, 404: ANY_OBJECT})
    def delete(self, request: Request, view_id: int) -> Response:
        """Delete it."""
        saved.remove(saved.visible_view(person(request), view_id), user=person(request), request=request)
        return Response(status=204)
