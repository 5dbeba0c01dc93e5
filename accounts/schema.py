"""The shapes of this app's REST bodies, for the answers and for OpenAPI."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

from accounts.models import ApiToken, AuditEvent
from accounts.roles import Role, SiteRole
from accounts.tokens import LONGEST_DAYS, USUAL_DAYS

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "fields"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "fields": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
            },
        }
    },
}
REFUSALS = {
    400: OpenApiResponse(ERROR, "The request cannot be understood; `fields` says where."),
    401: OpenApiResponse(ERROR, "No sign-in, or a token that is unknown, revoked or expired."),
    403: OpenApiResponse(ERROR, "The role, or the token's scope, is too low."),
    404: OpenApiResponse(ERROR, "Not there, or nothing of yours."),
}


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    key = serializers.CharField(source="token_key", help_text="The first characters: a name to revoke it by.")
    created_at = serializers.DateTimeField(source="created")
    expires_at = serializers.DateTimeField(source="expiry", allow_null=True)
    namespace = serializers.SlugRelatedField[Any](
        slug_field="slug", read_only=True, help_text="The only one it works in; null: all of its person's."
    )

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = (
            "key",
            "name",
            "scope",
            "namespace",
            "created_at",
            "expires_at",
            "last_used_at",
            "last_used_from",
        )
        read_only_fields = fields


class TokenWithTextSerializer(TokenSerializer):
    token = serializers.CharField(read_only=True, help_text="th_…, shown this once.")

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")
        read_only_fields = fields


class TokenListSerializer(serializers.Serializer[Any]):
    results = TokenSerializer(many=True)


class NewTokenSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    scope = serializers.ChoiceField(choices=ApiToken.SCOPES, default="read")
    days = serializers.IntegerField(min_value=1, max_value=LONGEST_DAYS, default=USUAL_DAYS)
    namespace = serializers.CharField(
        max_length=63, required=False, allow_null=True, help_text="Bind it to this one; left out: all of yours."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A mistyped field would otherwise be taken for the default in silence."""
        if unknown := sorted(set(self.initial_data) - set(self.fields)):
            raise serializers.ValidationError({name: _("There is no such field.") for name in unknown})
        return attrs


class CurrentTokenSerializer(serializers.Serializer[Any]):
    username = serializers.CharField()
    display_name = serializers.CharField()
    site_role = serializers.CharField(allow_blank=True)
    scope = serializers.ChoiceField(choices=ApiToken.SCOPES)
    expires = serializers.DateTimeField(allow_null=True)
    namespace = serializers.CharField(allow_null=True, help_text="What the token is bound to.")
    namespaces = serializers.ListField(child=serializers.CharField())


class NamespaceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=["personal", "project"])
    role = serializers.ChoiceField(choices=list(Role), allow_null=True)
    kubernetes_name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    owner = serializers.CharField(allow_null=True)
    gpu_limit = serializers.IntegerField(allow_null=True, help_text="null: no limit")
    cpu_limit_millis = serializers.IntegerField(allow_null=True, help_text="null: no limit")
    memory_limit_bytes = serializers.IntegerField(allow_null=True, help_text="null: no limit")


class NewProjectSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=40, help_text="1 to 40 of a-z, 0-9 and -; it stays for good.")
    description = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)


class NamespaceListSerializer(serializers.Serializer[Any]):
    results = NamespaceSerializer(many=True)


class RoleSourceSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=list(Role))
    through = serializers.CharField(help_text="`manual`, `personal`, or `ldap:` and the group that gives it.")
    ends_at = serializers.DateTimeField(allow_null=True, help_text="null: it stays until it is taken away.")


class MemberSerializer(serializers.Serializer[Any]):
    username = serializers.CharField()
    display_name = serializers.CharField()
    role = serializers.ChoiceField(choices=list(Role), help_text="The highest of all sources.")
    sources = RoleSourceSerializer(many=True)


class NewMemberSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(max_length=150)
    role = serializers.ChoiceField(choices=list(Role))
    ends_at = serializers.CharField(
        required=False, allow_null=True, help_text="A day, which counts to its end, or a time; left out: it stays."
    )


class MemberChangeSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=list(Role), required=False)
    ends_at = serializers.CharField(required=False, allow_null=True, help_text="As when it is given; null: it stays.")


class MemberListSerializer(serializers.Serializer[Any]):
    results = MemberSerializer(many=True)


class LimitsSerializer(serializers.Serializer[Any]):
    gpus = serializers.IntegerField(allow_null=True)
    cpu_millis = serializers.IntegerField(allow_null=True)
    memory_bytes = serializers.IntegerField(allow_null=True)


class QuotaSerializer(serializers.Serializer[Any]):
    namespace = serializers.CharField()
    limits = LimitsSerializer()


class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
    class Meta:
        model = AuditEvent
        fields = ("id", "at", "actor", "action", "target", "namespace", "before", "after", "address", "via")
        read_only_fields = fields


class AuditQuery(serializers.Serializer[Any]):
    actor = serializers.CharField(required=False, max_length=150, help_text="User name.")
    action = serializers.CharField(required=False, max_length=60, help_text="noun.verb, such as job.submit.")
    namespace = serializers.CharField(required=False, max_length=63)


class GroupMappingSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(read_only=True)
    group = serializers.CharField(max_length=300, help_text="A group's name or DN, or a pattern such as ml-*.")
    namespace = serializers.CharField(
        max_length=63,
        allow_null=True,
        required=False,
        help_text="A project; null, with a pattern only, gives each group a project of its own.",
    )
    role = serializers.ChoiceField(choices=[role.value for role in Role], allow_null=True, required=False)
    site_role = serializers.ChoiceField(
        choices=[role.value for role in SiteRole if role],
        allow_null=True,
        required=False,
        help_text="In the place of `namespace` and `role`: for the whole site.",
    )


class GroupMappingListSerializer(serializers.Serializer[Any]):
    results = GroupMappingSerializer(many=True)


class RoleOnlySerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=[role.value for role in Role], required=False)
    site_role = serializers.ChoiceField(choices=[role.value for role in SiteRole if role], required=False)


class SyncQuery(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField(default=False, help_text="Only say what would change.")


class RightsChangeSerializer(serializers.Serializer[Any]):
    username = serializers.CharField()
    namespace = serializers.CharField(allow_blank=True)
    role = serializers.CharField(allow_blank=True, help_text="Empty for a role that goes.")
    through = serializers.CharField(allow_blank=True, help_text="The directory group.")
    kind = serializers.ChoiceField(choices=["added", "changed", "removed", "gone"])
    site_role = serializers.CharField(allow_blank=True, help_text="What comes or goes for the whole site; else empty.")
    running = serializers.IntegerField(help_text="Jobs that who loses something has there.")
    waiting = serializers.IntegerField(help_text="They are held, where no other role lets them run.")


class SyncSerializer(serializers.Serializer[Any]):
    is_applied = serializers.BooleanField()
    changes = RightsChangeSerializer(many=True)
    problems = serializers.ListField(child=serializers.CharField())


class ApiTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.auth.ApiTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A personal token th_… from /me/tokens/."}


class ApiSessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.auth.ApiSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "trainhall_session"}
