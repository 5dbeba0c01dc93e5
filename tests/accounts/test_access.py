"""Who may do what where: alice and bob are members of vision, carol leads it, dave shares nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from accounts import access
from accounts.models import Membership, Namespace, User
from accounts.people import ensure_person, ensure_project
from accounts.roles import Role, SiteRole, Verb

pytestmark = pytest.mark.django_db


@pytest.fixture
def auditor(db: None) -> User:
    return ensure_person("erin", site_role=SiteRole.AUDITOR)


def test_a_member_submits_and_changes_only_what_is_their_own(vision: Namespace, alice: User) -> None:
    assert access.may(alice, Verb.VIEW, vision)
    assert access.may(alice, Verb.SUBMIT, vision)
    assert access.may(alice, Verb.CHANGE_OWN, vision, owns=True)
    assert access.may(alice, Verb.CHANGE_ANY, vision, owns=True)
    assert not access.may(alice, Verb.CHANGE_OWN, vision, owns=False)
    assert not access.may(alice, Verb.CHANGE_ANY, vision)
    assert not access.may(alice, Verb.MANAGE, vision)


def test_carol_changes_the_jobs_of_the_namespace_she_leads(vision: Namespace, carol: User) -> None:
    assert access.may(carol, Verb.CHANGE_OWN, vision, owns=False)
    assert access.may(carol, Verb.MANAGE, vision)


def test_a_viewer_only_looks(vision: Namespace, dave: User) -> None:
    Membership.objects.create(user=dave, namespace=vision, role=Role.VIEWER)
    assert access.may(dave, Verb.VIEW, vision)
    assert not any(access.may(dave, verb, vision, owns=True) for verb in Verb if verb is not Verb.VIEW)


def test_the_highest_role_of_all_sources_counts(vision: Namespace, alice: User) -> None:
    Membership.objects.create(user=alice, namespace=vision, role=Role.LEAD, source="cn=leads")
    Membership.objects.create(user=alice, namespace=vision, role=Role.VIEWER, source="cn=all")
    assert access.role_in(alice, vision) is Role.LEAD
    assert access.roles_of(alice)[vision.pk] is Role.LEAD
    assert list(access.namespaces_for(alice, Verb.MANAGE).filter(kind="project")) == [vision]
    place = next(place for place in access.places_of(alice) if place.namespace == vision)
    assert (place.role, {one.source for one in place.reasons}) == (Role.LEAD, {"manual", "cn=leads", "cn=all"})


def test_a_stranger_sees_nothing(vision: Namespace, dave: User) -> None:
    assert access.role_in(dave, vision) is None
    assert not any(access.may(dave, verb, vision, owns=True) for verb in Verb)
    assert vision.pk not in (access.visible_namespace_ids(dave) or ())
    for name in (vision.slug, "no-such", "vis\0ion", "Vision", "visio", "visionx"):
        with pytest.raises(Http404):
            access.get_namespace(dave, name)


def test_names_match_exactly(vision: Namespace, alice: User) -> None:
    for name in ("Vision", "visio", "vision1", "VISION", "vision "):
        with pytest.raises(Http404):
            access.get_namespace(alice, name)


def test_a_role_that_is_too_low_is_told_what_it_needs(vision: Namespace, alice: User) -> None:
    assert access.get_namespace(alice, "vision", Verb.SUBMIT) == vision
    with pytest.raises(PermissionDenied, match="lead in vision"):
        access.get_namespace(alice, "vision", Verb.MANAGE)


def test_an_auditor_sees_everything_and_changes_nothing(vision: Namespace, auditor: User) -> None:
    assert access.visible_namespace_ids(auditor) is None
    assert access.get_namespace(auditor, "vision") == vision
    assert vision in access.namespaces_for(auditor)
    assert vision not in access.namespaces_for(auditor, Verb.SUBMIT)
    assert not any(access.may(auditor, verb, vision, owns=True) for verb in Verb if verb is not Verb.VIEW)


def test_an_admin_may_everything(vision: Namespace, admin: User) -> None:
    assert all(access.may(admin, verb, vision) for verb in Verb)
    assert access.get_namespace(admin, "vision", Verb.MANAGE) == vision


@pytest.mark.parametrize("role", ["", "admin", "auditor"])
def test_one_who_was_disabled_may_nothing_at_once(vision: Namespace, alice: User, role: str) -> None:
    alice.is_active = False
    alice.site_role = role
    assert access.visible_namespace_ids(alice) == frozenset()
    assert not any(access.may(alice, verb, vision, owns=True) for verb in Verb)
    assert not access.namespaces_for(alice).exists()


def test_nobody_may_nothing(vision: Namespace) -> None:
    nobody = AnonymousUser()
    assert access.visible_namespace_ids(nobody) == frozenset()
    assert not access.may(nobody, Verb.VIEW, vision)
    assert not access.namespaces_for(nobody).exists()


def test_many_namespaces_cost_no_more_queries(alice: User, django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        ensure_project(f"project-{number}", members={"alice": "member"})
    with django_assert_max_num_queries(2):
        assert len(access.places_of(alice)) >= 30
    with django_assert_max_num_queries(2):
        access.get_namespace(alice, "project-7", Verb.SUBMIT)
    with django_assert_max_num_queries(1):
        access.visible_namespace_ids(alice)
