"""Bytes of a program become log lines, wherever the pipe cuts them."""

from __future__ import annotations

import random

import pytest

from jobs.cluster.local.lines import LINES_PER_SECOND, MAX_LINE, LineSplitter, RateCap
from jobs.cluster.local.translate import expand, translate_value

NOW = 1_767_225_600.0


def split(*chunks: bytes, gap: float = 0.0) -> list[tuple[str, bool]]:
    splitter = LineSplitter()
    lines = []
    for position, chunk in enumerate(chunks):
        lines += splitter.feed(chunk, NOW + position * gap)
    lines += splitter.finish(NOW + len(chunks) * gap)
    return [(text, overwritten) for _time, text, overwritten in lines]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"one\r\ntwo\r\n"], ["one", "two"]),
        ([b"no end"], ["no end"]),
        ([b"\n\n"], ["", ""]),
        ([b""], []),
        ([b"a", b"b", b"\nc"], ["ab", "c"]),
        ([b"\xff\xfe\n"], ["��"]),
        ([b"\x00\n"], ["␀"]),
        ([b"\xed\xa0\x80\n"], ["���"]),
        ([b"\xe2\x82", b"\xac\n"], ["€"]),
        ([b"\x1b[31mred\x1b[0m\n"], ["\x1b[31mred\x1b[0m"]),
    ],
)
def test_lines(chunks: list[bytes], lines: list[str]) -> None:
    assert split(*chunks) == [(line, False) for line in lines]


def test_no_cut_of_the_pipe_changes_the_final_lines() -> None:
    data = "loss 0,5 €\r\n\nÄrger\x00 🙂\nlast".encode()
    for place in range(len(data)):
        assert split(data[:place], data[place:]) == split(data)


@pytest.mark.parametrize("style", ["\r{}%", "{}%\r"])
def test_a_bar_is_seen_at_most_every_200_ms_and_its_last_state_stays(style: str) -> None:
    bar = [style.format(step).encode() for step in range(100)]
    lines = split(*bar, b"\n", gap=0.05)

    assert 20 <= len(lines) <= 27, "5 s of a bar"
    assert lines[-1] == ("99%", False)
    assert all(overwritten for _text, overwritten in lines[:-1])


def test_a_slow_bar_shows_its_newest_state_without_waiting_for_the_next() -> None:
    splitter = LineSplitter()
    splitter.feed(b"\r10%", NOW)
    splitter.feed(b"\r20%", NOW + 5)

    assert splitter.pending(NOW + 5.3) == [(NOW + 5.3, "20%", True)]
    assert splitter.pending(NOW + 6) == []
    assert splitter.feed(b"\n", NOW + 7) == [(NOW + 7, "20%", False)]


def test_a_long_line_takes_bounded_memory() -> None:
    splitter = LineSplitter()
    for _chunk in range(64):
        splitter.feed(b"x" * 65536, NOW)
    assert len(splitter._part) == MAX_LINE

    [(_time, text, _overwritten)] = splitter.finish(NOW)
    assert text.endswith(f" … [{63 * 65536} more bytes of this line were cut]")


def test_random_bytes_never_raise_and_can_be_stored() -> None:
    random_bytes = random.Random(7).randbytes(2**18)
    for text, _overwritten in split(
        *[random_bytes[place : place + 1000] for place in range(0, len(random_bytes), 1000)]
    ):
        assert "\x00" not in text and "\n" not in text
        text.encode()


class TestRateCap:
    def test_a_flood_is_counted(self) -> None:
        cap = RateCap()
        flood = [(NOW, str(number), False) for number in range(LINES_PER_SECOND + 300)]

        assert len(cap.pass_on(flood, NOW)) == LINES_PER_SECOND
        [(_time, text, _overwritten)] = cap.reopen(NOW + 1)
        assert text == "[300 lines dropped by the rate limit]"

    def test_its_last_lines_come_after_the_count(self) -> None:
        cap = RateCap()
        cap.pass_on([(NOW, str(number), False) for number in range(LINES_PER_SECOND + 300)], NOW)

        count, *last = [text for _time, text, _overwritten in cap.finish(NOW)]
        assert count == "[200 lines dropped by the rate limit]"
        assert last == [str(number) for number in range(LINES_PER_SECOND + 200, LINES_PER_SECOND + 300)]

    def test_bytes_count_too(self) -> None:
        cap = RateCap()
        passed = cap.pass_on([(NOW, "x" * 65536, False)] * 100, NOW)
        assert len(passed) == 32

    def test_a_quiet_program_is_never_mentioned(self) -> None:
        cap = RateCap()
        lines = [(NOW, "hello", False)]
        assert cap.pass_on(lines, NOW) == lines
        assert cap.reopen(NOW + 5) == cap.finish(NOW + 5) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(RANK)", "0"),
        ("a$(RANK)b", "a0b"),
        ("$(NONE)", "$(NONE)"),
        ("$$(RANK)", "$(RANK)"),
        ("$$$(RANK)", "$0"),
        ("$", "$"),
        ("$x", "$x"),
    ],
)
def test_values_are_expanded_as_kubernetes_does(text: str, expected: str) -> None:
    assert expand(text, {"RANK": "0"}) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/runs/x/out", "/here/runs/x/out"),
        ("/workspace", "/here/ws"),
        ("/workspace/src:/opt/lib", "/here/ws/src:/opt/lib"),
        ("/workspaces", "/workspaces"),
        ("http://host/runs", "http://host/runs"),
        ("plain", "plain"),
    ],
)
def test_paths_in_values_become_folders(value: str, expected: str) -> None:
    assert translate_value(value, {"/workspace": "/here/ws", "/runs": "/here/runs"}) == expected
