"""From directory groups to roles: which rules match, through groups in groups, and what a pass would change (pure)."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from accounts.directory import Entry, Everybody, Group
from accounts.roles import RANK, SITE_RANK, Role, SiteRole

SOURCE = "ldap:"
MOST_LOST = 0.2  # a pass that takes more than this away is taken for a broken directory, not for a busy admin
LONGEST_KEY = 500  # characters of Namespace.made_for
FEW = 10  # so many may always go: in a small lab one person is a large part


@dataclass(frozen=True, slots=True)
class Rule:
    """`namespace` is a slug; None means that every group the pattern matches has a project of its own.

    With a `site_role` it is about no namespace, and gives that for the whole site.
    """

    group: str
    namespace: str | None
    role: Role | None
    site_role: SiteRole = SiteRole.NONE

    @property
    def is_pattern(self) -> bool:
        return "*" in self.group and "=" not in self.group  # a DN may hold one as it is


@dataclass(frozen=True, slots=True)
class Grant:
    """A role in a namespace. `made_for` is the DN of the group whose own project it is, else `namespace` is the slug."""

    namespace: str
    made_for: str
    role: Role
    source: str


@dataclass(frozen=True, slots=True)
class SiteGrant:
    """A role for the site, through a group; NONE takes away what one gave."""

    role: SiteRole = SiteRole.NONE
    source: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """Somebody who has an account here, and the roles the directory gave so far, by namespace and source.

    `site` is the role for the site, whoever gave it: what is by hand is left alone.
    """

    pk: int
    subject: str
    roles: Mapping[tuple[str, str], Role]
    is_active: bool = True
    name: str = ""
    site: SiteGrant = SiteGrant()

    @property
    def has_site_role_by_hand(self) -> bool:
        return bool(self.site.role) and not self.site.source.startswith(SOURCE)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something an admin must know; `accounts.sync` has the sentence of each kind."""

    kind: str
    values: Mapping[str, object]


@dataclass(slots=True)
class Plan:
    """What a pass would do. The slug of what is added is empty where a rule's project is made first."""

    added: list[tuple[Known, Grant, str]] = field(default_factory=list)
    removed: list[tuple[Known, str, str, Role]] = field(default_factory=list)
    changed: list[tuple[Known, str, str, Role]] = field(default_factory=list)
    gone: list[Known] = field(default_factory=list)
    site: list[tuple[Known, SiteGrant]] = field(default_factory=list)
    groups: dict[int, list[str]] = field(default_factory=dict)  # of each person, by primary key
    problems: list[Problem] = field(default_factory=list)
    grants: int = 0

    @property
    def site_lost(self) -> int:
        return sum(SITE_RANK[grant.role] < SITE_RANK[known.site.role] for known, grant in self.site)


def fold(text: str) -> str:
    """What a group's name and a rule have in common whatever the case and width they are written in.

    Not `casefold`: for that ß is ss, and for a directory they are two names, so that a sign-in would hear of one of them only.
    """
    return unicodedata.normalize("NFKC", text).lower().strip()


def fold_dn(dn: str) -> str:
    """A DN as a person writes it, blanks after commas and around `=` included, beside one of the directory."""
    return re.sub(r"(?<!\\)\s*([,=+])\s*", r"\1", fold(dn))


def project_key(dn: str) -> str:
    """What a project that was made for a group is found by: its DN, or a digest where that is longer than the column."""
    return dn if len(dn) <= LONGEST_KEY else f"sha256:{hashlib.sha256(dn.encode()).hexdigest()}"


class Directory:
    """Groups with what they are in. Made once for a pass, asked for each person."""

    def __init__(self, groups: Iterable[Group], rules: Iterable[Rule]) -> None:
        self.groups = {group.dn: group for group in groups}
        self._above: dict[str, list[str]] = defaultdict(list)  # of a DN, the groups that list it
        self._by_name: dict[str, list[str]] = defaultdict(list)  # of a user name, the posix groups that list it
        self._by_gid: dict[int, list[str]] = defaultdict(list)
        for group in self.groups.values():
            for member in group.members:
                self._above[member].append(group.dn)
            for name in group.member_names:
                self._by_name[name].append(group.dn)  # exactly so, as `memberUid` is compared (RFC 2307)
            if group.gid_number is not None:
                self._by_gid[group.gid_number].append(group.dn)
        self._grants: dict[str, list[Grant]] = defaultdict(list)
        self._site_grants: dict[str, list[SiteGrant]] = defaultdict(list)
        self.problems: list[Problem] = []
        for rule in rules:
            self._apply(rule)

    def _apply(self, rule: Rule) -> None:
        wanted = fold(rule.group)
        if "=" in wanted:
            matched = [dn for dn in self.groups if fold_dn(dn) == fold_dn(rule.group)]
        elif rule.is_pattern:
            matched = [dn for dn, group in self.groups.items() if fnmatchcase(fold(group.name), wanted)]
        else:
            matched = [dn for dn, group in self.groups.items() if _is_called(group, rule.group, wanted)]
            if len(matched) > 1:
                # whoever may make a group somewhere else could give themselves a role
                where = "; ".join(sorted(matched))
                self.problems.append(Problem("ambiguous", {"group": rule.group, "where": where}))
                return
        if not matched:
            self.problems.append(Problem("no_group", {"group": rule.group}))
        for dn in matched:
            source = f"{SOURCE}{self.groups[dn].name}"[:300]
            if rule.site_role:
                self._site_grants[dn].append(SiteGrant(rule.site_role, source))
            if rule.role is None:
                continue
            made_for = project_key(dn) if rule.namespace is None else ""
            self._grants[dn].append(Grant(rule.namespace or self.groups[dn].name, made_for, rule.role, source))

    def groups_of(self, person: Entry) -> set[str]:
        """The DNs of all groups somebody is in, directly or through other groups; circles end."""
        fresh = {*self._above[person.dn], *self._by_name[person.username]}
        if person.gid_number is not None:
            fresh.update(self._by_gid[person.gid_number])
        found: set[str] = set()
        while fresh:
            found |= fresh
            fresh = {above for dn in fresh for above in self._above[dn]} - found
        return found

    def grants_of(self, groups: Iterable[str]) -> list[Grant]:
        return [grant for dn in sorted(groups) for grant in self._grants.get(dn, [])]

    def site_grants_of(self, groups: Iterable[str]) -> list[SiteGrant]:
        """The highest first."""
        found = [grant for dn in sorted(groups) for grant in self._site_grants.get(dn, [])]
        return sorted(found, key=lambda grant: -SITE_RANK[grant.role])


def _is_called(group: Group, name: str, folded: str) -> bool:
    """Where nobody could see two groups of almost one name, only the name itself is meant: a lookalike would give the role."""
    if group.is_hearsay:
        return group.name == unicodedata.normalize("NFC", name).strip()
    return fold(group.name) == folded


def shared_names(groups: Collection[Group]) -> set[str]:
    """Names that more than one group has: who is in one of them is not in the other."""
    counted = Counter(fold(group.name) for group in groups)
    return {group.name for group in groups if counted[fold(group.name)] > 1}


def gids_of(groups: Iterable[Group], person: Entry) -> list[int]:
    """Supplementary group ids, without the person's own."""
    return sorted({group.gid_number for group in groups if group.gid_number is not None} - {person.gid_number})


def plan(everybody: Everybody, rules: Iterable[Rule], known: Iterable[Known], projects: Mapping[str, str]) -> Plan:
    """Compare what the directory gives with what people have. `projects` is the slug of the project made for a group."""
    directory = Directory(everybody.groups.values(), rules)
    unusable = [Problem("unusable", {"words": words}) for words in everybody.unusable]
    found = Plan(problems=[*directory.problems, *unusable])
    for person in known:
        entry = everybody.people.get(person.subject)
        if entry is None or entry.has_ended:
            if person.is_active:
                found.gone.append(person)
            found.removed += [(person, slug, source, role) for (slug, source), role in sorted(person.roles.items())]
            _compare_site(found, person, [])
            continue
        groups = directory.groups_of(entry)
        found.groups[person.pk] = sorted(directory.groups[dn].name for dn in groups)
        wanted = directory.grants_of(groups)
        found.grants += len(wanted)
        _compare(found, person, wanted, projects)
        _compare_site(found, person, directory.site_grants_of(groups))
    return found


def _compare(found: Plan, person: Known, wanted: list[Grant], projects: Mapping[str, str]) -> None:
    # one group gives one role in a namespace, the highest of its rules: by a pattern's project or by its slug
    best: dict[tuple[str, str], tuple[str, Grant]] = {}
    for grant in wanted:
        slug = projects.get(grant.made_for, "") if grant.made_for else grant.namespace
        key = (slug or grant.made_for, grant.source)
        if key not in best or RANK[grant.role] > RANK[best[key][1].role]:
            best[key] = slug, grant
    kept = set()
    for slug, grant in best.values():
        kept.add((slug, grant.source))
        had = person.roles.get((slug, grant.source))
        if had is None:
            found.added.append((person, grant, slug))
        elif had != grant.role:
            found.changed.append((person, slug, grant.source, grant.role))
    found.removed += [(person, *place, role) for place, role in sorted(person.roles.items()) if place not in kept]


def _compare_site(found: Plan, person: Known, wanted: list[SiteGrant]) -> None:
    best = next(iter(wanted), SiteGrant())
    found.grants += len(wanted)
    if person.has_site_role_by_hand:
        if SITE_RANK[best.role] > SITE_RANK[person.site.role]:
            about = {
                "name": person.name,
                "by_hand": str(person.site.role),
                "role": str(best.role),
                "source": best.source,
            }
            found.problems.append(Problem("site_role_by_hand", about))
        return
    if person.site in [grant for grant in wanted if grant.role == best.role]:
        return  # another group of the same role is no news
    if best.role or person.site.role:
        found.site.append((person, best))


def keep_an_admin(found: Plan, *, admins: Iterable[Known], revived: Iterable[Known]) -> None:
    """Drop from the plan what would leave the site without an active admin, and say so.

    `admins` are all who are admins and active now, `revived` those whose accounts the pass brings back.
    """
    now = {one.pk: one for one in admins}
    after = {one.pk for one in (*now.values(), *revived) if one.site.role == SiteRole.ADMIN}
    alive = {one.pk for one in revived}
    for known, grant in found.site:
        if grant.role != SiteRole.ADMIN:
            after.discard(known.pk)
        elif known.is_active or known.pk in alive:
            after.add(known.pk)
    after -= {known.pk for known in found.gone}
    if not now or after:
        return
    found.site = [(known, grant) for known, grant in found.site if known.pk not in now]
    found.gone = [known for known in found.gone if known.pk not in now]
    names = ", ".join(sorted(one.name for one in now.values())[:10])
    found.problems.append(Problem("last_admin", {"names": names}))


def looks_broken(
    *, people: int, people_before: int, removed: int, had: int, gone: int = 0, active: int = 0
) -> Problem | None:
    """Why a pass must not be applied unasked: a broken directory must not take everybody's rights."""
    for kind, lost, before in (
        ("people_lost", people_before - people, people_before),
        ("accounts_lost", gone, active),
        ("roles_lost", removed, had),
    ):
        if lost > FEW and lost > MOST_LOST * before:
            return Problem(kind, {"lost": lost, "before": before})
    return None


def counted(found: Plan) -> dict[str, int]:
    """How many of each kind, for the record of the pass."""
    return {kind: len(getattr(found, kind)) for kind in ("added", "removed", "changed", "gone", "site")}
