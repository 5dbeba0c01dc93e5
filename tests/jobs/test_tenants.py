"""Who is bound in a namespace on a cluster, by which name, and with which numbers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import DirectorySync, Membership, Namespace, User
from jobs.cluster.kubernetes.setting import KubernetesSetting, Users
from jobs.cluster.port import Manifest
from jobs.cluster.tenancy import FIRST_PROJECT_UID, FIRST_UID, PEOPLE
from jobs.dispatch import objects_of as attempt_of
from jobs.tenants import numbers_of, objects_of, person_of
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db
GPU = KubernetesSetting(name="gpu")


def subjects(namespace: Namespace, binding: str, setting: KubernetesSetting = GPU) -> set[str]:
    found = {one["metadata"]["name"]: one for one in objects_of(namespace, setting) if one["kind"] == "RoleBinding"}
    return {f"{one['kind']} {one['name']}" for one in found[f"trainhall-{binding}"]["subjects"]}


def notes(namespace: Namespace) -> dict[str, str]:
    wanted: Manifest = objects_of(namespace, GPU)[0]
    assert wanted["kind"] == "Namespace"
    return dict(wanted["metadata"]["annotations"])


def from_directory(user: User, *, uid: int | None = None, groups: tuple[str, ...] = (), name: str = "") -> User:
    user.source, user.directory_name, user.uid_number, user.gid_number = "ldap", name or user.username, uid, uid
    user.directory_groups = list(groups)
    user.save()
    return user


def test_the_bindings_are_the_roles_in_force(alice: User, bob: User, carol: User, dave: User, vision: Any) -> None:
    Membership.objects.filter(user=bob, namespace=vision).update(role="viewer")
    assert subjects(vision, "members") == {"User trainhall:local:alice", "User trainhall:local:carol"}
    assert subjects(vision, "viewers") == {f"User trainhall:local:{name}" for name in ("alice", "bob", "carol")}
    Membership.objects.filter(user=carol).update(ends_at=timezone.now() - timedelta(seconds=1), source="manual")
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert subjects(vision, "members") == set()
    assert subjects(vision, "viewers") == {"User trainhall:local:bob"}


def test_who_may_do_everything_is_a_member_everywhere_and_an_auditor_looks(
    alice: User, admin: User, dave: User, vision: Any
) -> None:
    User.objects.filter(pk=dave.pk).update(site_role="auditor")
    User.objects.filter(pk=admin.pk).update(site_role="admin")
    for place in (vision, alice.personal_namespace):
        assert "User trainhall:local:admin" in subjects(place, "members")
        assert "User trainhall:local:dave" in subjects(place, "viewers")
        assert "User trainhall:local:dave" not in subjects(place, "members")


def test_people_of_the_directory_have_its_name_of_today(alice: User, vision: Any) -> None:
    """She married: the account stays, and with kubectl she is who the directory says she is."""
    from_directory(alice, name="alice.b")
    assert "User ldap:alice.b" in subjects(vision, "members")
    assert "User ldap:alice" not in subjects(vision, "members")
    assert person_of(alice).username == "alice.b"


def test_a_name_that_now_is_somebody_elses_never_inherits(alice: User, dave: User, vision: Any) -> None:
    from_directory(alice, name="alice")
    from_directory(dave, name="alice")  # the directory gave it to him; the pass that ends her account comes later
    assert not {"User ldap:alice"} & subjects(vision, "members")
    assert "User trainhall:unclear:alice" in subjects(vision, "members")
    assert subjects(dave.personal_namespace, "members") == {"User trainhall:unclear:dave"}
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert subjects(dave.personal_namespace, "members") == {"User ldap:alice"}
    assert subjects(vision, "members").isdisjoint({"User ldap:alice", "User trainhall:unclear:alice"})


def test_a_local_account_is_not_the_directorys_person_of_that_name(alice: User, vision: Any) -> None:
    assert "User trainhall:local:alice" in subjects(vision, "members")
    assert "User ldap:alice" not in subjects(vision, "members")


def test_no_prefix_makes_nobody_a_part_of_the_system(alice: User, vision: Any) -> None:
    bare = KubernetesSetting(name="gpu", users=Users(user_prefix="", group_prefix=""))
    from_directory(alice, name="system:kube-controller-manager", groups=("system:masters",))
    Membership.objects.create(user=alice, namespace=vision, role="member", source="ldap:system:masters")
    assert all("system:" not in name or "trainhall:ldap:system:" in name for name in subjects(vision, "members", bare))
    assert bare.users.groups(person_of(alice)) == []
    assert bare.users.name(person_of(alice)) == "trainhall:ldap:system:kube-controller-manager"


def test_a_group_is_bound_while_it_means_who_has_the_role(alice: User, dave: User, vision: Any) -> None:
    from_directory(alice, groups=("ml-vision", "everybody"))
    Membership.objects.filter(user=alice, namespace=vision).update(source="ldap:ml-vision", role="member")
    assert "Group ldap:ml-vision" in subjects(vision, "members")
    assert "Group ldap:ml-vision" in subjects(vision, "viewers")
    assert "Group ldap:everybody" not in subjects(vision, "viewers")
    DirectorySync.objects.create(is_applied=True, shared_names=["ml-vision"])
    assert "Group ldap:ml-vision" not in subjects(vision, "viewers")
    DirectorySync.objects.create(is_applied=True)
    assert "Group ldap:ml-vision" in subjects(vision, "viewers")
    from_directory(dave, groups=("ml-vision",))
    User.objects.filter(pk=dave.pk).update(is_active=False, disabled_by="admin")  # shut out here, not in the directory
    assert "Group ldap:ml-vision" not in subjects(vision, "viewers")
    assert "User ldap:alice" in subjects(vision, "members")


def test_in_a_project_everybody_has_numbers_of_their_own(alice: User, bob: User, carol: User, vision: Any) -> None:
    from_directory(alice, uid=20123)
    User.objects.filter(pk=alice.pk).update(supplementary_gids=[30017, 0])
    from_directory(bob, uid=0)
    own = FIRST_PROJECT_UID + vision.pk
    lines = notes(vision)[PEOPLE].split("\n")
    assert lines[0] == f"{own} {own} "
    assert "20123 20123,30017 ldap:alice" in lines
    assert f"{FIRST_UID + bob.pk} {FIRST_UID + bob.pk} ldap:bob" in lines
    assert f"{FIRST_UID + carol.pk} {FIRST_UID + carol.pk} trainhall:local:carol" in lines
    assert notes(vision)["trainhall.io/uids"].split(",")[0] == str(own)
    assert len(lines) == len({line.split(" ")[0] for line in lines})


def test_in_ones_own_namespace_what_says_nothing_runs_as_its_owner(alice: User) -> None:
    from_directory(alice, uid=20123)
    own = alice.personal_namespace
    assert notes(own)["trainhall.io/uids"] == "20123"
    assert notes(own)[PEOPLE].split("\n") == ["20123 20123 ", "20123 20123 ldap:alice"]


def test_a_pod_of_the_portal_has_the_numbers_that_the_namespace_says(alice: User, bob: User, vision: Any) -> None:
    from_directory(alice, uid=20123)
    for owner in (alice, bob):
        attempt = make_attempt(make_job(owner, vision))
        context = attempt_of(attempt).leader["spec"]["template"]["spec"]["securityContext"]
        uid, gids = numbers_of(owner)
        assert (context["runAsUser"], context["runAsGroup"], context["runAsNonRoot"]) == (uid, gids[0], True)
        assert any(line.startswith(f"{uid} ") for line in notes(vision)[PEOPLE].split("\n"))


def test_the_namespace_of_who_left_is_archived_and_comes_back(alice: User, admin: User) -> None:
    own = alice.personal_namespace
    User.objects.filter(pk=admin.pk).update(site_role="admin")
    User.objects.filter(pk=alice.pk).update(is_active=False)
    own = Namespace.objects.get(pk=own.pk)
    objects = {one["metadata"]["name"]: one for one in objects_of(own, GPU)}
    assert objects[own.kubernetes_name]["metadata"]["labels"]["trainhall.io/state"] == "archived"
    assert objects["trainhall-total"]["spec"]["hard"]["pods"] == "0"
    assert subjects(own, "members") == subjects(own, "viewers") == set()
    assert subjects(own, "workloads") == {"ServiceAccount trainhall"}  # what is left is cleaned up
    User.objects.filter(pk=alice.pk).update(is_active=True)
    own = Namespace.objects.get(pk=own.pk)
    assert "User trainhall:local:alice" in subjects(own, "members")
