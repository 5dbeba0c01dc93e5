"""UX-C7: how serious a line is, by the rules that docs/researcher.md tells."""

from __future__ import annotations

import pytest

from jobs.logs.levels import CONTINUES, KIND, Level, LevelReader


def levels(*texts: str) -> list[str]:
    return [Level(level & KIND).name.lower() for level in LevelReader().read(texts)]


@pytest.mark.parametrize(
    ("level", "text"),
    [
        # Python logging, with and without a format of one's own
        ("warning", "WARNING:root:no label"),
        ("error", "CRITICAL:train:over"),
        ("info", "2026-03-01 12:01:01,123 INFO train: epoch 1"),
        ("debug", "2026-11-30 12:00:00,100 - my.logger - DEBUG - ok"),
        ("error", "[2026-11-30 12:00:00,123][train][ERROR] - hydra"),
        ("info", "[2026-11-30 12:00:00,123] [INFO] [real_accelerator.py:161] deepspeed"),
        ("error", "12:00:01 ERROR no module"),
        # glog, absl, and PyTorch's C++
        ("error", "E1130 12:00:01.123456 77 file.cc:3] boom"),
        ("warning", "W20261130 12:00:01.123456 77 file.cc:3] hm"),
        ("warning", "[rank0]:[W1130 12:00:00.100 ProcessGroupNCCL.cpp:1] Warning: old"),
        ("error", "F1130 12:00:00.000000 1 x.py:1] over"),
        ("info", "I1130 12:00:00.000000 1 x.py:1] an error was avoided"),
        # loguru
        ("info", "2026-11-30 12:00:00.000 | INFO     | __main__:f:3 - hello"),
        ("info", "2026-11-30 12:00:00.000 | SUCCESS  | __main__:f:3 - saved"),
        # in brackets, logfmt, JSON
        ("warning", "[WARN] sample skipped"),
        ("error", "2026/11/30 12:00:01 [error] 12#3: nginx"),
        ("error", "ts=12 level=error msg=x"),
        ("warning", 'ts=12 level="warning" msg="level=error"'),
        ("warning", '{"ts": 1, "level": "warn", "msg": "[ERROR] quoted"}'),
        ("error", '{"severity":"ERROR","message":"x"}'),
        ("plain", '{"step": 3, "loss": 0.5}'),
        # at the beginning
        ("error", "error: pathspec did not match"),
        ("warning", "Warning: in the working copy"),
        ("warning", "/a/b.py:12: UserWarning: old"),
        ("error", "ValueError: no such column: label"),
        ("error", "torch.OutOfMemoryError: CUDA out of memory."),
        ("error", "KeyboardInterrupt"),
        ("error", "Segmentation fault (core dumped)"),
        ("warning", "[300 lines dropped by the rate limit]"),
        # what only speaks of one
        ("plain", "epoch 3 ERROR rate 0.5"),
        ("plain", "error rate is 0.3, no warnings found"),
        ("plain", "Information about the run"),
        ("plain", "Errors: 3"),
        ("plain", "loss 0.5"),
        ("plain", ""),
    ],
)
def test_c7_a_line_says_its_level(level: str, text: str) -> None:
    assert levels(text) == [level]


TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "a.py", line 1',
    "    x = y",
    "",
    "  File b",
    "KeyError: 'x'",
]


def test_c7_a_traceback_is_of_the_error_it_tells_to_its_exception() -> None:
    found = LevelReader().read(["one", *TRACEBACK, "after"])
    assert [level & KIND for level in found] == [0, *[Level.ERROR] * 6, 0]
    assert [bool(level & CONTINUES) for level in found] == [False, False, True, True, True, True, False, False]


def test_c7_an_exception_of_any_name_ends_it_and_another_level_does_too() -> None:
    assert levels(*TRACEBACK[:2], "Odd: of my own", "after") == ["error", "error", "error", "plain"]
    assert levels(*TRACEBACK[:2], "INFO other thread", "after") == ["error", "error", "info", "plain"]


def test_c7_ranks_behind_prefixes_are_told_apart() -> None:
    one, other = "[rank0]: ", "[rank1]: "
    texts = [one + TRACEBACK[0], other + TRACEBACK[0], one + "  File a", "step 3", other + "  File b"]
    texts += [one + "ValueError: a", one + "after", other + "ValueError: b", "step 4"]
    assert levels(*texts) == ["error"] * 3 + ["plain"] + ["error"] * 2 + ["plain", "error", "plain"]


def test_c7_chained_exceptions_and_groups() -> None:
    between = "During handling of the above exception, another exception occurred:"
    assert levels(*TRACEBACK, "", between, "", *TRACEBACK).count("error") == 13
    group = ["  + Exception Group Traceback (most recent call last):", "  |   File a", "  | ExceptionGroup: x (1)"]
    group += ["  +-+---------------- 1 ----------------", "    | ValueError: 1", "    +---------------------"]
    assert levels(*group, "done") == ["error"] * 6 + ["plain"]


def test_c7_a_traceback_goes_on_wherever_its_lines_are_cut() -> None:
    whole = LevelReader().read(["[rank0]: x", *TRACEBACK, "after"])
    for cut in range(8):
        first = LevelReader()
        parts = first.read(["[rank0]: x", *TRACEBACK, "after"][:cut])
        assert parts + LevelReader(first.opened).read(["[rank0]: x", *TRACEBACK, "after"][cut:]) == whole
