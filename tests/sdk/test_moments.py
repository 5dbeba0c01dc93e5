"""Moments on the command line: what people type, in the time zone of their machine."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest
from trainhall.moments import moment


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()


def test_a_moment_is_one_of_this_time_zone(tokyo: None) -> None:
    assert moment("2026-11-30 12:03") == "2026-11-30T12:03:00+09:00"
    assert moment("2026-11-30") == "2026-11-30T00:00:00+09:00"
    assert moment("2026-11-30T12:03:00+01:00") == "2026-11-30T20:03:00+09:00"
    assert moment("9:30") == f"{datetime.now().astimezone().date()}T09:30:00+09:00"


def test_a_length_of_time_is_before_now_and_stays_when_it_is_asked_again() -> None:
    said = datetime.fromisoformat(str(moment("1h30m")))
    assert timedelta(hours=1, minutes=29) < datetime.now().astimezone() - said < timedelta(hours=1, minutes=32)


def test_the_rest_goes_as_it_is() -> None:
    assert moment("2026-11-30T12:00:00Z") in ("2026-11-30T12:00:00Z", moment("2026-11-30T12:00:00+00:00"))
    assert moment("yesterday") == "yesterday"
    assert moment("") is moment(None) is None
