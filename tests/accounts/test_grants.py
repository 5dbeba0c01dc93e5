"""From groups to roles, without a directory: which rules match, circles, lookalikes, and what a broken directory looks like."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.directory import Entry, Everybody, Group
from accounts.grants import (
    Directory,
    Grant,
    Known,
    Plan,
    Rule,
    SiteGrant,
    gids_of,
    keep_an_admin,
    looks_broken,
    plan,
    project_key,
)
from accounts.roles import Role, SiteRole


def group(name: str, *members: str, unit: str = "groups", gid: int | None = None, names: tuple[str, ...] = ()) -> Group:
    return Group(f"cn={name},ou={unit}", name, frozenset(members), frozenset(names), gid)


def person(name: str, *, ended: bool = False) -> Entry:
    return Entry(f"ldap:{name}", f"uid={name}", name, name, "", 1, 100, ended)


def everybody(*groups: Group, people: tuple[Entry, ...] = (person("alice"),)) -> Everybody:
    return Everybody({one.subject: one for one in people}, {one.dn: one for one in groups}, [])


def known(name: str = "alice", **roles: Role) -> Known:
    return Known(1, f"ldap:{name}", {(slug, f"ldap:{slug}"): role for slug, role in roles.items()})


MEMBER = Rule("vision", "vision", Role.MEMBER)


def test_a_rule_gives_its_role_and_says_through_which_group() -> None:
    found = plan(everybody(group("vision", "uid=alice")), [MEMBER], [known()], {})
    assert found.added == [(known(), Grant("vision", "", Role.MEMBER, "ldap:vision"), "vision")]
    assert not found.problems and found.grants == 1


def test_a_rule_by_dn_does_not_take_a_group_of_the_same_name_elsewhere() -> None:
    there = everybody(group("vision", "uid=alice", unit="students"), group("vision"))
    assert not plan(there, [Rule("cn=vision,ou=groups", "vision", Role.LEAD)], [known()], {}).added


def test_two_groups_of_one_name_give_nothing_and_are_said() -> None:
    there = everybody(group("vision", "uid=alice", unit="students"), group("vision"))
    found = plan(there, [MEMBER], [known(vision=Role.MEMBER)], {})
    assert [problem.kind for problem in found.problems] == ["ambiguous"]
    assert [place for _known, *place in found.removed] == [["vision", "ldap:vision", Role.MEMBER]]


def test_names_of_groups_match_in_any_case_and_width() -> None:
    assert plan(everybody(group("Ｖision", "uid=alice")), [Rule("VISION", "vision", Role.VIEWER)], [known()], {}).added


def test_a_pattern_gives_each_group_a_project_of_its_own_which_is_found_again() -> None:
    there = everybody(group("ml-a", "uid=alice"), group("ml-b", "uid=alice"), group("vision", "uid=alice"))
    rule = Rule("ml-*", None, Role.MEMBER)
    found = plan(there, [rule], [known()], {"cn=ml-b,ou=groups": "ml-b"})
    assert [(grant.made_for, slug) for _known, grant, slug in found.added] == [
        ("cn=ml-a,ou=groups", ""),
        ("cn=ml-b,ou=groups", "ml-b"),
    ]


def test_the_highest_of_two_rules_for_one_group_counts() -> None:
    rules = [MEMBER, Rule("vis*on", "vision", Role.LEAD)]
    found = plan(everybody(group("vision", "uid=alice")), rules, [known(vision=Role.MEMBER)], {})
    assert found.changed == [(known(vision=Role.MEMBER), "vision", "ldap:vision", Role.LEAD)]


def test_who_is_gone_or_has_ended_loses_every_role_of_the_directory() -> None:
    for there in (everybody(people=()), everybody(people=(person("alice", ended=True),))):
        found = plan(there, [MEMBER], [known(vision=Role.MEMBER)], {})
        assert found.gone == [known(vision=Role.MEMBER)] and len(found.removed) == 1


def test_posix_groups_count_by_name_and_by_primary_group() -> None:
    directory = Directory(
        [group("storage", gid=7, names=("alice",)), group("twin", gid=8, names=("Alice",)), group("users", gid=100)], []
    )
    groups = [directory.groups[dn] for dn in directory.groups_of(person("alice"))]
    assert sorted(one.name for one in groups) == ["storage", "users"]
    assert gids_of(groups, person("alice")) == [7]  # the primary one is no supplementary one


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.sets(st.integers(0, 9)))
@settings(deadline=None)
def test_groups_in_groups_are_what_a_walk_reaches_also_in_circles(
    edges: list[tuple[int, int]], direct: set[int]
) -> None:
    """(outer, inner): each inner group is a member of the outer one."""
    groups = [
        group(
            f"g{number}",
            *(["uid=alice"] if number in direct else []),
            *(f"cn=g{inner},ou=groups" for outer, inner in edges if outer == number),
        )
        for number in range(10)
    ]
    reached = set(direct)
    while more := {outer for outer, inner in edges if inner in reached} - reached:
        reached |= more
    assert Directory(groups, []).groups_of(person("alice")) == {f"cn=g{number},ou=groups" for number in reached}


def test_a_broken_directory_is_told_from_a_small_lab() -> None:
    assert looks_broken(people=3, people_before=5, removed=3, had=4) is None
    lost = looks_broken(people=70, people_before=100, removed=0, had=0)
    assert lost is not None and (lost.kind, lost.values) == ("people_lost", {"lost": 30, "before": 100})
    roles = looks_broken(people=100, people_before=100, removed=40, had=100)
    assert roles is not None and roles.kind == "roles_lost"
    assert looks_broken(people=100, people_before=100, removed=20, had=100) is None


def test_a_dn_is_found_as_people_write_it_and_a_star_in_one_is_no_pattern() -> None:
    there = everybody(group("vision-leads", "uid=alice"), group("a*b", "uid=alice"))
    for written in ("CN=vision-leads, OU=groups", "cn = vision-leads , ou = groups", "cn=a*b,ou=groups"):
        assert len(plan(there, [Rule(written, "vision", Role.LEAD)], [known()], {}).added) == 1, written


def test_the_key_of_a_project_fits_its_column_and_is_told_apart() -> None:
    long = [f"cn={'x' * 600}{end},ou=groups" for end in "ab"]
    assert len({project_key(dn) for dn in long}) == 2 and all(len(project_key(dn)) <= 500 for dn in long)
    assert project_key("cn=ml-a,ou=groups") == "cn=ml-a,ou=groups"


def site_rule(group: str, role: SiteRole) -> Rule:
    return Rule(group, None, None, role)


def holder(role: SiteRole = SiteRole.NONE, source: str = "", **more: Any) -> Known:
    return Known(1, "ldap:alice", {}, name="alice", site=SiteGrant(role, source) if role else SiteGrant(), **more)


ADMINS = site_rule("vision", SiteRole.ADMIN)
AUDITORS = site_rule("vision", SiteRole.AUDITOR)
IN_IT = everybody(group("vision", "uid=alice"))


def test_a_rule_for_the_site_gives_its_role_and_no_namespace() -> None:
    found = plan(IN_IT, [AUDITORS], [holder()], {})
    assert found.site == [(holder(), SiteGrant(SiteRole.AUDITOR, "ldap:vision"))] and not found.added
    assert not plan(IN_IT, [AUDITORS], [holder(SiteRole.AUDITOR, "ldap:vision")], {}).site


def test_the_highest_of_two_groups_counts_and_a_second_of_the_same_role_is_no_news() -> None:
    there = everybody(group("vision", "uid=alice"), group("ops", "uid=alice"))
    rules = [AUDITORS, site_rule("ops", SiteRole.ADMIN)]
    assert plan(there, rules, [holder()], {}).site == [(holder(), SiteGrant(SiteRole.ADMIN, "ldap:ops"))]
    has = holder(SiteRole.AUDITOR, "ldap:vision")
    assert not plan(there, [AUDITORS, site_rule("ops", SiteRole.AUDITOR)], [has], {}).site


def test_who_leaves_the_group_or_is_gone_loses_it_and_what_is_by_hand_stays() -> None:
    has = holder(SiteRole.ADMIN, "ldap:vision")
    for there in (everybody(group("vision")), everybody(people=()), everybody(people=(person("alice", ended=True),))):
        assert plan(there, [ADMINS], [has], {}).site == [(has, SiteGrant())]
        assert not plan(there, [ADMINS], [holder(SiteRole.ADMIN, "manual")], {}).site
    assert plan(IN_IT, [], [has], {}).site_lost == 1


def test_less_by_hand_than_by_group_is_told_and_not_touched() -> None:
    found = plan(IN_IT, [ADMINS], [holder(SiteRole.AUDITOR, "manual")], {})
    assert not found.site and [problem.kind for problem in found.problems] == ["site_role_by_hand"]
    assert not plan(IN_IT, [AUDITORS], [holder(SiteRole.ADMIN, "manual")], {}).problems


def test_two_groups_of_one_name_give_no_role_for_the_site() -> None:
    there = everybody(group("vision", "uid=alice", unit="students"), group("vision"))
    assert not plan(there, [ADMINS], [holder()], {}).site


def test_the_last_admin_stays_and_is_told() -> None:
    last, other = holder(SiteRole.ADMIN, "ldap:vision"), Known(2, "ldap:bob", {}, name="bob")

    def after(
        *site: tuple[Known, SiteGrant], gone: tuple[Known, ...] = (), admins: tuple[Known, ...] = (last,)
    ) -> Plan:
        found = Plan(site=list(site), gone=list(gone))
        keep_an_admin(found, admins=admins, revived=[])
        return found

    loses = (last, SiteGrant())
    for kept in (after(loses), after(loses, gone=(last,)), after((last, SiteGrant(SiteRole.AUDITOR, "ldap:x")))):
        assert not kept.site and not kept.gone and kept.problems[0].values == {"names": "alice"}
    wins = (other, SiteGrant(SiteRole.ADMIN, "ldap:ops"))
    assert after(loses, wins).site == [loses, wins]
    assert after(loses, admins=(last, Known(3, "local:x", {}, site=SiteGrant(SiteRole.ADMIN, "manual")))).site == [
        loses
    ]
    assert after(loses, wins, gone=(other,)).problems  # who is gone does not count
    disabled = Known(2, "ldap:bob", {}, is_active=False, name="bob")
    assert after(loses, (disabled, wins[1])).site == [(disabled, wins[1])]
    assert after(loses, admins=()).site == [loses]  # there was none before
