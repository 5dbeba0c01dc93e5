"""REST for tokens, namespaces and the audit trail."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, members, people, roster, tokens, trail
from accounts.models import ApiToken, AuditEvent, Membership, Namespace, User
from accounts.reasons import Held, held
from accounts.roles import Role
from accounts.schema import (
    REFUSALS,
    AuditEventSerializer,
    AuditQuery,
    CurrentTokenSerializer,
    MemberChangeSerializer,
    MemberListSerializer,
    MemberSerializer,
    NamespaceListSerializer,
    NamespaceSerializer,
    NewMemberSerializer,
    NewProjectSerializer,
    NewTokenSerializer,
    QuotaSerializer,
    TokenListSerializer,
    TokenSerializer,
    TokenWithTextSerializer,
)


def person_of(request: Request) -> User:
    """The permission class has let nobody else through."""
    return cast(User, request.user)


class Tokens(APIView):
    @extend_schema(operation_id="tokens_list", responses={200: TokenListSerializer, **REFUSALS})
    def get(self, request: Request) -> Response:
        """One's own personal tokens, newest first; their characters are not kept."""
        mine = tokens.living(person_of(request))
        return Response(TokenListSerializer({"results": mine}).data)

    @extend_schema(request=NewTokenSerializer, responses={201: TokenWithTextSerializer, **REFUSALS})
    def post(self, request: Request) -> Response:
        """Make a token; this answer is the only place where its characters are. Needs scope `admin` or a session."""
        wanted = NewTokenSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        try:
            token, text = tokens.issue(person_of(request), **wanted.validated_data, request=request)
        except Http404:
            raise ValidationError({"namespace": [_("There is no such namespace for you.")]}) from None
        body = {**TokenSerializer(token).data, "token": text}
        return Response(body, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class OneToken(APIView):
    @extend_schema(responses={204: None, **REFUSALS})
    def delete(self, request: Request, key: str) -> Response:
        """Revoke a token by its key. Needs scope `admin` or a session."""
        tokens.revoke(person_of(request), key, request=request)
        return Response(status=status.HTTP_204_NO_CONTENT)


class CurrentToken(APIView):
    @extend_schema(responses={200: CurrentTokenSerializer, **REFUSALS})
    def get(self, request: Request) -> Response:
        """Who this request is, what it may do and until when. A session may do everything its person may."""
        person = person_of(request)
        token = request.auth if isinstance(request.auth, ApiToken) else None
        expires: datetime | None = token.expiry if token else request._request.session.get_expiry_date()
        return Response(
            CurrentTokenSerializer(
                {
                    "username": person.username,
                    "display_name": person.display_name,
                    "site_role": person.acting_site_role,
                    "scope": token.scope if token else "admin",
                    "expires": expires,
                    "namespace": token.namespace.slug if token and token.namespace else None,
                    "namespaces": list(access.namespaces_for(person).values_list("slug", flat=True)),
                }
            ).data
        )


def described(namespace: Namespace, role: Role | None) -> dict[str, Any]:
    """What REST says of a namespace; `role` is None for an auditor or admin who is no member."""
    return {
        "name": namespace.slug,
        "kind": namespace.kind,
        "role": role,
        "kubernetes_name": namespace.kubernetes_name,
        "description": namespace.description,
        "owner": namespace.owner.username if namespace.owner else None,
        "gpu_limit": namespace.gpu_limit,
        "cpu_limit_millis": namespace.cpu_limit_millis,
        "memory_limit_bytes": namespace.memory_limit_bytes,
    }


class Namespaces(APIView):
    @extend_schema(operation_id="namespaces_list", responses={200: NamespaceListSerializer, **REFUSALS})
    def get(self, request: Request) -> Response:
        """Every namespace one may see, by name, and one's role there."""
        roles = access.roles_of(person_of(request))
        seen = access.namespaces_for(person_of(request)).select_related("owner").order_by("slug")
        results = [described(namespace, roles.get(namespace.pk)) for namespace in seen]
        return Response(NamespaceListSerializer({"results": results}).data)

    @extend_schema(request=NewProjectSerializer, responses={201: NamespaceSerializer, **REFUSALS})
    def post(self, request: Request) -> Response:
        """Make a project, in which nobody has a role yet. For admins of the site, in a session."""
        person = person_of(request)
        if not person.is_site_admin:
            raise PermissionDenied(_("Projects are made by admins of the site."))
        wanted = NewProjectSerializer(data=values_of(request))
        wanted.is_valid(raise_exception=True)
        try:
            project = people.make_project(
                wanted.validated_data["name"],
                by=person,
                description=wanted.validated_data["description"],
                request=request,
            )
        except people.NameRefused as error:
            raise ValidationError({"name": [str(error)]}) from error
        return Response(NamespaceSerializer(described(project, None)).data, status=status.HTTP_201_CREATED)


class NamespacesRead(Namespaces):
    """Where no operator is."""

    http_method_names = ("get", "head", "options")


class OneNamespace(APIView):
    @extend_schema(responses={200: NamespaceSerializer, **REFUSALS})
    def get(self, request: Request, name: str) -> Response:
        namespace = access.get_namespace(person_of(request), name)
        return Response(NamespaceSerializer(described(namespace, access.role_in(person_of(request), namespace))).data)


def member_document(person: User, role: Held) -> dict[str, Any]:
    return {
        "username": person.username,
        "display_name": person.display_name,
        "role": role.role,
        "sources": [{"role": one.role, "through": one.source, "ends_at": one.ends_at} for one in role.reasons],
    }


def _changer(request: Request, name: str) -> tuple[User, Namespace]:
    """Who may write here. A stranger to the namespace learns no more than that it is not there."""
    person = person_of(request)
    place = access.get_namespace(person, name)
    if not person.is_site_admin:
        raise PermissionDenied(_("Roles are given and taken by admins of the site."))
    return person, place


def values_of(request: Request) -> dict[str, Any]:
    """The fields of a body, for who checks them one by one. Half a character, which JSON can write, fits no column."""
    sent = request.data if isinstance(request.data, dict) else {}
    return {_whole(name): _whole(value) for name, value in sent.items()}


def _whole(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _one_member(row: Membership) -> dict[str, Any]:
    rows = Membership.objects.filter(user=row.user_id, namespace=row.namespace_id).select_related("namespace")
    return dict(MemberSerializer(member_document(row.user, held(rows.order_by("pk"))[0])).data)


class Members(APIView):
    @extend_schema(operation_id="namespaces_members_list", responses={200: MemberListSerializer, **REFUSALS})
    def get(self, request: Request, name: str) -> Response:
        """Who has which role, every source that gives one, and when it ends. For leads, auditors and admins."""
        place = roster.readable_place(person_of(request), name)
        people: dict[User, list[Membership]] = {}
        rows = Membership.objects.filter(namespace=place).select_related("user", "namespace")
        for row in rows.order_by("user__username", "pk"):
            people.setdefault(row.user, []).append(row)
        results = [member_document(one, held(given)[0]) for one, given in people.items()]
        return Response(MemberListSerializer({"results": results}).data)

    @extend_schema(request=NewMemberSerializer, responses={201: MemberSerializer, **REFUSALS})
    def post(self, request: Request, name: str) -> Response:
        """Give somebody a role by hand, with an end or without. For admins; the directory's own roles stay beside it."""
        by, place = _changer(request, name)
        try:
            row = members.give(place, values_of(request), by=by, request=request)
        except members.MemberRefused as error:
            raise ValidationError(error.fields) from error
        return Response(_one_member(row), status=status.HTTP_201_CREATED)


class MembersRead(Members):
    """Where no operator is."""

    http_method_names = ("get", "head", "options")


class OneMember(APIView):
    @extend_schema(request=MemberChangeSerializer, responses={200: MemberSerializer, **REFUSALS})
    def patch(self, request: Request, name: str, username: str) -> Response:
        """Change the role that was given by hand, its end, or both."""
        by, place = _changer(request, name)
        try:
            row = members.change(members.by_hand(place, username), values_of(request), by=by, request=request)
        except members.MemberRefused as error:
            raise ValidationError(error.fields) from error
        return Response(_one_member(row))

    @extend_schema(responses={204: None, **REFUSALS})
    def delete(self, request: Request, name: str, username: str) -> Response:
        """Take the role away that was given by hand. One that the directory gives is refused, with the group that gives it."""
        by, place = _changer(request, name)
        try:
            members.take(members.by_hand(place, username), by=by, request=request)
        except members.MemberRefused as error:
            raise ValidationError(error.fields) from error
        return Response(status=status.HTTP_204_NO_CONTENT)


class Quota(APIView):
    @extend_schema(responses={200: QuotaSerializer, **REFUSALS})
    def get(self, request: Request, name: str) -> Response:
        """What the namespace may use at one time; null means no limit."""
        namespace = access.get_namespace(person_of(request), name)
        return Response(QuotaSerializer({"namespace": namespace.slug, "limits": namespace.limits}).data)


@extend_schema(parameters=[AuditQuery], responses={200: AuditEventSerializer(many=True), **REFUSALS})
class Audit(ListAPIView):
    """Who did what to what, newest first. A lead sees the rows of the namespaces they lead."""

    serializer_class = AuditEventSerializer
    ordering = ("-at", "-id")

    def get_queryset(self) -> QuerySet[AuditEvent]:
        asked = AuditQuery(data=self.request.query_params)
        asked.is_valid(raise_exception=True)
        wanted = {name: value for name, value in asked.validated_data.items() if value}
        return trail.readable(person_of(self.request)).filter(**wanted).order_by(*self.ordering)

    def paginate_queryset(self, queryset: Any) -> Any:
        # the site's paging sorts by created_at, which these rows do not have
        cast(CursorPagination, self.paginator).ordering = self.ordering
        return super().paginate_queryset(queryset)
