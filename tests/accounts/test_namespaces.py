"""Text from people becomes a name on the cluster: always valid, never another's (R56, R57, R61)."""

from __future__ import annotations

import hashlib
import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accounts.namespaces import hashed, kubernetes_name, slug, spelling

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
AWKWARD = [
    "_admin",
    "-x",
    "Ärger",
    "j.doe",
    "a@b.c",
    "1234",
    "x" * 3000,
    "🦊",
    "\u200fadmin",
    "",
    "a-",
    "ß",
    "..",
    "日本",
]


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_get_valid_and_stable_namespaces(name: str) -> None:
    first = kubernetes_name("personal", name, "entry-1", set())
    assert LABEL.fullmatch(first)
    assert LABEL.fullmatch(slug(name, "entry-1", set()))
    assert kubernetes_name("personal", name, "entry-1", set()) == first


def test_a_clean_free_name_stays_as_it_is() -> None:
    assert kubernetes_name("personal", "alice", "s", set()) == "u-alice"
    assert kubernetes_name("project", "vision", "s", set()) == "p-vision"
    assert kubernetes_name("personal", "x0123456789", "s", set()) == "u-x0123456789"


def test_a_name_that_is_given_gets_the_hash_of_the_identity() -> None:
    digest = hashlib.sha256(b"entry-2").hexdigest()[:10]
    assert kubernetes_name("personal", "alice", "entry-2", {"u-alice"}) == f"u-alice-x{digest}"
    assert slug("vision", "entry-2", {"vision"}) == f"vision-x{digest}"


@pytest.mark.parametrize("name", ["temp", "J.Doe", "🦊", "long-" * 12])
def test_a_name_that_was_hashed_for_somebody_is_not_hashed_again_for_them(name: str) -> None:
    label = hashed(name, "entry-2", set())
    assert slug(label, "entry-2", set()) == label
    assert kubernetes_name("personal", label, "entry-2", set()) == f"u-{label}"
    theirs = kubernetes_name("personal", label, "entry-3", set())
    assert theirs != f"u-{label}" and LABEL.fullmatch(theirs)


def test_nobody_can_choose_a_name_of_the_hashed_form() -> None:
    theirs = kubernetes_name("personal", "J.Doe", "entry-1", set())
    assert kubernetes_name("personal", theirs.removeprefix("u-"), "entry-2", set()) != theirs


def test_names_that_look_alike_are_different_namespaces() -> None:
    names = [
        "j.doe",
        "j_doe",
        "j-doe",
        "J.Doe",
        "jdoe",
        "a_x",
        "a-5fx",
        "test1",
        "test11",
        "y" * 63 + "1",
        "y" * 63 + "2",
    ]
    assert len({kubernetes_name("personal", name, f"entry-{name}", set()) for name in names}) == len(names)


def test_a_full_collision_is_hashed_again() -> None:
    taken = {"u-j-doe-x" + hashlib.sha256(b"s").hexdigest()[:10]}
    again = kubernetes_name("personal", "J.Doe", "s", taken)
    assert again not in taken
    assert LABEL.fullmatch(again)


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
@example("ab-x0123456789", "ab")
@example("é", "e")
def test_two_identities_never_share_a_name(one: str, other: str) -> None:
    first = kubernetes_name("personal", one, "entry-1", set())
    second = kubernetes_name("personal", other, "entry-2", {first})
    assert LABEL.fullmatch(first)
    assert LABEL.fullmatch(second)
    assert first != second
    assert kubernetes_name("project", one, "entry-1", set()) != first


def test_twenty_billion_pairs_do_not_collide_even_where_nothing_is_known_to_be_taken() -> None:
    """The function alone, without the unique constraint behind it: names close to each other, identities all different."""
    dice = random.Random(57)
    names = {"".join(dice.choices("abAB.-_x0é", k=dice.randint(1, 12))) for _i in range(200_000)}
    given_names = {kubernetes_name("personal", name, f"entry-{name}", set()) for name in names}
    assert len(given_names) == len(names) > 140_000


@pytest.mark.parametrize("twin", ["Alice", "ALICE", "ａｌｉｃｅ", "ali\u200bce", "alice\u200f", " alice"])
def test_spellings_that_look_like_alice(twin: str) -> None:
    assert spelling(twin) == spelling("alice")
