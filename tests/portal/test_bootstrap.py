"""What `make run` says on a machine where something is missing: one plain sentence, before anything is made."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent
SH = shutil.which("sh") or "/bin/sh"


class Machine:
    """A PATH with nothing on it but what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands = folder / "bin of the machine"
        self.commands.mkdir()
        for tool in ("basename", "cat", "cksum", "rm"):
            (self.commands / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
        self.lock = folder / "empty.txt"
        self.lock.write_text("")
        self.venv = folder / "a venv"

    def command(self, name: str, script: str) -> None:
        path = self.commands / name
        path.write_text(f"#!{SH}\n{script}\n")
        path.chmod(0o755)

    def bootstrap(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv: Sequence[str] = [SH, str(CHECKOUT / "deploy/bootstrap.sh"), "python3", str(self.venv), str(self.lock)]
        return subprocess.run(
            [*argv, *arguments],
            env={"PATH": str(self.commands), "HOME": os.environ.get("HOME", "/")},
            capture_output=True,
            text=True,
            check=False,
        )

    def says(self, *arguments: str) -> str:
        answer = self.bootstrap(*arguments)
        assert answer.returncode == 1
        lines = (answer.stdout + answer.stderr).splitlines()
        assert len(lines) == 1, lines
        assert not self.venv.exists()
        return lines[0]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_no_python(machine: Machine) -> None:
    assert machine.says("8000").startswith("Trainhall needs Python 3.11 or newer, but no python3 was found.")


def test_an_old_python(machine: Machine) -> None:
    machine.command("python3", 'case $1 in --version) echo "Python 3.9.2";; *) exit 1;; esac')
    assert "but found is Python 3.9.2." in machine.says("8000")


def test_a_newer_python_under_another_name_is_found(machine: Machine) -> None:
    machine.command("python3", 'case $1 in --version) echo "Python 3.9.2";; *) exit 1;; esac')
    (machine.commands / "python3.12").symlink_to(sys.executable)
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        assert machine.says(str(port)).startswith(f"Port {port} cannot be used (Address already in use)")


def test_no_venv_module(machine: Machine) -> None:
    machine.command(
        "python3",
        f'case "$2" in *ensurepip*) echo "No module named ensurepip" >&2; exit 1;; esac; exec "{sys.executable}" "$@"',
    )
    assert machine.says().startswith("Python's venv module is missing: apt-get install python3-venv")


@pytest.mark.parametrize("port", ["abc", "0", "70000", "-1"])
def test_an_odd_port(machine: Machine, port: str) -> None:
    (machine.commands / "python3").symlink_to(sys.executable)
    assert machine.says(port) == f"PORT must be a whole number from 1 to 65535, not {port!r}."


def test_a_lock_is_installed_once_and_again_when_it_changes(machine: Machine) -> None:
    (machine.commands / "python3").symlink_to(sys.executable)
    first = machine.bootstrap()
    assert first.returncode == 0, first.stderr
    assert "Installing" in first.stdout
    assert machine.bootstrap().stdout == ""
    machine.lock.write_text("# another one\n")
    assert "Installing" in machine.bootstrap().stdout
