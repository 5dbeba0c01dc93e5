"""Making people: each with a namespace of their own, none with another's."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from accounts import access, people
from accounts.models import AuditEvent, Namespace, User
from accounts.people import NameRefused, ensure_person, ensure_project, give_personal_namespace
from accounts.roles import Role

pytestmark = pytest.mark.django_db


def test_a_person_leads_their_own_namespace_from_the_start() -> None:
    frank = ensure_person("frank", password="pw", display_name="Frank Sun")
    own = frank.personal_namespace
    assert (own.slug, own.kubernetes_name, own.kind) == ("frank", "u-frank", "personal")
    assert access.role_in(frank, own) is Role.LEAD
    assert set(AuditEvent.objects.values_list("action", "target")) >= {("user.create", "frank")}


def test_again_changes_nothing() -> None:
    first = ensure_person("frank", password="pw")
    first.set_password("another")
    first.save()
    again = ensure_person("frank", password="pw")
    assert again == first
    assert again.check_password("another")
    assert Namespace.objects.filter(owner=first).count() == 1


def test_a_person_named_like_a_project_gets_another_name() -> None:
    ensure_project("vision2", members={})
    person = ensure_person("vision2")
    assert person.personal_namespace.slug.startswith("vision2-x")
    assert person.personal_namespace.kubernetes_name == "u-vision2"


def test_an_unclean_name_is_shown_as_it_is_and_has_a_valid_namespace() -> None:
    person = ensure_person("Ärger@b.c")
    assert str(person) == "Ärger@b.c"
    assert person.personal_namespace.kubernetes_name.startswith("u-arger-b-c-x")


def test_a_person_who_comes_after_one_of_the_same_name_gets_a_new_namespace() -> None:
    old = ensure_person("frank")
    User.objects.filter(pk=old.pk).update(username="frank (left)", is_active=False)
    new = ensure_person("frank")
    assert new.subject != old.subject
    assert new.personal_namespace != old.personal_namespace
    assert new.personal_namespace.kubernetes_name != old.personal_namespace.kubernetes_name
    assert old.personal_namespace not in access.namespaces_for(new)


@pytest.mark.parametrize("twin", ["Frank", "ｆrank", "fra\u200bnk", " frank", "frank\u200f", "", "f\0", "x" * 151])
def test_a_name_that_looks_like_anothers_is_refused(twin: str) -> None:
    ensure_person("frank")
    with pytest.raises(NameRefused):
        ensure_person(twin)
    assert twin not in User.objects.values_list("username", flat=True)


def test_a_project_gives_the_roles_it_is_told_and_keeps_those_changed_since() -> None:
    ensure_person("frank")
    ensure_person("grace")
    project = ensure_project("audio", members={"frank": "member"})
    project.memberships.update(role="viewer")
    assert ensure_project("audio", members={"frank": "member", "grace": "lead"}) == project
    assert dict(project.memberships.values_list("user__username", "role")) == {"frank": "viewer", "grace": "lead"}
    assert AuditEvent.objects.filter(action="membership.create", namespace="audio").count() == 2


def test_a_project_cannot_be_somebodys_own_namespace() -> None:
    ensure_person("frank")
    with pytest.raises(NameRefused):
        ensure_project("frank", members={})
    with pytest.raises(NameRefused):
        ensure_project("a-x0123456789", members={})


def test_a_person_made_without_one_is_given_one_once() -> None:
    bare = User.objects.create_user("heidi", None)
    assert give_personal_namespace(bare) == give_personal_namespace(bare)


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_end_at_the_same_moment_leave_one() -> None:
    for name in ("one", "two"):
        User.objects.create(username=name, subject=f"ldap:{name}", source="ldap", site_role="admin")

    def end_the_other() -> None:
        try:
            people.end(["ldap:two"])
        finally:
            connection.close()

    second = threading.Thread(target=end_the_other)
    with transaction.atomic():
        assert people.end(["ldap:one"]) == ["one"]
        second.start()
        second.join(1)
        assert second.is_alive(), "it waits for what becomes of the first"
    second.join()
    assert list(User.objects.filter(is_active=True, site_role="admin").values_list("username", flat=True)) == ["two"]
