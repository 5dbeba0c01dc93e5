"""The command line that the form shows is the job it shows: the command reads it back as the same document."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from trainhall.cli import make_parser
from trainhall.commands.submitting import fields_of

from jobs.form.commandline import submit_line

WHOLE: dict[str, Any] = {
    "namespace": "vision",
    "name": "a name with 'quotes'",
    "runtime": "numpy",
    "image": "other:1",
    "command": "python train.py --lr {{lr}}\nls $HOME",
    "parameters": {"lr": 0.1, "name": "$(id)", "flag": True},
    "env": {"A": "1", "B": "x y"},
    "resources": {"workers": 2, "gpus": 1, "gpu_type": "V100", "cpus": "4", "memory": "16Gi", "shm": "8Gi"},
    "launcher": "plain",
    "priority": "low",
    "preemptible": False,
    "time_limit": "4h",
    "retries": 1,
    "stop_grace": "30s",
    "notify": ["finished", "failed"],
    "tags": ["mnist", "two words"],
}


@pytest.mark.parametrize(
    "data", [WHOLE, {"command": "echo"}, {"command": "x", "secrets": {"HF_TOKEN": {"value": "x"}}}]
)
def test_it_is_read_back_as_that_job(data: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "x")
    words = shlex.split(submit_line(data))[1:]
    at = words.index("--")
    chosen = make_parser().parse_args(words[:at])
    chosen.command_words = words[at + 1 :]
    assert fields_of(chosen) == data


def test_code_is_named_as_the_command_takes_it() -> None:
    assert "--git https://git.example.com/r --ref main --" in submit_line(
        {"command": "x", "code": {"git": "https://git.example.com/r", "ref": "main"}}
    )
    assert "--code ." in submit_line({"command": "x", "code": {"upload": "a" * 64}})
    assert "--code a.py --code b.py" in submit_line({"command": "x", "code": {"files": {"a.py": "", "b.py": ""}}})
    assert "--code ." in submit_line({"command": "x", "code": {"files": {"a.py": "", "pack/b.py": ""}}})
