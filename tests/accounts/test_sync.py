"""A whole pass over a real directory: what it brings in line, what it leaves alone, and when it refuses to believe."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts import grants, people, sync
from accounts.directory import Entry, Everybody, Group
from accounts.models import (
    AuditEvent,
    DirectorySync,
    GroupMapping,
    Membership,
    MembershipChange,
    Namespace,
    User,
)
from accounts.problems import sentence
from accounts.roles import SiteRole
from portal.embedded.demo_people import EVERYBODY, GROUPS, PEOPLE, hashed
from portal.embedded.slapd import Slapd
from tests.accounts.test_ldap import rules, sign_in  # noqa: F401 # a fixture
from tests.directory import SECRET, as_admin, changed

pytestmark = pytest.mark.django_db


def read_everybody() -> Everybody:
    from accounts.ldap import reading  # an extra, without which most of these tests are skipped

    return reading.read_everybody()


def roles() -> set[tuple[str, str, str]]:
    rows = Membership.objects.filter(source__startswith="ldap:")
    return set(rows.values_list("user__username", "namespace__slug", "role"))


@pytest.fixture
def lab(rules: Namespace, directory: Slapd) -> Namespace:  # noqa: F811
    for uid in ("alice", "bob", "carol", "erin"):
        assert sign_in(uid).status_code == 302
    return rules


def test_the_whole_directory_is_read_page_by_page_past_its_limit(directory: Slapd) -> None:
    found = read_everybody()
    assert (len(found.people), len(found.groups), found.unusable) == (EVERYBODY, 40, [])


def test_a_pass_changes_nothing_where_all_is_in_line(lab: Namespace) -> None:
    before = roles()
    outcome = sync.run(read_everybody())
    assert outcome.is_applied and roles() == before and not outcome.problems
    assert DirectorySync.objects.get().changes == {"added": 0, "removed": 0, "changed": 0, "gone": 0, "site": 0}


def test_who_left_a_group_loses_the_role_and_leaves_a_change_for_the_jobs(lab: Namespace, directory: Slapd) -> None:
    MembershipChange.objects.all().delete()
    alice = User.objects.get(username="alice")
    with changed(directory, f"cn=vision,{GROUPS}", "member", f"uid=alice,{PEOPLE}", add=False):
        dry = sync.run(read_everybody(), is_dry=True)
        assert len(dry.plan.removed) == 1 and ("alice", "vision", "member") in roles()
        sync.run(read_everybody())
    assert ("alice", "vision", "member") not in roles()
    change = MembershipChange.objects.get()
    assert (change.user, change.namespace, change.before, change.after) == (alice, lab, "member", "")
    told = AuditEvent.objects.get(action="membership.delete")
    assert (told.target, told.namespace, told.before) == (
        "alice",
        "vision",
        {"role": "member", "source": "ldap:vision"},
    )
    sync.run(read_everybody())
    assert ("alice", "vision", "member") in roles()


def test_a_role_by_hand_stays_and_a_change_of_rule_changes_the_role(lab: Namespace) -> None:
    bob = User.objects.get(username="bob")
    Membership.objects.create(user=bob, namespace=lab, role="viewer", source="manual")
    GroupMapping.objects.filter(group="vision").update(role="lead")
    sync.run(read_everybody())
    assert ("bob", "vision", "lead") in roles()
    GroupMapping.objects.all().delete()
    sync.run(read_everybody())
    assert roles() == set()
    assert bob.memberships.filter(namespace=lab).get().source == "manual"


def test_a_rule_for_the_project_that_a_pattern_made_raises_its_role_once(lab: Namespace) -> None:
    GroupMapping.objects.create(group="ml-kernels", namespace=Namespace.objects.get(slug="ml-kernels"), role="lead")
    changes = [len(sync.run(read_everybody()).plan.changed) for _time in range(3)]
    assert changes == [1, 0, 0] and ("erin", "ml-kernels", "lead") in roles()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cn=Ada+UID=7,dc=example", "CN=ada+uid=7,DC=example"),
        ("cn=M\u00fcller,dc=example", "cn=Mu\u0308ller,dc=example"),
        ("cn=Ada  B,dc=example", "cn=ada b, dc=example"),
        (r"cn=Doe\, J,dc=example", r"cn=doe\2c j,dc=example"),
    ],
)
def test_a_dn_is_the_same_entry_however_it_is_spelt(directory: Slapd, one: str, other: str) -> None:
    from accounts.ldap.connection import normal

    assert normal(one) == normal(other)


@pytest.mark.parametrize(
    "values",
    [
        {"objectClass": [b"groupOfNames", b"extensibleObject"], "member": PEOPLE.encode(), "gidNumber": b"10000"},
        {"objectClass": b"posixGroup", "memberUid": b"ALICE", "gidNumber": b"23000"},
    ],
)
def test_a_pass_and_a_sign_in_find_the_same_groups(lab: Namespace, directory: Slapd, values: dict[str, Any]) -> None:
    def groups() -> list[str]:
        found: list[str] = User.objects.get(username="alice").directory_groups
        return found

    dn = f"cn=either,{GROUPS}"
    with as_admin(directory) as admin:
        admin.add_s(dn, [("cn", b"either"), *values.items()])
    try:
        sync.run(read_everybody())
        of_the_pass = groups()
        sign_in("alice")
        assert of_the_pass == groups()
    finally:
        with as_admin(directory) as admin:
            admin.delete_s(dn)


def test_who_is_new_while_the_directory_is_read_is_not_taken_for_gone(lab: Namespace, directory: Slapd) -> None:
    before, dn = read_everybody(), f"uid=temp,{PEOPLE}"
    values = {"uid": b"temp", "cn": b"Temp", "sn": b"Temp", "userPassword": hashed(SECRET).encode()}
    with as_admin(directory) as admin:
        admin.add_s(dn, [("objectClass", b"inetOrgPerson"), *values.items()])
    try:
        assert sign_in("temp").status_code == 302
        sync.run(before)
        assert User.objects.get(username="temp").is_active
        with changed(directory, f"cn=vision,{GROUPS}", "member", f"uid=alice,{PEOPLE}", add=False):
            sign_in("alice")
            sync.run(before)
        assert ("alice", "vision", "member") not in roles()
    finally:
        with as_admin(directory) as admin:
            admin.delete_s(dn)


def test_a_fifth_of_the_accounts_is_too_much_to_end_also_where_the_directory_is_large(
    lab: Namespace, admin: User
) -> None:
    few = [entry for entry in read_everybody().people.values() if entry.username.startswith("person00")]
    for entry in few:
        people.from_directory(entry)
    GroupMapping.objects.all().delete()
    whole = read_everybody()
    sync.run(whole, by=admin)
    accounts = set(User.objects.filter(source="ldap").values_list("subject", flat=True))
    left = {subject: entry for subject, entry in whole.people.items() if subject not in accounts}
    less = Everybody(left | dict.fromkeys(map(str, range(30)), few[0]), whole.groups, [])
    assert [problem.kind for problem in sync.run(less).problems] == ["accounts_lost"]
    assert not User.objects.filter(source="ldap", is_active=False).exists()
    assert sync.run(less, by=admin).is_applied
    assert sync.run(less).plan.gone == []  # once


def test_whom_an_admin_disables_during_a_pass_stays_disabled(
    lab: Namespace, directory: Slapd, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = grants.plan

    def slowly(*told: Any) -> grants.Plan:
        found = compare(*told)
        User.objects.filter(username="bob").update(is_active=False, disabled_by="admin")
        return found

    monkeypatch.setattr(grants, "plan", slowly)
    with changed(directory, f"cn=storage,{GROUPS}", "memberUid", "bob", add=True):
        sync.run(read_everybody())
    bob = User.objects.get(username="bob")
    assert "storage" in bob.directory_groups
    assert (bob.is_active, bob.disabled_by) == (False, "admin")


def test_an_account_that_goes_on_after_all_is_in_the_trail(lab: Namespace, directory: Slapd) -> None:
    with changed(directory, f"uid=alice,{PEOPLE}", "shadowExpire", "15000", add=True):
        sync.run(read_everybody())
    assert not User.objects.get(username="alice").is_active
    sync.run(read_everybody())
    alice = User.objects.get(username="alice")
    assert (alice.is_active, alice.disabled_by) == (True, "")
    told = AuditEvent.objects.filter(target="alice", action__in=("user.disable", "user.enable")).order_by("pk")
    assert [row.action for row in told] == ["user.disable", "user.enable"]


def test_who_is_gone_cannot_come_in_and_keeps_their_jobs_and_name(lab: Namespace) -> None:
    everybody = read_everybody()
    alice = User.objects.get(username="alice")
    del everybody.people[alice.subject]
    outcome = sync.run(everybody)
    assert [one.pk for one in outcome.plan.gone] == [alice.pk]
    alice.refresh_from_db()
    assert (alice.is_active, alice.disabled_by) == (False, "directory")
    assert not alice.memberships.exclude(source="personal").exists()
    assert Namespace.objects.get(owner=alice).kubernetes_name == "u-alice"


def test_numbers_and_names_follow_the_directory(lab: Namespace, directory: Slapd) -> None:
    dn = f"uid=bob,{PEOPLE}"
    with (
        changed(directory, dn, "mail", "bob@example.org", add=True),
        changed(directory, f"cn=storage,{GROUPS}", "memberUid", "bob", add=True),
        changed(directory, dn, "mail", "person1@example.org", add=False),
    ):
        sync.run(read_everybody())
    bob = User.objects.get(username="bob")
    assert (bob.email, bob.supplementary_gids, bob.directory_groups) == (
        "bob@example.org",
        [20_000],
        ["storage", "users", "vision"],
    )


def test_a_directory_that_lost_a_fifth_of_its_people_is_not_believed_but_by_an_admin(
    lab: Namespace, admin: User
) -> None:
    whole = read_everybody()
    sync.run(whole)
    before = roles()
    half = Everybody(dict(list(whole.people.items())[100:]), whole.groups, [])
    outcome = sync.run(half)
    assert not outcome.is_applied and roles() == before
    assert [problem.kind for problem in outcome.problems] == ["people_lost"]
    row = sync.last_pass()
    assert row is not None and not row.is_applied
    assert "100 of 200 people would be gone" in sentence(*row.problems[0])
    assert sync.run(half, by=admin).is_applied
    assert User.objects.filter(source="ldap", is_active=False).count() == 4


def test_a_site_role_by_group_comes_and_goes_with_a_sign_in_too(lab: Namespace, admin: User, directory: Slapd) -> None:
    GroupMapping.objects.create(group="vision", site_role="auditor")
    assert sign_in("alice").status_code == 302
    alice = User.objects.get(username="alice")
    assert (alice.site_role, alice.site_role_source) == ("auditor", "ldap:vision")
    with changed(directory, f"cn=vision,{GROUPS}", "member", f"uid=alice,{PEOPLE}", add=False):
        sign_in("alice")
    alice.refresh_from_db()
    assert (alice.site_role, alice.site_role_source) == ("", "manual")
    told = AuditEvent.objects.filter(target="alice", action__startswith="site_role.").order_by("pk")
    assert [row.action for row in told] == ["site_role.create", "site_role.delete"]


def test_a_site_role_by_hand_is_not_touched(lab: Namespace, admin: User) -> None:
    User.objects.filter(username="carol").update(site_role="admin")
    GroupMapping.objects.create(group="vision-leads", site_role="auditor")
    sync.run(read_everybody())
    sign_in("carol")
    GroupMapping.objects.filter(site_role="auditor").delete()
    sync.run(read_everybody())
    carol = User.objects.get(username="carol")
    assert (carol.site_role, carol.site_role_source) == ("admin", "manual")


def test_the_last_active_admin_is_not_lost_by_a_pass_or_a_sign_in(
    lab: Namespace, admin: User, directory: Slapd
) -> None:
    GroupMapping.objects.create(group="vision-leads", site_role="admin")
    sync.run(read_everybody())
    User.objects.filter(pk=admin.pk).update(is_active=False)
    GroupMapping.objects.filter(site_role="admin").delete()
    outcome = sync.run(read_everybody(), by=admin)
    assert [problem.kind for problem in outcome.problems] == ["last_admin"] and outcome.is_applied
    row = sync.last_pass()
    assert row is not None and "carol stays one" in sentence(*row.problems[0])
    sign_in("carol")
    assert User.objects.get(username="carol").is_site_admin
    everybody = read_everybody()
    del everybody.people[User.objects.get(username="carol").subject]
    assert "last_admin" in [problem.kind for problem in sync.run(everybody).problems]
    with changed(directory, f"uid=carol,{PEOPLE}", "shadowExpire", "15000", add=True):
        assert sign_in("carol").status_code == 403
        assert User.objects.get(username="carol").is_active
    User.objects.filter(pk=admin.pk).update(is_active=True)
    sync.run(everybody)
    carol = User.objects.get(username="carol")
    assert (carol.is_active, carol.site_role) == (False, "")


def test_the_last_admin_may_go_where_the_same_pass_brings_another(lab: Namespace, admin: User) -> None:
    User.objects.filter(username="carol").update(site_role="admin")
    User.objects.filter(pk=admin.pk).update(is_active=False)
    GroupMapping.objects.create(group="vision", site_role="admin")
    everybody = read_everybody()
    del everybody.people[User.objects.get(username="carol").subject]
    assert not sync.run(everybody).problems
    assert not User.objects.get(username="carol").is_active
    assert User.objects.get(username="alice").is_site_admin


@pytest.mark.django_db(transaction=True)
def test_a_pass_waits_for_an_admin_who_disables_another() -> None:
    """As `disable_user` does it: the one is counted on by the pass that takes the role of the other."""
    by_hand = people.ensure_person("root", site_role=SiteRole.ADMIN)
    entry = Entry("ldap:1", "uid=alice", "alice", "Alice", "", 1, 1, False)
    of_group = people.from_directory(entry)
    User.objects.filter(pk=of_group.pk).update(site_role="admin", site_role_source="ldap:bosses")
    is_locked = threading.Event()

    def disable() -> None:
        try:
            with transaction.atomic():
                assert len(User.objects.filter(site_role="admin").order_by("pk").select_for_update()) == 2
                User.objects.filter(pk=by_hand.pk).update(is_active=False, disabled_by="admin")
                is_locked.set()
                assert waits_for_a_row()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other:
        done = other.submit(disable)
        assert is_locked.wait(10)
        outcome = sync.run(Everybody({entry.subject: entry}, {}, []))
        done.result()
    assert [problem.kind for problem in outcome.problems] == ["last_admin"]
    assert list(User.objects.filter(site_role="admin", is_active=True)) == [of_group]


def waits_for_a_row() -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
            if cursor.fetchone()[0]:
                return True
        time.sleep(0.02)
    return False


def test_site_roles_count_for_what_a_broken_directory_would_take(lab: Namespace, admin: User) -> None:
    people_of = User.objects.bulk_create(
        User(subject=f"ldap:a{n}", username=f"a{n}", source="ldap", site_role="auditor", site_role_source="ldap:x")
        for n in range(12)
    )
    everybody = read_everybody()
    for one in people_of:
        entry = Entry(one.subject, f"uid={one.username}", one.username, one.username, "", None, None, False)
        everybody.people[one.subject] = entry
    outcome = sync.run(everybody)
    assert [problem.kind for problem in outcome.problems] == ["roles_lost"]
    assert User.objects.filter(site_role="auditor").count() == 12


def test_a_thousand_people_more_cost_no_query_more(admin: User) -> None:
    """Roles given, changed and taken: the statements of a pass do not follow the number of people."""

    boss = admin

    def pass_of(count: int) -> list[int]:
        User.objects.filter(source="ldap").delete()
        GroupMapping.objects.all().delete()
        DirectorySync.objects.all().delete()
        entries = {
            f"ldap:{n}": Entry(f"ldap:{n}", f"uid=p{n}", f"p{n}", f"P {n}", "", n + 1, 1, False) for n in range(count)
        }
        User.objects.bulk_create(User(subject=s, username=e.username, source="ldap") for s, e in entries.items())
        groups = {}
        for number in range(count // 10):
            members = frozenset(f"uid=p{n}" for n in range(number * 10, number * 10 + 10))
            groups[f"cn=g{number}"] = Group(f"cn=g{number}", f"g{number}", members, frozenset(), number + 100)
        place = people.ensure_project("everyone", members={})
        GroupMapping.objects.create(group="g*", namespace=place, role="member")
        with CaptureQueriesContext(connection) as queries:
            outcome = sync.run(Everybody(entries, groups, []))
        assert outcome.is_applied and len(outcome.plan.added) == count
        assert Membership.objects.filter(namespace=place).count() == count
        counts = [len(queries)]
        for change in ({"role": "lead"}, None):
            if change:
                GroupMapping.objects.update(**change)
            else:
                GroupMapping.objects.all().delete()
            with CaptureQueriesContext(connection) as queries:
                assert sync.run(Everybody(entries, groups, []), by=boss).is_applied
            counts.append(len(queries))
        assert not Membership.objects.filter(namespace=place).exists()
        return counts

    for many, few in zip(pass_of(900), pass_of(300), strict=True):
        assert many <= few + 2
