"""Lines as the kubelet gives them."""

from __future__ import annotations

import pytest

from jobs.cluster.kubernetes.loglines import HELD, MOST_STATES, Entry, Lines, read_line
from jobs.cluster.kubernetes.tails import Position
from jobs.cluster.local.lines import MAX_LINE

NOON = 1767268800.0  # 2026-01-01T12:00:00Z


@pytest.mark.parametrize(
    ("line", "at", "said"),
    [
        (b"2026-01-01T12:00:00Z hello", NOON, "hello"),
        (b"2026-01-01T12:00:00.25Z  two blanks", NOON + 0.25, " two blanks"),
        (b"2026-01-01T12:00:00.123456789Z nine digits", NOON + 0.123456789, "nine digits"),
        (b"2026-01-01T14:30:00.5+02:30 another zone", NOON + 0.5, "another zone"),
        (b"2026-01-01T12:00:00Z", NOON, ""),
        (b"2026-01-01T12:00:00Z \xff\x00", NOON, "�␀"),
        (b"failed to try resolving symlinks in path", 0.0, "failed to try resolving symlinks in path"),
        ("2026-01-01T12:00:00Z 損失 0.5".encode(), NOON, "損失 0.5"),
    ],
)
def test_a_line_is_read_as_it_was_written(line: bytes, at: float, said: str) -> None:
    assert list(read_line(line)) == [(at, said, False)]


def test_a_progress_bar_has_states_of_which_the_last_stays() -> None:
    states = b"\r".join(b"%d%%" % percent for percent in range(101))
    found = list(read_line(b"2026-01-01T12:00:00Z " + states))
    assert len(found) == MOST_STATES
    assert [overwritten for _at, _said, overwritten in found] == [True] * (MOST_STATES - 1) + [False]
    assert (found[0][1], found[-1][1]) == ("0%", "100%")


def test_a_long_line_says_what_was_cut() -> None:
    ((_at, said, _overwritten),) = read_line(b"2026-01-01T12:00:00Z " + b"x" * (MAX_LINE + 7))
    assert said.endswith("[7 more bytes of this line were cut]")


def test_a_resumed_log_repeats_nothing_and_leaves_nothing_out() -> None:
    lines = [b"2026-01-01T12:00:%02d.5Z line %d" % (number // 3, number) for number in range(30)]
    entries = [entry for line in lines for entry in read_line(line)]
    for read in range(len(entries) + 1):
        position = Position()
        for entry in entries[:read]:
            position.move(entry[0])
        skipped: dict[float, int] = {}
        again = [entry for entry in entries if entry[0] >= int(position.time) and position.passes(entry, skipped)]
        assert again == entries[read:], read


def entries_of(log: bytes, *, chunk: int) -> list[Entry]:
    lines = Lines()
    found = [piece for start in range(0, len(log), chunk) for piece in lines.feed(log[start : start + chunk])]
    return [entry for line, left_out in (*found, *lines.finish()) for entry in read_line(line, left_out=left_out)]


@pytest.mark.parametrize("length", [MAX_LINE, HELD, 2 * HELD, 2 * HELD + 1, 5_000_000])
def test_a_line_without_an_end_is_the_same_however_its_bytes_come(length: int) -> None:
    log = b"2026-01-01T12:00:00Z first\n2026-01-01T12:00:01Z " + b"x" * length + b"\n2026-01-01T12:00:02Z last"
    found = entries_of(log, chunk=len(log))
    assert [at - NOON for at, _said, _overwritten in found] == [0, 1, 2]
    assert found[1][1].startswith("x" * MAX_LINE)
    assert found[1][1].endswith(f"[{length - MAX_LINE} more bytes of this line were cut]") == (length > MAX_LINE)
    assert found == entries_of(log, chunk=4096) == entries_of(log, chunk=65_537)


def test_of_a_bar_that_goes_on_for_hours_the_last_state_is_the_last() -> None:
    states = b"\r".join(b"%6d of 400000 steps" % step for step in range(400_001))
    log = b"2026-01-01T12:00:00Z " + states + b"\n"
    found = entries_of(log, chunk=16_384)
    assert len(found) == MOST_STATES
    assert (found[0][1], found[-1][1]) == ("     0 of 400000 steps", "400000 of 400000 steps")
    assert all(said.endswith("of 400000 steps") for _at, said, _overwritten in found)
    assert found == entries_of(log, chunk=1_000_003)


def test_what_is_held_of_a_line_without_an_end_is_bounded() -> None:
    lines = Lines()
    for _chunk in range(100):
        assert list(lines.feed(b"x" * 100_000)) == []
    assert sum(len(held) for held in vars(lines).values() if isinstance(held, bytearray)) == 2 * HELD
