"""Metric files beside a training: JSON lines and CSV as trainers write them, while they write, and nothing that is no metric."""

from __future__ import annotations

import csv
import json
import os
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from trainhall import metric_rows
from trainhall.metric_files import LONGEST_LINE, PATIENCE, MetricFile
from trainhall.metric_folders import MetricFolders
from trainhall.metric_rows import Row, moment_of, row_of

from metrics.doors import words


class Training:
    """A folder in which a training writes, and what the agent has read of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders = MetricFolders([str(root)], time.time() - 60)
        self.told: list[tuple[str, int, float]] = []

    def look(self, *, last: bool = False) -> list[tuple[str, int, float]]:
        self.folders._walked = float("-inf")
        found = [(key, told.step, value) for told in self.folders.read(last=last) for key, value in told.pairs]
        self.told += found
        return found

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a") as file:
            file.write(text)
        return path


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


def from_before(path: Path) -> None:
    os.utime(path, (time.time() - 3600,) * 2)


# What trainers write


def test_the_hugging_face_log_of_llama_factory(training: Training) -> None:
    line = {"current_steps": 10, "total_steps": 300, "loss": 1.5, "lr": 5e-5, "epoch": 0.1, "percentage": 3.3}
    training.write("saves/trainer_log.jsonl", json.dumps(line | {"elapsed_time": "0:00:07"}) + "\n")
    assert sorted(training.look()) == [("epoch", 10, 0.1), ("loss", 10, 1.5), ("lr", 10, 5e-5)]
    assert training.folders.progress == {"step": 10, "total": 300}


def test_the_csv_of_lightning_with_empty_cells_and_columns_that_come_later(training: Training) -> None:
    path = training.write("lightning_logs/version_0/metrics.csv", "epoch,step,train_loss\n0,49,0.9\n0,99,0.8\n")
    assert training.look() == [
        ("train_loss", 49, 0.9),
        ("epoch", 49, 0.0),
        ("train_loss", 99, 0.8),
        ("epoch", 99, 0.0),
    ]
    # a new column: Lightning writes the file anew, old rows first
    path.write_text("epoch,step,train_loss,val_loss\n0,49,0.9,\n0,99,0.8,\n0,99,,0.7\n1,149,0.6,\n")
    assert training.look() == [("val_loss", 99, 0.7), ("epoch", 99, 0.0), ("train_loss", 149, 0.6), ("epoch", 149, 1.0)]


def test_the_csv_of_keras_and_of_ultralytics(training: Training) -> None:
    training.write("training.log", "epoch,accuracy,loss\n0,0.5,0.9\n1,0.6,nan\n")
    [first, second, third, fourth] = training.look()
    assert (first, second, third) == (("accuracy", 0, 0.5), ("loss", 0, 0.9), ("accuracy", 1, 0.6))
    assert fourth[:2] == ("loss", 1) and fourth[2] != fourth[2]
    training.write("runs/detect/results.csv", "      epoch,    train/box_loss,  time\n      1,   1.25,  9.5\n")
    assert training.look() == [("runs/detect/train/box_loss", 1, 1.25)]


def test_openmmlab_and_stable_baselines(tmp_path: Path) -> None:
    one = Training(tmp_path / "mm")
    one.write("work/vis_data/scalars.json", '{"lr": 0.1, "loss": 2, "time": 0.3, "epoch": 1, "iter": 5, "step": 5}\n')
    assert sorted(one.look()) == [("epoch", 5, 1.0), ("loss", 5, 2.0), ("lr", 5, 0.1)]
    other = Training(tmp_path / "sb")
    other.write("progress.csv", "time/iterations,time/total_timesteps,rollout/ep_rew_mean\n1,2048,12.5\n")
    assert other.look() == [("rollout/ep_rew_mean", 2048, 12.5)]


@pytest.mark.parametrize(
    ("data", "row"),
    [
        ({"step": 3, "loss": 0.5}, Row(3, None, [("loss", 0.5)], None)),
        ({"step": 3, "val": {"acc": "0.9"}}, Row(3, None, [("val/acc", 0.9)], None)),
        ({"step": 3, "metrics": {"acc": 1}}, Row(3, None, [("acc", 1.0)], None)),
        ({"epoch": 2, "mode": "val", "loss": 1}, Row(2, None, [("val/loss", 1.0)], None)),
        ({"step": 3.0, "_timestamp": 1.7e9, "loss": 1}, Row(3, 1.7e9, [("loss", 1.0)], None)),
        ({"step": 3.5, "loss": 1}, None),
        ({"step": -1, "loss": 1}, None),
        ({"step": float("nan"), "loss": 1}, None),
        ({"step": 10**400, "loss": 1}, None),
        ({"step": True, "loss": 1}, None),
        ({"step": 3, "loss": True, "note": "0.5 or so", "seed": 7}, None),
        ({"loss": 1}, None),
        ({"step": 3, "a\nb": 1, "k" * 300: 1}, None),
    ],
)
def test_a_row(data: dict[str, Any], row: Row | None) -> None:
    assert row_of(data.items()) == row


def test_times() -> None:
    assert moment_of(1_700_000_000_123) == 1_700_000_000.123
    assert moment_of("2026-11-30T12:00:00Z") == 1_796_040_000
    assert [moment_of(value) for value in (9.5, "0:00:07", "yesterday at about noon", None)] == [None] * 4


def test_the_words_are_those_of_the_stdout_door() -> None:
    assert set(metric_rows.STEP) >= words.STEP
    assert set(metric_rows.EPOCH) >= words.EPOCH
    assert set(metric_rows.TOTAL) >= words.TOTAL
    assert metric_rows.DENIED >= words.DENIED
    assert metric_rows.PARTS == words.PARTS


# While it is written


def test_a_line_that_has_no_end_yet_waits(training: Training) -> None:
    training.write("metrics.jsonl", '{"step": 1, "loss": 0.5}\n{"step": 2, "lo')
    assert training.look() == [("loss", 1, 0.5)]
    assert training.look() == []
    training.write("metrics.jsonl", 'ss": 0.25}')
    assert training.look() == []
    assert training.look(last=True) == [("loss", 2, 0.25)]


def test_the_end_of_a_csv_row_is_never_guessed(training: Training) -> None:
    training.write("metrics.csv", "step,loss\n1,0.5\n2,0.12")
    assert training.look(last=True) == [("loss", 1, 0.5)]


def test_a_file_that_begins_anew_is_told_anew_and_nothing_twice(training: Training) -> None:
    path = training.write("metrics.csv", "step,loss\n1,0.5\n2,0.4\n3,0.3\n")
    training.look()
    path.write_text("step,loss\n1,0.5\n2,0.4\n")  # the same again, shorter for a moment
    assert training.look() == []
    training.write("metrics.csv", "3,0.3\n4,0.2\n")
    assert training.look() == [("loss", 4, 0.2)]
    other = training.root / "new"
    other.write_text("step,loss\n1,0.9\n2,0.8\n3,0.7\n4,0.2\n5,0.1\n")  # another run, put in its place
    os.replace(other, path)
    assert training.look() == [("loss", 1, 0.9), ("loss", 2, 0.8), ("loss", 3, 0.7), ("loss", 4, 0.2), ("loss", 5, 0.1)]


def test_a_file_written_whole_each_time_is_told_once(training: Training) -> None:
    rows: list[dict[str, float]] = []
    for step in range(20):
        rows.append({"step": step, "loss": 1 / (step + 1)})
        with open(training.root / "metrics.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, ["step", "loss"])
            writer.writeheader()
            writer.writerows(rows)
        training.look()
    assert training.told == [("loss", row["step"], row["loss"]) for row in rows]


def test_what_an_earlier_run_wrote_is_not_told(training: Training) -> None:
    path = training.write("metrics.csv", "step,loss\n1,0.5\n2,0.4\n")
    from_before(path)
    assert training.look() == []
    training.write("metrics.csv", "3,0.3\n")
    assert training.look() == [("loss", 3, 0.3)]
    path.write_text("step,loss,acc\n1,0.5,\n2,0.4,\n3,0.3,\n3,,0.9\n")  # its header is new, and old rows are copied
    assert training.look() == [("acc", 3, 0.9)]


# No metric


def test_a_table_that_was_copied_is_not_taken_for_metrics(training: Training) -> None:
    training.write("out/grid.csv", "step,loss\n1,0.5\n2,0.4\n3,0.3\n")
    training.look()
    training.look()
    assert training.look(last=True) == []


def test_one_of_an_unknown_name_that_grows_counts_from_its_first_row(training: Training) -> None:
    training.write("out/my-run.csv", "step,loss\n1,0.5\n")
    assert training.look() == []
    training.write("out/my-run.csv", "2,0.4\n")
    assert training.look() == [], "not sure yet"
    training.write("out/my-run.csv", "3,0.3\n")
    assert training.look() == [("loss", 1, 0.5), ("loss", 2, 0.4), ("loss", 3, 0.3)]


@pytest.mark.parametrize(
    "rows",
    [
        "step,type,amount\n1,PAYMENT,9839\n1,PAYMENT,1864\n1,TRANSFER,181\n2,PAYMENT,3\n3,PAYMENT,4\n4,PAYMENT,5\n",
        "epoch,value\n3,0.5\n1,0.4\n2,0.3\n4,0.1\n",
        "step,value\n0.25,0.5\n0.5,0.4\n0.75,0.3\n1,0.1\n",
        "id,label\n1,2\n2,3\n3,4\n",
        "1,2\n3,4\n5,6\n",
        "not a table\n" * 5,
    ],
)
def test_data_that_is_being_downloaded_is_given_up(training: Training, rows: str) -> None:
    lines = rows.splitlines(keepends=True)
    for line in lines:
        training.write("download.csv", line)
        training.look()
    assert training.told == []


def test_json_lines_without_steps_are_given_up_soon(training: Training) -> None:
    line = json.dumps({"text": "x" * 500, "label": 3}) + "\n"
    path = training.write("train.jsonl", line)
    training.look()
    for _piece in range(4):
        training.write("train.jsonl", line * 100)
        training.look()
    file = training.folders.files[str(path)]
    assert file.is_given_up and training.told == []
    assert file.position <= 2 * PATIENCE + len(line) * 100


def test_folders_of_data_and_links_are_left_alone(training: Training, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = '{"step": 1, "loss": 0.5}\n'
    training.write("data/metrics.jsonl", text)
    training.write(".hidden/metrics.jsonl", text)
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "metrics.jsonl"
    elsewhere.write_text(text)
    os.symlink(elsewhere, training.root / "metrics.jsonl")
    os.mkfifo(training.root / "metrics.csv")
    assert training.look(last=True) == []


def test_hostile_lines_cost_bounded_memory_and_do_no_harm(training: Training) -> None:
    path = training.root / "metrics.jsonl"
    with open(path, "wb") as file:
        file.write(b'{"step": 1, "loss": 0.5}\n')
        for _megabyte in range(48):
            file.write(b"\xff" * 2**20)
        file.write(b'\n{"step": 2, "loss": 0.25}\n' + b"[" * LONGEST_LINE + b"\n" + b'{"a":' * 5000 + b"}\n")
        file.write(b'{"step": 9' + b"9" * 5000 + b', "loss": 1}\n\x00\n{"step": 3, "loss": 1e999}\n')
        file.write(
            json.dumps({"step": 4, **{f"k{number}": number for number in range(5000)}}).encode()[:60_000] + b"}\n"
        )
    tracemalloc.start()
    training.look()
    _now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert training.told == [("loss", 1, 0.5), ("loss", 2, 0.25), ("loss", 3, float("inf"))]
    assert most < 16 * 2**20


def test_a_file_gives_at_most_so_many_names(training: Training) -> None:
    for step in range(20):
        names = {f"k{step}-{number}": number for number in range(100)}
        training.write("metrics.jsonl", json.dumps({"step": step, **names}) + "\n")
    training.look()
    assert len({key for key, _step, _value in training.told}) == 500


# Names


def test_two_files_never_tell_one_name(training: Training) -> None:
    training.write("logs/train.csv", "step,loss\n")
    training.write("logs/val.csv", "step,loss\n")
    training.look()
    for step in range(3):
        training.write("logs/train.csv", f"{step},1\n")
        training.write("logs/val.csv", f"{step},2\n")
    training.look()
    assert {(key, value) for key, _step, value in training.told} == {("train/loss", 1.0), ("val/loss", 2.0)}


def test_versions_of_one_run_stand_apart(training: Training) -> None:
    for version in range(2):
        training.write(f"lightning_logs/version_{version}/metrics.csv", f"step,loss\n1,0.{version}\n")
    assert training.look() == [("loss", 1, 0.0), ("lightning_logs/version_1/loss", 1, 0.1)]


# Taking over


def test_another_agent_goes_on_where_the_first_was(training: Training) -> None:
    path = training.write("metrics.csv", "step,loss\n1,0.5\n2,0.4\n")
    training.look()
    state = json.loads(json.dumps(training.folders.state()))
    after = Training(training.root)
    after.folders.restore(state)
    assert after.look() == []
    training.write("metrics.csv", "3,0.3\n")
    assert after.look() == [("loss", 3, 0.3)]
    path.write_text("step,loss,acc\n1,0.5,\n2,0.4,\n3,0.3,\n4,,0.9\n")
    assert after.look() == [("acc", 4, 0.9)]


def test_a_file_put_in_place_between_two_agents_is_read_anew(training: Training) -> None:
    path = training.write("metrics.jsonl", '{"step": 1, "loss": 0.5}\n')
    training.look()
    state = training.folders.state()
    path.write_text('{"step": 1, "loss": 0.9}\n{"step": 2, "loss": 0.8}\n')
    after = Training(training.root)
    after.folders.restore(state)
    assert after.look() == [("loss", 1, 0.9), ("loss", 2, 0.8)]


def test_a_file_that_is_not_sure_yet_is_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("step,loss\n1,0.5\n2,0.4\n")
    first = MetricFile(str(path))
    assert first.read() == []
    second = MetricFile(str(path))
    second.restore(first.state())
    with open(path, "a") as file:
        file.write("3,0.3\n")
    assert [row.step for row in second.read()] == [1, 2, 3]
