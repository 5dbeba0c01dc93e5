"""For the SDK's tests: its package on the path, a door for its points, and child processes that think they are in a job."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "sdk"
sys.path.insert(0, str(SDK))
sys.path.insert(0, str(Path(__file__).parent))

from door import Door  # noqa: E402 - the path is set above

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def door() -> Iterator[Door]:
    with Door() as opened:
        yield opened


@pytest.fixture
def job_env(tmp_path: Path, door: Door) -> dict[str, str]:
    """What a pod has in its environment."""
    token = tmp_path / "token"
    token.write_text("ta_job.1.secret\n")
    for name in ("out", "ckpt"):
        (tmp_path / name).mkdir()
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SDK),
        "PYTHONUNBUFFERED": "1",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "TRAINHALL_URL": door.url,
        "TRAINHALL_JOB_ID": "b2c3d4f5g6",
        "TRAINHALL_ATTEMPT": "1",
        "TRAINHALL_TOKEN_FILE": str(token),
        "TRAINHALL_OUTPUT_DIR": str(tmp_path / "out"),
        "TRAINHALL_CHECKPOINT_DIR": str(tmp_path / "ckpt"),
        "TRAINHALL_NOTICE_FILE": str(tmp_path / "notice"),
    }


@pytest.fixture
def run_python(tmp_path: Path, job_env: dict[str, str]) -> Run:
    """Run a piece of Python as a job's program."""

    def run(code: str, *, timeout: float = 60, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**job_env, **env},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def outside(job_env: dict[str, str]) -> dict[str, str]:
    """The environment of a person's own machine."""
    return {name: value for name, value in job_env.items() if not name.startswith("TRAINHALL_")}


def lines_of(result: Any) -> list[str]:
    return [line for line in result.stderr.splitlines() if line]
