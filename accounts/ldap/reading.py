"""What the directory says without anybody's password: one person's groups, one name, and everybody at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from accounts.deadline import Deadline
from accounts.directory import (
    GROUP_ATTRIBUTES,
    MEMBER_ATTRIBUTES,
    PERSON_ATTRIBUTES,
    Entry,
    EntryUnusable,
    Everybody,
    Group,
    Search,
    read_group,
    read_person,
)
from accounts.ldap.connection import (
    FOR_EVERYBODY,
    PATIENCE_OF_A_PAGE,
    WHILE_SOMEBODY_WAITS,
    DirectoryAway,
    asking,
    connected,
    equals,
    normal,
    paged,
    the_directory,
)

DEEPEST = 20  # levels of groups in groups
MOST_TERMS = 200  # of one filter


def groups_of(connection: Any, entry: Entry) -> list[Group]:
    """The groups of one person, through groups in groups, and those called like one of them: one search for each level."""
    search = the_directory().groups
    if search is None:
        return []
    found: dict[str, Group] = {}
    terms = [equals(attribute, entry.dn) for attribute in MEMBER_ATTRIBUTES] + [equals("memberUid", entry.username)]
    if entry.gid_number is not None:
        terms.append(equals("gidNumber", str(entry.gid_number)))
    for _level in range(DEEPEST):
        level: dict[str, Group] = {}
        for start in range(0, len(terms), MOST_TERMS):
            wanted = f"(&{search.filter}(|{''.join(terms[start : start + MOST_TERMS])}))"
            for dn, attributes in paged(connection, search, wanted, GROUP_ATTRIBUTES):
                group = _group(dn, attributes, search)
                level[group.dn] = group
        fresh = [dn for dn in level if dn not in found]
        found |= level
        if not fresh:
            break
        terms = [equals(attribute, dn) for dn in fresh for attribute in MEMBER_ATTRIBUTES]
    return [*found.values(), *_namesakes(connection, search, found)]


def _namesakes(connection: Any, search: Search, found: Mapping[str, Group]) -> list[Group]:
    """Other groups of the same names, without members: a rule that names two groups gives nothing, whichever one is in."""
    names = {group.name for group in found.values()}
    terms = [equals(attribute, name) for name in sorted(names) for attribute in {search.attribute, "cn"}]
    others: dict[str, Group] = {}
    for start in range(0, len(terms), MOST_TERMS):
        wanted = f"(&{search.filter}(|{''.join(terms[start : start + MOST_TERMS])}))"
        for dn, attributes in paged(connection, search, wanted, ["cn"]):
            group = _group(dn, attributes, search)
            if group.dn not in found:
                others[group.dn] = group
    return list(others.values())


def look_up(username: str) -> tuple[Entry, list[Group]] | None:
    """The entry behind a name that somebody would type, and its groups; None if there is none, or more than one."""
    directory, deadline = the_directory(), Deadline(WHILE_SOMEBODY_WAITS)
    search = directory.people
    wanted = f"(&{search.filter}{equals(search.attribute, username)})"
    with asking(deadline), connected(directory, deadline, patience=directory.patience) as connection:
        rows = list(paged(connection, search, wanted, PERSON_ATTRIBUTES))
        if len(rows) != 1:
            return None
        dn, attributes = rows[0]
        try:
            entry = read_person(normal(dn), attributes, name=search.attribute, now=timezone.now())
        except EntryUnusable as error:
            raise DirectoryAway(str(error)) from error
        return entry, groups_of(connection, entry)


def read_everybody() -> Everybody:
    """All people and groups, whole: what asks only for changes never sees an entry that is gone. Raise DirectoryAway."""
    directory, deadline = the_directory(), Deadline(FOR_EVERYBODY)
    found: dict[str, Entry] = {}
    groups: dict[str, Group] = {}
    unusable: list[str] = []
    with asking(deadline), connected(directory, deadline, patience=PATIENCE_OF_A_PAGE) as connection:
        now, name = timezone.now(), directory.people.attribute
        for dn, attributes in paged(connection, directory.people, directory.people.filter, PERSON_ATTRIBUTES):
            try:
                entry = read_person(normal(dn), attributes, name=name, now=now)
            except EntryUnusable as error:
                unusable.append(str(error))
            else:
                found[entry.subject] = entry
        if directory.groups is not None:
            for dn, attributes in paged(connection, directory.groups, directory.groups.filter, GROUP_ATTRIBUTES):
                group = _group(dn, attributes, directory.groups)
                groups[group.dn] = group
    return Everybody(people=found, groups=groups, unusable=unusable, asked_at=now)


def _group(dn: str, attributes: Mapping[str, list[str | bytes]], search: Search) -> Group:
    members = (
        normal(value if isinstance(value, str) else value.decode("utf-8", "replace"))
        for name in MEMBER_ATTRIBUTES
        for value in attributes.get(name, [])
    )
    return read_group(normal(dn), attributes, members, name=search.attribute)
