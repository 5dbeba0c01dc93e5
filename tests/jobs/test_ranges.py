"""A download that was cut off goes on, and what a Range header may say."""

from __future__ import annotations

import pytest

from jobs.ranges import Part, Unsatisfiable, wanted_part


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("", None),
        ("bytes=0-99", Part(0, 99, 1000)),
        ("bytes=0-5000", Part(0, 999, 1000)),
        ("bytes=900-", Part(900, 999, 1000)),
        ("bytes=-100", Part(900, 999, 1000)),
        ("bytes=-5000", Part(0, 999, 1000)),
        ("bytes=999-999", Part(999, 999, 1000)),
        ("bytes=5-2", None),
        ("bytes=-", None),
        ("bytes=0-1,5-6", None),
        ("lines=0-1", None),
        ("bytes=a-b", None),
        ("bytes=" + "9" * 30 + "-", None),
    ],
)
def test_what_a_range_header_asks_for(header: str, part: Part | None) -> None:
    assert wanted_part(header, size=1000) == part


@pytest.mark.parametrize("header", ["bytes=1000-", "bytes=5000-6000", "bytes=-0"])
def test_outside_the_file_is_refused(header: str) -> None:
    with pytest.raises(Unsatisfiable):
        wanted_part(header, size=1000)


def test_another_version_of_the_file_is_sent_whole() -> None:
    assert wanted_part("bytes=5-", size=10, if_range='"old"', etag='"new"') is None
    assert wanted_part("bytes=5-", size=10, if_range='"new"', etag='"new"') == Part(5, 9, 10)


def test_nothing_of_an_empty_file_can_be_had_by_range() -> None:
    with pytest.raises(Unsatisfiable):
        wanted_part("bytes=0-", size=0)
