"""B20: 1,000 submissions in 60 s become exactly 1,000 Jobs, with the worker killed midway, on a control plane with fake nodes.

The bars: none lost, none doubled; from sending to the Job p95 under 1 s, where no job has to wait for room and the worker lives.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from place import Table, p95

from deploy.devcluster.settings import CannotStart
from tests.cluster.control_plane import ControlPlane
from tests.cluster.flood import PODS, FloodHall, flooded_portal, lateness, lies, send

JOBS = int(os.environ.get("BENCH_SUBMISSIONS", "1000"))
SECONDS = float(os.environ.get("BENCH_SUBMISSIONS_SECONDS", "60"))

PATIENCE = 600.0
LATE, ANSWER = 1000.0, 500.0


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="bench-submit-"))
    folder.chmod(0o711)
    plane = ControlPlane(folder / "plane", fake_nodes=JOBS // PODS + 2)
    try:
        plane.up()
        with flooded_portal(folder, plane) as hall:
            time.sleep(10)
            return measure(hall)
    except CannotStart as reason:
        print(f"No control plane: {reason}")
        return 1
    finally:
        plane.down()
        shutil.rmtree(folder, ignore_errors=True)


def measure(hall: FloodHall) -> int:
    began = time.time()
    flood = send(hall, jobs=JOBS, seconds=SECONDS)
    answered = time.time() - began
    end = time.monotonic() + PATIENCE
    while len(hall.jobs_there()) < JOBS + 1 and time.monotonic() < end:
        time.sleep(0.5)
    wrong = lies(hall, flood, jobs=JOBS)
    late = lateness(hall, flood) if not any("no Job" in line for line in wrong) else {}
    table = Table(
        f"{JOBS:,} submissions in {SECONDS:.0f} s ({answered:.0f} s until all were answered), the worker killed midway"
    )
    for line in wrong:
        print(f"  WRONG: {line}")
    table.line("submission answered, p95", p95(list(flood.answered.values())) * 1000, ANSWER)
    if late:
        last = max(flood.sent[job] + seconds for job, seconds in late.items()) - began
        before = [1000 * one for job, one in late.items() if flood.sent[job] + one < flood.killed_at]
        print(f"  {JOBS:,} Jobs after {last:.0f} s; {len(before):,} of them before the worker was killed", flush=True)
        table.line("sent -> Job, median, before the kill", statistics.median(before), LATE)
        table.line("sent -> Job, p95, before the kill", p95(before), LATE)
        every = [1000 * one for one in late.values()]
        table.line("sent -> Job, p95, all", p95(every), LATE, beside=f"slowest {max(every):,.0f} ms")
    return 1 if table.missed or wrong or not late else 0


if __name__ == "__main__":
    sys.exit(main())
