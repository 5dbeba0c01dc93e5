"""The shell around a command, as process 1 of a container and on this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.entry import shell_argv

CHECKPOINT = f"""{shlex.quote(sys.executable)} -c '
import signal, sys, time
def save(*_):
    time.sleep(0.3)
    open("saved", "w").write("all")
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
open("ready", "w")
time.sleep(60)
'"""
CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def can_be_process_1() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture(params=["here", "process 1"])
def around(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "here":
        return []
    if not can_be_process_1():
        pytest.skip("A process 1 of its own needs root and unshare; the tests on a real cluster have one.")
    return CONTAINER


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("echo a; exit 3", 3, "a\n"),
        ("false", 1, ""),
        ("no-such-program", 127, ""),
        ("echo \"it's\" 'quoted' $((1 + 1))", 0, "it's quoted 2\n"),
        ("set -e\nfalse\necho never", 1, ""),
        ("kill -KILL $$; sleep 5", None, ""),
        ("echo one |\n  cat -\nexec sh -c 'exit 66'", 66, "one\n"),
        ("if", 2, ""),
    ],
)
def test_it_ends_as_the_command_does(around: list[str], command: str, code: int | None, said: str) -> None:
    done = subprocess.run([*around, *shell_argv(command)], capture_output=True, text=True, timeout=20, check=False)
    assert done.stdout == said
    assert code is None or done.returncode == code, done.stderr


def test_process_1_tells_the_program_to_stop_and_waits_for_it(tmp_path: Path) -> None:
    if not can_be_process_1():
        pytest.skip("A process 1 of its own needs root and unshare; the tests on a real cluster have one.")
    notice = tmp_path / "notice"
    environment = {**os.environ, "TRAINHALL_NOTICE_FILE": str(notice), "TRAINHALL_STOP_GRACE": "20"}
    # a session of its own, as every container has: it tells its process group
    outside = subprocess.Popen(
        [*CONTAINER, *shell_argv(CHECKPOINT)], cwd=tmp_path, env=environment, start_new_session=True
    )
    try:
        wait_for(tmp_path / "ready")
        inside = int(Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()[0])
        os.kill(inside, signal.SIGTERM)
        assert outside.wait(10) == 75
    finally:
        outside.kill()
    assert (tmp_path / "saved").read_text() == "all"
    assert abs(int(notice.read_text()) - time.time() - 20) < 5


def test_elsewhere_who_stops_tells_the_whole_group(tmp_path: Path) -> None:
    outside = subprocess.Popen(shell_argv(CHECKPOINT), cwd=tmp_path, start_new_session=True)
    try:
        wait_for(tmp_path / "ready")
        os.killpg(outside.pid, signal.SIGTERM)
        assert outside.wait(10) == 75
    finally:
        outside.kill()
    assert (tmp_path / "saved").read_text() == "all"


def wait_for(path: Path) -> None:
    end = time.monotonic() + 15
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.05)
