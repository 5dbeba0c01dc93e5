"""REST of a namespace's volumes: what jobs may mount for those who see it, and an admin's offers."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import get_namespace
from accounts.models import Namespace
from jobs import shared_volumes
from jobs.api.jobs import ANY_OBJECT
from jobs.exceptions import NotAllowed, SpecError
from jobs.scope import person

# not a class: one of its fields has the name of what every field says of itself
VolumeWish = inline_serializer(
    "VolumeWish",
    {
        "path": serializers.CharField(
            help_text="Where jobs mount it unless they say otherwise. Of a home: /home, which holds a folder of each "
            "person, or /home/{user}, which is one person's own."
        ),
        "read_only": serializers.BooleanField(default=False),
        "is_home": serializers.BooleanField(default=False, help_text="Every job gets it, and its HOME lies there."),
    },
)


class VolumesView(APIView):
    @extend_schema(operation_id="namespaces_volumes_list", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, name: str) -> Response:
        """The volumes that jobs may name, where each is mounted, and whether it may be written."""
        return Response({"results": shared_volumes.listed(get_namespace(person(request), name))})


class VolumeView(APIView):
    parser_classes = [JSONParser]

    @extend_schema(
        operation_id="namespaces_volumes_set",
        request=VolumeWish,
        responses={204: None, 403: ANY_OBJECT, 404: ANY_OBJECT, 422: ANY_OBJECT},
    )
    def put(self, request: Request, name: str, volume: str) -> Response:
        """Offer a claim of that name, which an admin of the cluster has made there. For admins."""
        namespace = _namespace_of_admin(request, name)
        given: Any = request.data
        if not isinstance(given, dict):
            raise SpecError(_("An offer is a mapping of fields, such as {path: /data, read_only: true}."))
        shared_volumes.put(namespace, volume, given, by=person(request), request=request)
        return Response(status=204)

    @extend_schema(operation_id="namespaces_volumes_delete", responses={204: None, 403: ANY_OBJECT, 404: ANY_OBJECT})
    def delete(self, request: Request, name: str, volume: str) -> Response:
        """Offer it no longer. For admins. Jobs that name it are held at their next launch; the claim and its data stay."""
        shared_volumes.remove(_namespace_of_admin(request, name), volume, by=person(request), request=request)
        return Response(status=204)


def _namespace_of_admin(request: Request, name: str) -> Namespace:
    """One that the caller does not see is not there; to those who see it, it is said whose part this is."""
    namespace = get_namespace(person(request), name)
    if not person(request).is_site_admin:
        raise NotAllowed(_("Volumes are offered by admins of the site."))
    return namespace
