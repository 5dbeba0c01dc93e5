"""REST of a namespace's secrets: names for those who see it, values from its leads, and no way back."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import get_namespace
from accounts.roles import Verb
from jobs import shared_secrets
from jobs.api.jobs import ANY_OBJECT
from jobs.exceptions import SpecError
from jobs.scope import person


class SecretWish(serializers.Serializer):
    """What to set. Of kind `values` the values by key, of kind `registry` an account for images from it."""

    kind = serializers.ChoiceField(choices=["values", "registry"], default="values")
    values = serializers.DictField(
        child=serializers.CharField(allow_null=True), required=False, help_text="null removes a key; others stay."
    )
    registry = serializers.CharField(required=False, help_text="As images begin: ghcr.io.")
    username = serializers.CharField(required=False)
    password = serializers.CharField(required=False)


class SecretsView(APIView):
    @extend_schema(operation_id="namespaces_secrets_list", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, name: str) -> Response:
        """The names and keys that jobs may use, who set each and when. A value is never told."""
        return Response({"results": shared_secrets.listed(get_namespace(person(request), name))})


class SecretView(APIView):
    parser_classes = [JSONParser]

    @extend_schema(
        operation_id="namespaces_secrets_set",
        request=SecretWish,
        responses={204: None, 403: ANY_OBJECT, 404: ANY_OBJECT, 422: ANY_OBJECT},
    )
    def put(self, request: Request, name: str, secret: str) -> Response:
        """Set a secret or some of its keys. For leads. Jobs that wait get the new value, those that run keep theirs."""
        namespace = get_namespace(person(request), name, Verb.MANAGE)
        given: Any = request.data
        if not isinstance(given, dict):
            raise SpecError("A secret is a mapping of fields, such as {values: {wandb: …}}.")
        shared_secrets.put(namespace, secret, given, by=person(request), request=request)
        return Response(status=204)

    @extend_schema(operation_id="namespaces_secrets_delete", responses={204: None, 403: ANY_OBJECT, 404: ANY_OBJECT})
    def delete(self, request: Request, name: str, secret: str) -> Response:
        """Remove a secret with all its keys. For leads. Jobs that name it are held at their next launch."""
        namespace = get_namespace(person(request), name, Verb.MANAGE)
        shared_secrets.remove(namespace, secret, by=person(request), request=request)
        return Response(status=204)
