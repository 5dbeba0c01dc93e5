"""Whole portals, each in a data folder of its own; whatever lives of one at the end is killed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.hall import Hall


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="trainhall-chaos-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def hall(folder: Path, request: pytest.FixtureRequest) -> Iterator[Hall]:
    hall = Hall(folder / "data")
    try:
        hall.start()
        yield hall
        if request.node.stash.get(FAILED, False):
            for log in sorted((hall.data / "logs").glob("*.log")):
                print(f"--- {log.name}", log.read_text(errors="replace")[-3000:], sep="\n")
    finally:
        hall.kill_all()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.when == "call":
        item.stash[FAILED] = report.failed
    return report
