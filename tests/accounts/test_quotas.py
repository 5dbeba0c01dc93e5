"""What is left of a namespace's limit."""

from __future__ import annotations

from accounts.quotas import Limits, Usage, fits, headroom


def test_what_is_left() -> None:
    room = headroom(Limits(gpus=8, cpu_millis=4000), Usage(gpus=5, cpu_millis=500, memory_bytes=10))
    assert room == Limits(gpus=3, cpu_millis=3500, memory_bytes=None)
    assert fits(room, Usage(gpus=3, cpu_millis=3500, memory_bytes=10**15))
    assert not fits(room, Usage(gpus=4))
    assert not fits(room, Usage(gpus=1, cpu_millis=3501))


def test_a_limit_lowered_under_what_runs_leaves_nothing_and_nothing_negative() -> None:
    assert headroom(Limits(gpus=2), Usage(gpus=5)).gpus == 0


def test_a_limit_of_zero_is_a_limit() -> None:
    assert not fits(headroom(Limits(gpus=0), Usage()), Usage(gpus=1))
    assert fits(headroom(Limits(gpus=0), Usage()), Usage(gpus=0, cpu_millis=1))


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3) + Usage(10, 20, 30) == Usage(11, 22, 33)
