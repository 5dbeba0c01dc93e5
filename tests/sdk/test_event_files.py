"""Event files as tensorboardX writes them, read while they grow, torn, damaged and replaced."""

from __future__ import annotations

import math
import os
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboardX import SummaryWriter
from tensorboardX.proto import event_pb2, summary_pb2, tensor_pb2
from trainhall import event_files
from trainhall.event_files import PATIENCE, EventFile, Scalar, crc32c, masked
from trainhall.event_folders import EventFolders


def tensor_event(tag: str, value: float, step: int) -> Any:
    """As TensorFlow 2 writes a scalar; only the first one of a tag says that it is one."""
    metadata = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="scalars"))
    content = np.float32(value).tobytes()
    tensor = tensor_pb2.TensorProto(
        dtype="DT_FLOAT", **({"tensor_content": content} if step % 2 else {"float_val": [value]})
    )
    one = summary_pb2.Summary.Value(tag=tag, tensor=tensor, metadata=metadata if step == 1 else None)
    return event_pb2.Event(step=step, wall_time=1000.5 + step, summary=summary_pb2.Summary(value=[one]))


def single(value: float) -> float:
    return float(np.float32(value))


def told(scalars: list[Scalar]) -> list[tuple[str, int, float]]:
    return [(one.tag, one.step, one.value) for one in scalars]


def file_in(folder: Path) -> Path:
    [path] = folder.glob("**/*tfevents*")
    return path


@pytest.fixture
def written(tmp_path: Path) -> Path:
    with SummaryWriter(str(tmp_path / "tb")) as writer:
        for step in range(1, 6):
            writer.add_scalar("train/loss", 1 / step, step, walltime=1000.5 + step)
            writer.file_writer.event_writer.add_event(tensor_event("new", step / 10, step))
            writer.add_histogram("weights", np.arange(9.0), step)
            writer.add_text("note", "nothing", step)
    return file_in(tmp_path)


def test_both_kinds_of_scalars_are_read_and_nothing_else(written: Path) -> None:
    found = EventFile(str(written)).read()
    losses = [(step, single(1 / step)) for step in range(1, 6)]
    assert [(step, value) for tag, step, value in told(found) if tag == "train/loss"] == losses
    assert [(step, value) for tag, step, value in told(found) if tag == "new"] == [
        (step, single(step / 10)) for step in range(1, 6)
    ]
    assert {one.tag for one in found} == {"train/loss", "new"}
    assert [one.time for one in found if one.tag == "train/loss"] == [1000.5 + step for step in range(1, 6)]


def test_a_file_that_grows_by_any_number_of_bytes_is_read_once(written: Path, tmp_path: Path) -> None:
    body, growing, dice = written.read_bytes(), tmp_path / "growing", random.Random(3)
    whole = told(EventFile(str(written)).read())
    growing.touch()
    reader, found = EventFile(str(growing)), []
    while body:
        cut = dice.randint(1, 40)
        with growing.open("ab") as file:
            file.write(body[:cut])
        body = body[cut:]
        found += told(reader.read())
    assert found == whole


def test_values_that_are_not_finite_arrive(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as writer:
        for step, value in enumerate([math.nan, math.inf, -math.inf]):
            writer.add_scalar("loss", value, step)
    values = [one.value for one in EventFile(str(file_in(tmp_path))).read()]
    assert math.isnan(values[0]) and values[1:] == [math.inf, -math.inf]


def test_a_damaged_record_ends_the_file_after_some_patience(written: Path) -> None:
    body = bytearray(written.read_bytes())
    whole = told(EventFile(str(written)).read())
    body[-20] ^= 0xFF
    written.write_bytes(body)
    reader = EventFile(str(written))
    found = told(reader.read())
    assert found == whole[: len(found)] and len(found) >= len(whole) - 2
    for _look in range(PATIENCE):
        assert reader.read() == []
    assert reader.is_given_up


def test_a_record_that_was_only_half_flushed_is_read_when_it_is_whole(written: Path) -> None:
    body = written.read_bytes()
    whole = told(EventFile(str(written)).read())
    written.write_bytes(body[:-30] + bytes(30))  # the file system shows the length before the bytes
    reader = EventFile(str(written))
    found = told(reader.read())
    written.write_bytes(body)
    assert found + told(reader.read()) == whole


def test_a_file_that_was_written_anew_is_read_from_its_beginning(written: Path) -> None:
    reader = EventFile(str(written))
    reader.read()
    half = written.read_bytes()[: written.stat().st_size // 2]
    written.write_bytes(half)
    assert told(reader.read()) == told(EventFile(str(written)).read()) != []


def test_noise_is_no_event(tmp_path: Path) -> None:
    noise = random.Random(5)
    for length in (1, 11, 12, 100, 5000):
        (tmp_path / "x").write_bytes(noise.randbytes(length))
        assert EventFile(str(tmp_path / "x")).read() == []
    record = noise.randbytes(60)  # well framed, but no protobuf
    header = struct.pack("<Q", len(record))
    frame = header + struct.pack("<I", masked(crc32c(header))) + record + struct.pack("<I", masked(crc32c(record)))
    (tmp_path / "x").write_bytes(frame)
    reader = EventFile(str(tmp_path / "x"))
    for _look in range(PATIENCE):
        reader.read()
    assert reader.is_given_up or reader.position == len(frame)


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


# Folders


def names(folders: EventFolders) -> list[str]:
    return sorted({key for key, _scalar in folders.read(last=True)})


def write(folder: Path, **tags: float) -> Any:
    with SummaryWriter(str(folder)) as writer:
        for tag, value in tags.items():
            writer.add_scalar(tag, value, 1)


def test_the_first_folder_gives_no_name_and_folders_below_it_do(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "runs" / "Nov30_09-24-55_host")) as writer:
        writer.add_scalar("loss", 1.0, 1)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 1)
    assert names(EventFolders([str(tmp_path)], since=0)) == ["both/a/both", "both/b/both", "loss"]


def test_folders_for_parts_of_the_data_name_them(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "train", loss=1)
    write(tmp_path / "logs" / "validation", loss=1)
    assert names(EventFolders([str(tmp_path)], since=0)) == ["train/loss", "validation/loss"]


def test_a_second_run_has_a_name(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "a", loss=1)
    folders = EventFolders([str(tmp_path)], since=0)
    assert names(folders) == ["loss"]
    write(tmp_path / "runs" / "b", loss=1)
    assert names(folders) == ["b/loss"]


def test_what_an_earlier_run_wrote_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "old", loss=1)
    old = file_in(tmp_path)
    os.utime(old, (1000, 1000))
    folders = EventFolders([str(tmp_path)], since=2000)
    assert names(folders) == []
    write(tmp_path / "new", loss=1)
    assert names(folders) == ["loss"]


def test_environments_and_hidden_folders_are_left_out(tmp_path: Path) -> None:
    for folder in (".cache", "node_modules", "env/lib"):
        write(tmp_path / folder, loss=1)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    os.symlink(tmp_path, tmp_path / "loop")
    assert names(EventFolders([str(tmp_path)], since=0)) == []


def test_the_last_look_goes_past_megabytes_without_a_scalar(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(event_files, "MOST_AT_ONCE", 4096)
    with SummaryWriter(str(tmp_path)) as writer:
        for step in range(50):
            writer.add_text("note", "x" * 1000, step)
        writer.add_scalar("loss", 1.0, 50)
    assert names(EventFolders([str(tmp_path)], since=0)) == ["loss"]


def test_the_last_look_ends_at_a_record_that_is_not_whole(written: Path) -> None:
    written.write_bytes(written.read_bytes()[:-3])
    assert "train/loss" in names(EventFolders([str(written.parent)], since=0))
