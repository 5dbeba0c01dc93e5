"""What entries say, whatever directory wrote them: who it is, and whether the account is over."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.directory import EntryUnusable, has_ended, read_person, read_search

NOW = datetime(2026, 11, 30, tzinfo=UTC)
TODAY = (NOW - datetime(1970, 1, 1, tzinfo=UTC)).days
FILETIME = (TODAY + 134_774) * 86_400 * 10_000_000  # days between 1601 and 1970, in steps of 100 ns


@pytest.mark.parametrize(
    ("attributes", "ended"),
    [
        ({}, False),
        ({"shadowexpire": ["-1"]}, False),
        ({"shadowexpire": [str(TODAY)]}, True),
        ({"shadowexpire": [str(TODAY + 1)]}, False),
        ({"shadowexpire": ["never"]}, False),
        ({"shadowexpire": ["9" * 30]}, False),
        ({"shadowexpire": ["9" * 20]}, False),
        ({"accountexpires": ["9223372036854775806"]}, False),
        ({"useraccountcontrol": ["512"]}, False),
        ({"useraccountcontrol": ["514"]}, True),
        ({"accountexpires": ["0"]}, False),
        ({"accountexpires": ["9223372036854775807"]}, False),
        ({"accountexpires": [str(FILETIME)]}, True),
        ({"accountexpires": [str(FILETIME + 10_000_000)]}, False),
        ({"nsaccountlock": ["TRUE"]}, True),
        ({"nsaccountlock": ["false"]}, False),
        ({"pwdaccountlockedtime": ["000001010000Z"]}, True),
        ({"pwdaccountlockedtime": ["20261130120000Z"]}, False),
        ({"logindisabled": ["true"]}, True),
    ],
)
def test_each_directory_says_in_its_own_way_that_an_account_is_over(attributes: Any, ended: bool) -> None:
    assert has_ended(attributes, NOW) is ended


def test_a_binary_guid_reads_as_active_directory_writes_it_also_where_it_happens_to_be_text() -> None:
    for raw in (bytes(range(16)), b"0123456789abcdef".decode()):
        known: Any = {"uid": ["a"], "objectguid": [raw]}
        as_bytes = raw if isinstance(raw, bytes) else raw.encode()
        assert read_person("x", known, name="uid", now=NOW).subject == f"ldap:{uuid.UUID(bytes_le=as_bytes)}"


def test_an_entry_without_a_name_or_an_id_is_nobody() -> None:
    for attributes in ({"uid": ["a"]}, {"entryuuid": ["1"]}, {"uid": [" "], "entryuuid": ["1"]}):
        with pytest.raises(EntryUnusable):
            read_person("uid=a", attributes, name="uid", now=NOW)


@given(
    st.dictionaries(
        st.sampled_from(["uid", "cn", "mail", "uidnumber", "entryuuid", "shadowexpire"]),
        st.lists(st.text() | st.binary()),
    )
)
def test_whatever_an_entry_holds_is_a_person_that_fits_the_table_or_nobody(attributes: Any) -> None:
    try:
        person = read_person("uid=a", attributes, name="uid", now=NOW)
    except EntryUnusable:
        return
    assert 0 < len(person.username) <= 150 and len(person.display_name) <= 200 and len(person.subject) <= 200
    assert "\0" not in f"{person}" and (person.uid_number is None or 0 <= person.uid_number < 2**31)


def test_a_search_is_read_as_in_an_ldap_url() -> None:
    found = read_search("ou=p,dc=x?sAMAccountName?one?(&(a=b)(c=?))", attribute="uid")
    assert (found.base, found.attribute, found.scope, found.filter) == (
        "ou=p,dc=x",
        "sAMAccountName",
        "one",
        "(&(a=b)(c=?))",
    )
    assert read_search("dc=x", attribute="uid").filter == "(objectClass=*)"
    for wrong in ("people", "dc=x?uid?deep", "dc=x?uid?sub?a=b"):
        with pytest.raises(ValueError, match=r"it|its"):
            read_search(wrong, attribute="uid")
