"""B20 at a size for every run: as many Jobs as submissions, with a worker killed in between. bench_submissions.py has 1,000."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.flood import FloodHall, flooded_portal, lies, send
from tests.portal.running import until

pytestmark = pytest.mark.cluster

JOBS, SECONDS = 60, 6.0


@pytest.fixture
def hall(plane: ControlPlane) -> Iterator[FloodHall]:
    folder = Path(tempfile.mkdtemp(prefix="trainhall-flood-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when the tests run as root
    try:
        with flooded_portal(folder, plane) as hall:
            yield hall
    finally:
        shutil.rmtree(folder)


def test_each_submission_becomes_one_job_whatever_dies(hall: FloodHall) -> None:
    flood = send(hall, jobs=JOBS, seconds=SECONDS)
    assert flood.killed_at and len(flood.twice) == JOBS // 10
    until(lambda: len(hall.jobs_there()) == JOBS + 1, seconds=90, what=f"{JOBS} Jobs are there")
    assert lies(hall, flood, jobs=JOBS) == []
