"""After signing in one goes to a path of this site, whatever `next` says (R102)."""

from __future__ import annotations

import pytest

from accounts.own_paths import own_path

HOSTILE = [
    "//evil.example",
    "///evil.example",
    "////evil.example/x",
    "\\\\evil.example",
    "/\\evil.example",
    "\\/evil.example",
    "/\\/evil.example",
    "https://evil.example/",
    "https:evil.example",
    "http:///evil.example",
    "HTTPS://evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "//user:pw@evil.example/",
    "/%2fevil.example",
    "/%2Fevil.example",
    "/%5cevil.example",
    "/%252fevil.example",
    "%2f%2fevil.example",
    "/\t/evil.example",
    "\t//evil.example",
    " //evil.example",
    "/ /evil.example",
    "/\n/evil.example",
    "/%09/evil.example",
    "//evil。example",
    "/jobs/\r\nSet-Cookie: a=b",
    "／／evil.example",
    "\x00//evil.example",
    "evil.example",
    "@evil.example",
    "",
]


@pytest.mark.parametrize("wanted", HOSTILE)
def test_hostile_spellings_lead_home(wanted: str) -> None:
    assert own_path(wanted) == "/"


@pytest.mark.parametrize(
    "wanted",
    ["/jobs/", "/jobs/b1c2/?tab=logs#l3", "/jobs/?q=a%20b&next=//x", "/compare/?j=a,b", "/me/namespaces/", "/"],
)
def test_own_paths_are_kept(wanted: str) -> None:
    assert own_path(wanted) == wanted
