"""Two groups of almost one name: a rule about it gives nothing, at a sign-in as in a pass."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import GroupMapping, Membership, Namespace
from portal.embedded.demo_people import GROUPS, PEOPLE
from portal.embedded.slapd import Slapd
from tests.directory import SECRET, as_admin

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("real", "lookalike"),
    [("vision", "ｖｉｓｉｏｎ"), ("vision", "VISION"), ("fi-vision", "ﬁ-vision"), ("masse", "maße"), ("maße", "masse")],
)
def test_who_made_a_lookalike_of_a_group_gets_nothing_of_its_rule(
    directory: Slapd, vision: Namespace, real: str, lookalike: str
) -> None:
    """dave is in a group that looks like vision in another part of the tree, as somebody who may make groups there could."""
    place = f"ou=elsewhere,{GROUPS}"
    dn = f"cn={lookalike},{place}"

    def group(member: str) -> list[tuple[str, Any]]:
        return [("objectClass", b"groupOfNames"), ("member", f"uid={member},{PEOPLE}".encode())]

    GroupMapping.objects.create(group=real, namespace=vision, role="lead")
    with as_admin(directory) as admin:
        admin.add_s(place, [("objectClass", b"organizationalUnit"), ("ou", b"elsewhere")])
        admin.add_s(dn, group("dave"))
        if real != "vision":
            admin.add_s(f"cn={real},{GROUPS}", group("bob"))
    try:
        assert Client().post("/login/", {"username": "dave", "password": SECRET}).status_code == 302
        held = Membership.objects.filter(user__username__startswith="dave", namespace=vision)
        assert not held.filter(source__startswith="ldap:").exists()
    finally:
        with as_admin(directory) as admin:
            admin.delete_s(dn)
            admin.delete_s(place)
            if real != "vision":
                admin.delete_s(f"cn={real},{GROUPS}")
