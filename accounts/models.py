"""People, namespaces, who has which role where, tokens, and the audit trail."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken

from accounts.quotas import Limits
from accounts.roles import Role, SiteRole


def local_subject() -> str:
    """The identity of a person who comes from no directory."""
    return f"local:{uuid.uuid4()}"


class UserManager(BaseUserManager["User"]):
    def create_user(self, username: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(username=username, **fields)
        user.set_password(password)
        user.save()
        return user


class User(AbstractBaseUser):  # type: ignore[django-manager-missing] # knox's abstract model names it
    """A person. `subject` is the identity and never changes; the user name is only a label."""

    subject = models.CharField(max_length=200, unique=True, default=local_subject, editable=False)
    username = models.CharField(max_length=150, unique=True, help_text=_("What the person types to sign in."))
    display_name = models.CharField(max_length=200, blank=True)
    email = models.EmailField(blank=True)
    source = models.CharField(
        max_length=20, default="local", help_text=_("Where the account comes from: local, ldap or oidc.")
    )
    site_role = models.CharField(
        max_length=10, blank=True, default="", choices=[(role.value, role.value) for role in SiteRole]
    )
    site_role_source = models.CharField(
        max_length=300, blank=True, default="manual", help_text=_("`manual`, or `ldap:` and the group that gave it.")
    )
    is_active = models.BooleanField(default=True)
    disabled_by = models.CharField(
        max_length=10, blank=True, default="", help_text=_("`admin` or `directory`; only who disabled may enable.")
    )
    directory_dn = models.CharField(max_length=1000, blank=True, default="", help_text=_("The entry, when last seen."))
    directory_name = models.CharField(
        max_length=150, blank=True, default="", help_text=_("What the directory called them then; `username` stays.")
    )
    directory_groups = models.JSONField(default=list, blank=True, help_text=_("Names of groups, when last seen."))
    uid_number = models.PositiveIntegerField(null=True, blank=True, help_text=_("uidNumber of the directory."))
    gid_number = models.PositiveIntegerField(null=True, blank=True)
    supplementary_gids = models.JSONField(default=list, blank=True)
    session_generation = models.PositiveIntegerField(
        default=0, help_text=_("Raised when the account is disabled: what was signed in before stays out for good.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    bound_to: int | None = None  # of one request: the namespace its token may not leave; see `access`

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: list[str] = []  # type: ignore[misc] # a class variable there
    objects = UserManager()

    def __str__(self) -> str:
        return self.username

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """What a session must have been made with: the same password, and no disabling since."""
        known = f"{self.password} {self.session_generation}" if self.session_generation else self.password
        salt = "django.contrib.auth.models.AbstractBaseUser.get_session_auth_hash"  # Django's own, which knows no generation
        return salted_hmac(salt, known, secret=secret, algorithm="sha256").hexdigest()

    @property
    def acting_site_role(self) -> SiteRole:
        """The role for the site that this request acts with: a token for one namespace carries none."""
        return SiteRole(self.site_role) if self.bound_to is None else SiteRole.NONE

    @property
    def site_role_group(self) -> str:
        """The directory group that gives the role for the site; empty for one by hand, and for none."""
        kind, _colon, group = self.site_role_source.partition(":")
        return group if self.site_role and kind == "ldap" else ""

    @property
    def is_site_admin(self) -> bool:
        return self.acting_site_role == SiteRole.ADMIN

    @property
    def sees_everything(self) -> bool:
        return self.acting_site_role != SiteRole.NONE


class Namespace(models.Model):  # type: ignore[django-manager-missing] # as above
    """A Kubernetes namespace and its queue: one person's own, or a project's."""

    slug = models.SlugField(max_length=63, unique=True, help_text=_("The name in URLs and job documents."))
    kubernetes_name = models.CharField(max_length=63, unique=True, help_text=_("Given once, never used for another."))
    kind = models.CharField(max_length=10, choices=[("personal", _("personal")), ("project", _("project"))])
    owner = models.OneToOneField(
        User, null=True, blank=True, on_delete=models.PROTECT, related_name="personal_namespace"
    )
    description = models.CharField(max_length=200, blank=True)
    is_listed = models.BooleanField(
        default=False,
        help_text=_("Named to everybody who signs in, with its groups and leads, so that they can ask for a role."),
    )
    made_for = models.CharField(
        max_length=500, null=True, blank=True, unique=True, help_text=_("The directory group a rule made it for.")
    )
    gpu_limit = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("GPUs the namespace may use at one time; empty means no limit.")
    )
    cpu_limit_millis = models.PositiveIntegerField(null=True, blank=True, help_text=_("The same for CPU, in m."))
    memory_limit_bytes = models.PositiveBigIntegerField(null=True, blank=True, help_text=_("The same for memory."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug

    @property
    def limits(self) -> Limits:
        return Limits(gpus=self.gpu_limit, cpu_millis=self.cpu_limit_millis, memory_bytes=self.memory_limit_bytes)


class InForce(models.Manager["Membership"]):
    def get_queryset(self) -> models.QuerySet[Membership]:
        return super().get_queryset().filter(models.Q(ends_at=None) | models.Q(ends_at__gt=Now()))


class Membership(models.Model):
    """A person's role in a namespace, and where it comes from.

    `objects`, and so `user.memberships`, are the roles of now. One that has ended is gone for them from that second on,
    although its row is taken away a moment later (`members`). A look-up through a join, `memberships__…`, does not see
    that: ask for the people or namespaces of `Membership.objects` instead.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=[(role.value, role.value) for role in Role])
    source = models.CharField(
        max_length=300, default="manual", help_text=_("`manual`, `personal`, or `ldap:` and the group that gave it.")
    )
    ends_at = models.DateTimeField(
        null=True, blank=True, help_text=_("A role by hand may end by itself; empty: it stays until it is taken away.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = InForce()
    also_ended = models.Manager["Membership"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("user", "namespace", "source"), name="one_role_per_user_namespace_source"),
            models.CheckConstraint(
                condition=models.Q(ends_at=None) | models.Q(source="manual"), name="only_a_role_by_hand_ends_by_itself"
            ),
        ]
        indexes = [
            models.Index("ends_at", name="membership_ends", condition=models.Q(ends_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.namespace}"


class GroupMapping(models.Model):
    """An admin's rule: who is in this directory group has this role in that namespace, or this one for the whole site."""

    group = models.CharField(
        max_length=300, help_text=_("Its name or DN; with * a pattern, such as ml-*: each group gets its own project.")
    )
    namespace = models.ForeignKey(
        Namespace, null=True, blank=True, on_delete=models.CASCADE, related_name="group_mappings"
    )
    role = models.CharField(max_length=10, blank=True, choices=[(role.value, role.value) for role in Role])
    site_role = models.CharField(
        max_length=10,
        blank=True,
        default="",
        choices=[(role.value, role.value) for role in SiteRole if role],
        help_text=_("Instead of a role in a namespace."),
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("group", "pk")
        constraints = [
            models.UniqueConstraint(
                fields=("group", "namespace"), name="one_role_per_group_and_namespace", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=(~models.Q(role="") & models.Q(site_role=""))
                | (models.Q(role="", namespace=None) & ~models.Q(site_role="")),
                name="a_rule_gives_one_kind_of_role",
            ),
        ]

    def __str__(self) -> str:
        if self.site_role:
            return f"{self.group} -> {self.site_role} of the site"
        return f"{self.group} -> {self.namespace or self.group}: {self.role}"


class MembershipChange(models.Model):
    """What a sync did to somebody's rights; other apps read the rows that nobody has handled yet."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="membership_changes")
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="membership_changes")
    before = models.CharField(max_length=10, blank=True, help_text=_("The highest role then; empty for none."))
    after = models.CharField(max_length=10, blank=True, help_text=_("The highest role from then on; empty for none."))
    at = models.DateTimeField(auto_now_add=True)
    handled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index("id", name="membership_change_unhandled", condition=models.Q(handled_at=None)),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.namespace}: {self.before or '-'} -> {self.after or '-'}"


class DirectorySync(models.Model):
    """One pass over the directory: what it read, what it changed, and why it changed nothing if it did not."""

    started_at = models.DateTimeField(auto_now_add=True, db_index=True)
    seconds = models.FloatField(default=0)
    is_applied = models.BooleanField(default=False)
    people = models.PositiveIntegerField(default=0)
    grants = models.PositiveIntegerField(default=0, help_text=_("Roles the directory gives to people known here."))
    changes = models.JSONField(default=dict, help_text=_("How many of each kind."))
    shared_names = models.JSONField(default=list, help_text=_("Names that more than one group of the directory has."))
    problems = models.JSONField(default=list, help_text=_("Sentences for an admin."))

    class Meta:
        ordering = ("-started_at", "-pk")

    def __str__(self) -> str:
        return f"sync of {self.started_at:%Y-%m-%d %H:%M:%S}"


class ApiToken(AbstractAuthToken):
    """A personal token `th_…`: only its digest is kept."""

    SCOPES = (("read", _("read")), ("submit", _("read and submit")), ("admin", _("everything I may do")))
    name = models.CharField(max_length=100, blank=True, help_text=_("To tell your tokens apart."))
    scope = models.CharField(max_length=10, choices=SCOPES, default="read")
    namespace = models.ForeignKey(
        Namespace, null=True, blank=True, on_delete=models.CASCADE, help_text=_("The only one it works in; empty: all.")
    )
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.GenericIPAddressField(null=True, blank=True)
    revoked_at = models.DateTimeField(
        null=True, blank=True, help_text=_("Dead from then on; the row stays a moment, so that it can be undone.")
    )

    def __str__(self) -> str:
        return f"{self.token_key}… of {self.user}"


class LoginAttempt(models.Model):
    """A try to sign in that failed or is being checked; counted by the throttle, deleted soon after.

    Only the digest of the name is kept: people type passwords into the wrong field.
    """

    name_digest = models.CharField(max_length=64)
    address = models.CharField(max_length=45, blank=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        indexes = [
            models.Index("name_digest", "at", name="login_attempt_of_name"),
            models.Index("address", "at", name="login_attempt_from_address"),
        ]

    def __str__(self) -> str:
        return f"{self.name_digest[:8]}… from {self.address}"


class AuditEvent(models.Model):
    """Who did what to what, from where. Rows are never changed or deleted: a trigger of the database sees to it."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.CharField(max_length=150, help_text=_("The user name then; empty for the portal itself."))
    actor_subject = models.CharField(max_length=200, blank=True)
    action = models.CharField(max_length=60, help_text=_("noun.verb, such as job.submit."))
    target = models.CharField(max_length=200, blank=True)
    namespace = models.CharField(max_length=63, blank=True, db_index=True)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)
    via = models.CharField(max_length=20, blank=True, help_text=_("page, api, cli or system."))

    class Meta:
        ordering = ("-at", "-id")

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.target}"
