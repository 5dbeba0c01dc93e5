"""REST for admins: the rules of groups, and bringing rights in line with the directory now."""

from __future__ import annotations

from typing import cast

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import mappings, sync
from accounts.api import values_of
from accounts.directory import Everybody
from accounts.models import GroupMapping, User
from accounts.schema import (
    REFUSALS,
    GroupMappingListSerializer,
    GroupMappingSerializer,
    RoleOnlySerializer,
    SyncQuery,
    SyncSerializer,
)


class DirectoryUnavailable(APIException):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "directory_unavailable"


def admin_of(request: Request) -> User:
    person = cast(User, request.user)
    if not person.is_site_admin:
        raise PermissionDenied(_("This is for admins of the site."))
    return person


def read_directory() -> Everybody:
    """All that the directory says now; raise DirectoryUnavailable where it cannot be asked."""
    if settings.DIRECTORY is None:
        raise DirectoryUnavailable(_("No directory is connected: set LDAP_URL (docs/admin.md)."))
    from accounts.ldap.connection import DirectoryAway  # noqa: PLC0415 # an extra: there where the setting is
    from accounts.ldap.reading import read_everybody  # noqa: PLC0415

    try:
        return read_everybody()
    except DirectoryAway as error:
        raise DirectoryUnavailable(_("The directory cannot be asked: %(words)s") % {"words": error}) from error


class GroupMappings(APIView):
    @extend_schema(operation_id="group_mappings_list", responses={200: GroupMappingListSerializer, **REFUSALS})
    def get(self, request: Request) -> Response:
        """Every rule: who is in the group has the role in the namespace, or the role for the site."""
        admin_of(request)
        rows = GroupMapping.objects.select_related("namespace")
        return Response({"results": [mappings.document(row) for row in rows]})

    @extend_schema(request=GroupMappingSerializer, responses={201: GroupMappingSerializer, **REFUSALS})
    def post(self, request: Request) -> Response:
        """Add a rule; it gives its roles with the next pass, and at each sign-in."""
        by = admin_of(request)
        try:
            row = mappings.add(mappings.checked(values_of(request)), by=by, request=request)
        except mappings.MappingRefused as error:
            raise ValidationError(error.fields) from error
        return Response(mappings.document(row), status=status.HTTP_201_CREATED)


class OneGroupMapping(APIView):
    @extend_schema(request=RoleOnlySerializer, responses={200: GroupMappingSerializer, **REFUSALS})
    def patch(self, request: Request, mapping_id: int) -> Response:
        """Give the rule another role of its kind: `role`, or `site_role` where it gives that."""
        by, row = admin_of(request), _row(mapping_id)
        try:
            row = mappings.change(row, values_of(request), by=by, request=request)
        except mappings.MappingRefused as error:
            raise ValidationError(error.fields) from error
        return Response(mappings.document(row))

    @extend_schema(responses={204: None, **REFUSALS})
    def delete(self, request: Request, mapping_id: int) -> Response:
        """Remove the rule; the roles it gave go with the next pass."""
        by = admin_of(request)
        mappings.remove(_row(mapping_id), by=by, request=request)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _row(mapping_id: int) -> GroupMapping:
    row = GroupMapping.objects.select_related("namespace").filter(pk=mapping_id).first()
    if row is None:
        raise Http404
    return row


class Sync(APIView):
    @extend_schema(parameters=[SyncQuery], request=None, responses={200: SyncSerializer, 503: None, **REFUSALS})
    def post(self, request: Request) -> Response:
        """Read the directory and bring everybody's rights in line now; with `dry_run` only say what would change.

        An admin's pass is applied also where it takes away so much that the portal's own would not be.
        """
        by = admin_of(request)
        asked = SyncQuery(data=request.query_params)
        asked.is_valid(raise_exception=True)
        everybody = read_directory()
        changes, problems = mappings.preview(everybody)
        is_applied = False
        if not asked.validated_data["dry_run"]:
            is_applied = sync.run(everybody, by=by, request=request).is_applied
        body = {"is_applied": is_applied, "changes": [change.document() for change in changes], "problems": problems}
        return Response(body)
