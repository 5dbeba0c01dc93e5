"""What the portal serves for pip and mounts into pods."""

from __future__ import annotations

import io
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from portal import wheel


def test_the_same_bytes_every_time() -> None:
    first = wheel.wheel_bytes()
    wheel.wheel_bytes.cache_clear()
    assert wheel.wheel_bytes() == first
    assert wheel.wheel_name() == f"trainhall-{wheel.version()}-py3-none-any.whl"


def test_pip_installs_it_and_the_command_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    venv.create(folder, with_pip=True)
    path = tmp_path / wheel.wheel_name()
    path.write_bytes(wheel.wheel_bytes())
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(path)]
    subprocess.run(pip, check=True, capture_output=True)
    said = subprocess.run([str(folder / "bin" / "trainhall"), "--help"], check=True, capture_output=True, text=True)
    assert "submit a job" in said.stdout
    checked = subprocess.run(
        [str(folder / "bin" / "python"), "-m", "pip", "uninstall", "-y", "trainhall"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "Successfully uninstalled trainhall" in checked.stdout


def test_it_is_imported_from_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "trainhall.zip"
    path.write_bytes(wheel.zip_bytes())
    code = "import trainhall; trainhall.log(a=1); trainhall.Client; print(trainhall.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(path)}, check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith(str(path))


def test_only_sources_are_in_it() -> None:
    names = zipfile.ZipFile(io.BytesIO(wheel.zip_bytes())).namelist()
    assert all(name.startswith("trainhall/") and name.endswith(".py") for name in names)
    assert "trainhall/commands/submitting.py" in names


def test_importing_loads_nothing_heavy() -> None:
    heavy = {"json", "http.client", "urllib", "ssl", "argparse", "tempfile", "zipfile", "numpy"}
    code = "import sys; before = set(sys.modules); import trainhall; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(wheel.PACKAGE.parent)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert not heavy & set(done.stdout.split())
