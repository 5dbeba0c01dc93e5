"""Who may do what in a namespace on a cluster, and with which numbers: read from our rows, as one Tenancy (KUBERNETES 3.1).

Bindings say what pages say: everybody's highest role in force, admins and auditors of the site everywhere, nobody who is
disabled. People are bound by name, so who leaves is out with the next write, whatever an old token of theirs claims.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Count

from accounts.grants import SOURCE
from accounts.models import DirectorySync, Membership, Namespace, User
from accounts.roles import RANK, Role, SiteRole
from jobs.cluster import tenancy
from jobs.cluster.kubernetes.setting import KubernetesSetting, Users
from jobs.cluster.port import Manifest, Person
from jobs.cluster.registry import internal_url
from jobs.cluster.tenancy import FIRST_PROJECT_UID, FIRST_UID, MOST_GROUPS, Runner, Tenancy

OF_SITE = {SiteRole.ADMIN: Role.MEMBER, SiteRole.AUDITOR: Role.VIEWER}  # what they may do everywhere
LONGEST_SOURCE = Membership._meta.get_field("source").max_length  # a group's name that fills it may have been cut
UNCLEAR = "unclear"  # the source of who shares the directory's name with another account


@dataclass(frozen=True, slots=True)
class Rights:
    """What decides about every namespace, read once for a pass: three queries and two."""

    rows: Mapping[int, list[Membership]]  # in force and of active people, by namespace
    site: tuple[User, ...]
    unclear: frozenset[str]  # names in the directory that several accounts go by
    closed_groups: frozenset[str]  # that stand for others than those who have the role here

    @classmethod
    def now(cls, namespace: Namespace | None = None) -> Rights:
        found = Membership.objects.filter(user__is_active=True).select_related("user").order_by("pk")
        rows = defaultdict(list)
        for row in found if namespace is None else found.filter(namespace=namespace):
            rows[row.namespace_id].append(row)
        site = User.objects.filter(is_active=True, site_role__in=list(OF_SITE)).order_by("pk")
        return cls(rows, tuple(site), frozenset(_shared_names()), frozenset(_closed_groups()))

    def roles_in(self, namespace: Namespace) -> dict[User, Role]:
        """The highest of each person, in a lasting order."""
        found: dict[User, Role] = {}
        given = [(row.user, Role(row.role)) for row in self.rows.get(namespace.pk, ())]
        for person, role in [*given, *((one, OF_SITE[SiteRole(one.site_role)]) for one in self.site)]:
            if person not in found or RANK[role] > RANK[found[person]]:
                found[person] = role
        return found

    def groups_in(self, namespace: Namespace) -> dict[str, Role]:
        """Groups of the directory that give a role here; who is in one may look with kubectl before the first sign-in."""
        found: dict[str, Role] = {}
        for row in self.rows.get(namespace.pk, ()):
            name, role = row.source.removeprefix(SOURCE), Role(row.role)
            if row.source == name or name in self.closed_groups or len(row.source) == LONGEST_SOURCE:
                continue
            if name not in found or RANK[role] > RANK[found[name]]:
                found[name] = role
        return found

    def person(self, user: User) -> Person:
        name = user.directory_name
        if user.source != "ldap" or not name:
            return Person(username=user.username, groups=tuple(user.directory_groups), source=user.source)
        if name in self.unclear:
            return Person(username=user.username, groups=tuple(user.directory_groups), source=UNCLEAR)
        return Person(username=name, groups=tuple(user.directory_groups), source=user.source)


def _shared_names() -> Iterable[str]:
    """Names that the directory gave to somebody new while the old account still counts: they are nobody's for a moment."""
    known = User.objects.filter(is_active=True).exclude(directory_name="").values("directory_name")
    return known.annotate(people=Count("pk")).filter(people__gt=1).values_list("directory_name", flat=True)


def _closed_groups() -> Iterable[str]:
    """Names that more than one group has, and groups of people whom an admin has shut out."""
    last = DirectorySync.objects.filter(is_applied=True).first()
    shared = last.shared_names if last else []
    shut = User.objects.filter(is_active=False, disabled_by="admin").values_list("directory_groups", flat=True)
    return [*shared, *(name for names in shut for name in names)]


def person_of(user: User) -> Person:
    """As the cluster knows them. A name that several accounts go by is nobody's: see Rights."""
    return Rights(rows={}, site=(), unclear=frozenset(_shared_names()), closed_groups=frozenset()).person(user)


def numbers_of(user: User) -> tuple[int, tuple[int, ...]]:
    """The uid and the gids, one's own first, that this person's processes have, whoever else works in the namespace.

    Those of the directory; one that it does not give, and 0, is replaced by a number that no one else ever has.
    """
    own = FIRST_UID + user.pk
    uid = user.uid_number if user.uid_number is not None and _is_usable(user.uid_number) else own
    gid = user.gid_number if user.gid_number is not None and _is_usable(user.gid_number) else own
    others = [one for one in user.supplementary_gids if _is_usable(one) and one != gid]
    return uid, (gid, *others[: MOST_GROUPS - 1])


def _is_usable(number: int) -> bool:
    return 0 < number < FIRST_UID


def objects_of(namespace: Namespace, setting: KubernetesSetting | None, rights: Rights | None = None) -> list[Manifest]:
    """All that belongs into the namespace on that cluster."""
    return tenancy.render(tenancy_of(namespace, setting, rights or Rights.now(namespace)))


def tenancy_of(namespace: Namespace, setting: KubernetesSetting | None, rights: Rights) -> Tenancy:
    users = setting.users if setting is not None else Users()
    owner = namespace.owner
    is_archived = owner is not None and not owner.is_active
    roles = {} if is_archived else rights.roles_in(namespace)
    groups = {} if is_archived else rights.groups_in(namespace)
    names = {person: users.name(rights.person(person)) for person in roles}
    may_run = [person for person, role in roles.items() if RANK[role] >= RANK[Role.MEMBER]]
    address, port = _portal(internal_url(setting.name if setting is not None else ""))
    own = FIRST_PROJECT_UID + namespace.pk
    uid, gids = numbers_of(owner) if owner else (own, (own,))
    return Tenancy(
        name=namespace.kubernetes_name,
        instance=settings.TRAINHALL_INSTANCE,
        kind=namespace.kind,
        subject=owner.subject if owner else f"project:{namespace.slug}",
        default=Runner("", uid, gids),
        runners=tuple(Runner(names[person], *numbers_of(person)) for person in may_run),
        viewers=tuple(sorted(names.values())),
        members=tuple(sorted(names[person] for person in may_run)),
        viewer_groups=_subjects(users, groups),
        member_groups=_subjects(users, [name for name, role in groups.items() if RANK[role] >= RANK[Role.MEMBER]]),
        is_archived=is_archived,
        gpu_limit=namespace.gpu_limit,
        cpu_limit_millis=namespace.cpu_limit_millis,
        memory_limit_bytes=namespace.memory_limit_bytes,
        portal_port=port,
        portal_address=address,
        runs_class=setting.runs_class if setting is not None else "",
        storage=setting.storage if setting is not None else (),
    )


def _subjects(users: Users, groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(users.group_names(groups)))


def _portal(url: str) -> tuple[str, int]:
    """The address, where it is one and not a name, and the port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        host = ""
    return host, parts.port or (443 if parts.scheme == "https" else 80)
