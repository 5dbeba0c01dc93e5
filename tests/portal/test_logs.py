"""What of the processes' logs reaches the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal import logs


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> logs.Echo:
    monkeypatch.setattr(logs, "LOOK_EVERY", 0.0)
    (tmp_path / "web.log").write_text("2026-11-30 05:00:00,000 ERROR old: of the last run\n")
    echo = logs.Echo(tmp_path)
    echo.follow("web")
    return echo


def add(echo: logs.Echo, text: str) -> None:
    with (echo.folder / "web.log").open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30 05:00:00,000 WARNING jobs.live: Nobody could be told",
        "[2026-11-30 05:00:00,000: ERROR/MainProcess] consumer: Cannot connect",
        "ERROR:    Application startup failed. Exiting.",
        "2026-11-30 05:00:00.000 UTC [12] FATAL:  the database system is shutting down",
    ],
)
def test_trouble_is_passed_on(echo: logs.Echo, line: str) -> None:
    add(echo, line + "\n")
    assert echo.look() == [f"[web] {line}"]
    assert echo.look() == []


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30 05:00:00,000 INFO celery: Task succeeded with ERROR in its name",
        '  File "x.py", line 3, in WARNING',
        "2026-11-30 05:00:00,000 WARNING py.warnings: something is deprecated",
    ],
)
def test_the_rest_is_not(echo: logs.Echo, line: str) -> None:
    add(echo, line + "\n")
    assert echo.look() == []


def test_a_line_is_passed_on_once_it_is_whole(echo: logs.Echo) -> None:
    add(echo, "ERROR: half of")
    assert echo.look() == []
    add(echo, " a line\n")
    assert echo.look() == ["[web] ERROR: half of a line"]


def test_a_flood_is_counted(echo: logs.Echo) -> None:
    add(echo, "".join(f"ERROR: {'x' * number}\n" for number in range(100)))
    found = echo.look()
    assert len(found) == 6
    assert "95 more" in found[-1]


def test_the_same_words_are_said_once_a_minute(echo: logs.Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "2026-11-30 07:04:{second},000 WARNING jobs.reconcile: The database does not answer, try {second}\n"
    add(echo, line.format(second=10))
    assert len(echo.look()) == 1
    add(echo, line.format(second=12))
    assert echo.look() == []
    monkeypatch.setattr(logs, "QUIET", 0.0)
    add(echo, line.format(second=14))
    assert len(echo.look()) == 1


def test_a_large_log_is_moved_aside_while_it_is_written(echo: logs.Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LARGEST", 2000)
    path = echo.folder / "web.log"
    with path.open("ab", buffering=0) as writer:  # as process.spawn opens it
        writer.write(b"x" * 1999 + b"\n")
        echo.look()
        echo.look()
        assert path.stat().st_size == 0
        assert (echo.folder / "web.log.1").stat().st_size > 1999
        writer.write(b"ERROR: after\n")
    assert echo.look() == ["[web] ERROR: after"]
