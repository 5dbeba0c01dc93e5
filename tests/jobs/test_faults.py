"""A planted fault strikes once, and only whom it is meant for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("words", "dies"), [("", True), ("watch_cluster", True), ("uvicorn", False)])
def test_a_point_kills_the_process_that_its_words_name(tmp_path: Path, words: str, dies: bool) -> None:
    planted = tmp_path / "move.before_commit"
    planted.write_text(words)

    assert (_comes_to("move.before_commit", tmp_path) == -signal.SIGKILL) == dies
    assert planted.exists() != dies
    assert _comes_to("move.before_commit", tmp_path) == 0


def _comes_to(point: str, folder: Path) -> int:
    """The exit code of a process that was started as the watcher is, by its words."""
    code = f"from jobs import faults; faults.point({point!r})"
    environment = {**os.environ, "TRAINHALL_FAULT_DIR": str(folder)}
    command = [sys.executable, "-c", code, "manage.py", "watch_cluster"]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
