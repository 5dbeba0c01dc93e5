"""The stdout door reads what programs really print, and leaves alone what is no metric."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest

from metrics.doors.memory import Gathered, Memory
from metrics.doors.numerals import numeral_at
from metrics.doors.stdout import plain, read_line

Metrics = dict[str, float]
SAID: list[tuple[str, Metrics, dict[str, Any]]] = [
    # objects
    ('{"step": 3, "loss": 0.5, "acc": "0.9", "ok": true, "none": null}', {"loss": 0.5, "acc": 0.9}, {"step": 3}),
    ('{"epoch": 2, "metrics": {"loss": 0.5}, "val": {"loss": 0.4}}', {"loss": 0.5, "val/loss": 0.4}, {"epoch": 2}),
    ('INFO trained {"global_step": 7, "loss": 1}', {"loss": 1}, {"step": 7}),
    ('{"level": "info", "msg": "step=4 loss=0.25"}', {"loss": 0.25}, {"step": 4}),
    ('{"current_steps": 5, "total_steps": 90, "loss": 2.0, "percentage": 5.5}', {"loss": 2}, {"step": 5, "total": 90}),
    ("{'loss': 0.5, 'learning_rate': 5e-05, 'epoch': 0.02}", {"loss": 0.5, "learning_rate": 5e-5}, {"epoch": 0.02}),
    (
        "{'eval_loss': np.float64(0.5), 'b': tensor(0.25, device='cuda:0')}",
        {"eval_loss": 0.5, "b": 0.25},
        {"step": None},
    ),
    # bars
    (
        "  5%|▌    | 50/1000 [00:10<03:10,  5.00it/s, loss=0.51, acc=0.9]",
        {"loss": 0.51, "acc": 0.9},
        {"fraction": (50, 1000)},
    ),
    (
        "Epoch 3:  50%|██  | 50/100 [00:05<00:05,  9.80it/s, v_num=1, loss=0.5]",
        {"loss": 0.5},
        {"fraction": (50, 100), "epoch": 3},
    ),
    (
        "loss: 0.25:  50%|██  | 50/100 [00:05<00:05, 1.2s/it]",
        {"loss": 0.25},
        {"fraction": (50, 100)},
    ),
    ("120it [00:10, 12.0it/s, loss=0.5]", {"loss": 0.5}, {"step": 120}),
    ("model.safetensors: 100%|█████| 4.9G/4.9G [00:10<00:00, 30.0MB/s]", {}, {"fraction": None}),
    ("Map: 100%|█████| 50000/50000 [00:10<00:00, 5000.0 examples/s]", {}, {"fraction": None}),
    (
        "938/938 [==============================] - 3s 3ms/step - loss: 0.25 - accuracy: 0.92",
        {"loss": 0.25, "accuracy": 0.92},
        {"fraction": (938, 938)},
    ),
    ("10/938 ━━━━━━━━━━━ 3s 3ms/step - accuracy: 0.9 - loss: 0.2", {"accuracy": 0.9, "loss": 0.2}, {}),
    # bars and pairs of text
    (
        " iteration  100/  5000 | elapsed time per iteration (ms): 600.1 | learning rate: 1.0E-05 | lm loss: 9.41E+00 |",
        {"elapsed time per iteration": 600.1, "learning rate": 1e-5, "lm loss": 9.41},
        {"fraction": (100, 5000)},
    ),
    ("step=3 train/loss=0.5 acc=93.5%", {"train/loss": 0.5, "acc": 93.5}, {"step": 3}),
    ("第 3 轮 损失：0.52，准确率：93.5%", {"损失": 0.52, "准确率": 93.5}, {"epoch": 3}),
    ("ステップ: 10 損失: 0.5", {"損失": 0.5}, {"step": 10}),
    ("loss＝0.5 step=2", {"loss": 0.5}, {"step": 2}),
    (
        "Epoch [1][50/1000]\tlr: 2.000e-02, eta: 1:00:00, time: 0.5, memory: 2000, loss: 0.5",
        {"lr": 0.02, "loss": 0.5},
        {"epoch": 1, "fraction": (50, 1000)},
    ),
    (
        "Epoch: [0][  10/5005]\tTime  0.458 (  1.2)\tLoss 7.0093e+00 (7.0e+00)\tAcc@1   0.00 (  0.20)",
        {"Loss": 7.0093, "Acc@1": 0},
        {"epoch": 0, "fraction": (10, 5005)},
    ),
    ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.29", {"train/Loss": 2.29}, {"epoch": 1, "fraction": (640, 60000)}),
    (
        "Test set: Average loss: 0.0518, Accuracy: 9834/10000 (98%)",
        {"test/Average loss": 0.0518, "test/Accuracy": 98},
        {},
    ),
    ("Epoch [1/5], Step [100/600], Loss: 0.3125", {"Loss": 0.3125}, {"epoch": 1, "fraction": (100, 600)}),
    ("epoch   3  step    66  loss 0.1234  lr 0.0500", {"loss": 0.1234, "lr": 0.05}, {"step": 66, "epoch": 3}),
    (
        "[2026-01-01 12:30:45,123] INFO trainer.py:123 train loss: 0.5, val loss: 0.4",
        {"train loss": 0.5, "val loss": 0.4},
        {},
    ),
    ("val: loss=0.5 acc=0.9", {"val/loss": 0.5, "val/acc": 0.9}, {}),
    ("\x1b[32mINFO\x1b[0m loss=\x1b[1m0.5\x1b[0m", {"loss": 0.5}, {}),
    ("old loss=9\rloss=0.5", {"loss": 0.5}, {}),
    ("loss=inf grad: -inf", {"loss": math.inf, "grad": -math.inf}, {}),
    ("tokens: 1.5M loss: 1,234.5", {"tokens": 1.5e6, "loss": 1234.5}, {}),
    # the two known bugs of such parsers, the first one
    ("batch_cost: 0.51s", {"batch_cost": 0.51}, {}),
    # not metrics
    ("http://localhost:8000/ torch: 2.1.0 cuda:0 at 12:30 on 2026-01-02", {}, {}),
    ("seed=42 pid=77 rank: 0 eta: 3.5 version=2.0 port=29500", {}, {}),
    ("commit=3e5f9ab address=0x1f", {}, {}),
    ("I am rank 0 of 2.", {}, {}),
    ("epoch 3, step 66: loss 0.1234 on average", {}, {"step": 66}),
    ("", {}, {}),
]


@pytest.mark.parametrize(("line", "metrics", "more"), SAID, ids=[line[:40] for line, _metrics, _more in SAID])
def test_a_line_says(line: str, metrics: Metrics, more: dict[str, Any]) -> None:
    reading = read_line(line)
    assert {one.key: one.value for one in reading.metrics} == metrics
    assert {name: getattr(reading, name) for name in more} == more


def test_a_bare_nan_is_a_value() -> None:
    for line in ('{"step": 1, "loss": NaN}', "loss=nan", "{'loss': nan}"):
        [found] = read_line(line).metrics
        assert found.key == "loss" and math.isnan(found.value)


def test_what_is_left_out_is_named() -> None:
    assert read_line("loss=1 seed=3 eta: 4").ignored == [("seed", "denied"), ("eta", "denied")]


@pytest.mark.parametrize("text", ["1.2.3", "10:30", "0x1f", "2026-01-02", "3e5f9ab", "1_000", "7/9", "abc", "-"])
def test_this_is_no_number(text: str) -> None:
    assert numeral_at(text, 0) is None


HOSTILE = [
    "a" * 20_000,
    "a " * 10_000,
    "a=1 " * 5_000,
    "loss" * 5_000 + "=0.5",
    "{" * 20_000 + "}",
    '{"a":' * 4_000 + "}",
    "{'a': " + "(" * 3_000 + "}",
    "9" * 20_000,
    "(1/" * 6_000,
    "epoch " * 3_000,
    "=" * 20_000,
    " " * 19_000 + "=1",
    "1,234" * 4_000,
    "第" * 20_000,
    "\x1b[" * 10_000,
    "\x1b]" * 10_000,
    "1%|" * 7_000,
    "50%|" + "█" * 20_000,
]


@pytest.mark.parametrize("line", HOSTILE, ids=[line[:8] for line in HOSTILE])
def test_a_hostile_line_costs_no_more_than_a_long_one(line: str) -> None:
    """The second known bug: one unanchored name took 3.8 s. Compared with a harmless line of the same length."""

    def cost(text: str) -> float:
        best = math.inf
        for _try in range(3):
            began = time.perf_counter()
            read_line(text)
            best = min(best, time.perf_counter() - began)
        return best

    assert cost(line) < max(20 * cost("some words with loss=0.5 " * 800), 0.5)


def test_long_lines_are_cut_before_they_are_read() -> None:
    assert len(plain("x" * 20_000)) == 4096
    assert len(plain("{" + "x" * 200_000)) == 65536


# What is remembered between lines


def gather(*lines: str, room: int = 1000) -> Gathered:
    names: set[str] = set()

    def admit(key: str) -> bool:
        names.add(key)
        return len(names) <= room

    memory, gathered = Memory(admit=admit), Gathered()
    for number, line in enumerate(lines, start=1):
        memory.take(number, float(number), read_line(line), gathered)
    return gathered


def told(*lines: str, room: int = 1000) -> dict[str, list[tuple[int, float]]]:
    found = gather(*lines, room=room).points
    return {key: [(point.step, point.value) for point in points] for key, points in found.items()}


def test_a_name_is_believed_the_third_time_and_nothing_before_is_lost() -> None:
    assert told("step=1 loss=3", "step=2 loss=2") == {}
    assert told("step=1 loss=3", "step=2 loss=2", "step=3 loss=1") == {"loss": [(1, 3), (2, 2), (3, 1)]}


def test_an_object_that_names_its_step_is_believed_at_once() -> None:
    assert told('{"step": 9, "test/accuracy": 0.97}') == {"test/accuracy": [(9, 0.97)]}


def test_without_a_step_the_last_one_counts_else_the_epoch_else_the_line() -> None:
    assert told("loss=3", "nothing", "loss=2", "loss=1")["loss"] == [(1, 3), (3, 2), (4, 1)]
    assert told("Epoch 1: loss=3", "Epoch 2: loss=2", "Epoch 3: loss=1")["loss"] == [(1, 3), (2, 2), (3, 1)]
    lines = ["step=5 loss=3", "val_loss=9", "step=6 loss=2", "val_loss=8", "step=7 loss=1", "val_loss=7"]
    assert told(*lines)["val_loss"] == [(5, 9), (6, 8), (7, 7)]


def test_an_epoch_that_was_said_earlier_is_no_step_of_later_lines() -> None:
    lines = ["Epoch 1: loss=3", "acc=1", "acc=2", "Epoch 2: loss=2", "acc=3", "acc=4", "Epoch 3: loss=1"]
    found = told(*lines)
    assert found["acc"] == [(2, 1), (3, 2), (5, 3), (6, 4)]
    assert found["loss"] == [(1, 3), (2, 2), (3, 1)]


def test_the_epoch_of_a_line_is_a_series_of_its_own() -> None:
    lines = [f"epoch={epoch} step={10 * epoch} loss=1" for epoch in (1, 2, 3)]
    assert told(*lines)["epoch"] == [(10, 1), (20, 2), (30, 3)]


def test_bars_that_begin_anew_go_on_counting() -> None:
    line = "{0}%|██| {0}/100 [00:05<00:05, 9.8it/s, loss={1}]".format
    assert told(line(50, 3), line(100, 2), line(50, 1), line(100, 0.5))["loss"] == [
        (50, 3),
        (100, 2),
        (150, 1),
        (200, 0.5),
    ]


def test_a_shorter_bar_inside_moves_no_step() -> None:
    train = "50%|██| {0}/1000 [00:05<00:05, 9.8it/s, loss={1}]".format
    check = "50%|██| {0}/63 [00:01<00:01, 9.8it/s]".format
    evaluated = "{'eval_loss': 0.5, 'epoch': 1.0}"
    lines = [line for step in (10, 20, 30) for line in (train(step, 1), check(5), check(63), evaluated)]
    assert told(*lines)["eval_loss"] == [(10, 0.5), (20, 0.5), (30, 0.5)]


def test_steps_that_each_epoch_counts_anew_go_on() -> None:
    lines = ["epoch=1 step=1 loss=4", "epoch=1 step=2 loss=3", "epoch=2 step=1 loss=2", "epoch=2 step=2 loss=1"]
    assert told(*lines)["loss"] == [(1, 4), (2, 3), (3, 2), (4, 1)]


def test_progress_is_what_a_bar_shows() -> None:
    assert gather("50%|██| 500/1000 [00:05<00:05, 9.8it/s]").progress == {"step": 500, "total": 1000}


def test_no_more_names_than_there_is_room_for() -> None:
    lines = [f"step={step} a{key}=1" for key in range(5) for step in (1, 2, 3)]
    assert set(told(*lines, room=3)) == {"a0", "a1", "a2"}


def bar(place: int, total: int, *, postfix: str = "", name: str = "") -> str:
    return f"{name}50%|██| {place}/{total} [00:05<00:05, 9.8it/s{', ' + postfix if postfix else ''}]"


def test_a_longer_bar_before_the_training_is_not_its_round() -> None:
    lines = [bar(25_000, 50_000), bar(50_000, 50_000)]
    lines += [bar(place, 938, postfix=f"loss={loss}") for place, loss in ((94, 0.5), (188, 0.25), (938, 0.125))]
    lines += [bar(place, 938, postfix="loss=0.1") for place in (0, 94)]
    assert told(*lines)["loss"] == [(94, 0.5), (188, 0.25), (938, 0.125), (938, 0.1), (938 + 94, 0.1)]
    assert gather(*lines[:3]).progress == {"step": 94, "total": 938}


@pytest.mark.parametrize("said", [{}, {"name": "Validation: ", "postfix": "loss=2"}], ids=["bare", "with numbers"])
def test_a_longer_bar_after_each_epoch_moves_no_step(said: dict[str, str]) -> None:
    lines = []
    for _epoch in range(3):
        lines += [bar(place, 100, postfix="loss=1") for place in (50, 100)]
        lines += [bar(place, 400, **said) for place in (200, 400)]
    assert [step for step, _loss in told(*lines)["loss"]] == [50, 100, 150, 200, 250, 300]


def test_an_evaluation_before_the_training_is_not_its_round() -> None:
    lines = [bar(place, 400, name="Validation: ", postfix="loss=2") for place in (200, 400)]
    lines += [bar(place, 100, postfix="loss=1") for place in (25, 50, 75)]
    assert [step for step, _loss in told(*lines)["loss"]] == [25, 50, 75]


def test_of_two_bars_with_numbers_the_longer_is_the_round() -> None:
    lines = [bar(place, 10, postfix="loss=9") for place in (5, 10)]
    lines += [bar(place, 100, postfix="loss=1") for place in (25, 50)]
    lines += [bar(place, 10, postfix="loss=9") for place in (5, 10)]
    assert [step for step, _loss in told(*lines)["loss"]] == [5, 10, 25, 50, 50, 50]
