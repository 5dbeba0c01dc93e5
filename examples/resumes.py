"""Counts, saves when it is asked to stop, and goes on from there: hold the job, release it, and see the step go on.

TRAINHALL_RESUME_FROM names the newest complete checkpoint of the job from its second attempt on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import trainhall

STEPS = 600
STOPPED = 75  # the exit code that says: stopped on request, and what was done is saved
FOLDER = Path(os.environ.get("TRAINHALL_CHECKPOINT_DIR", "."))
asked: list[int] = []


def save(step: int) -> None:
    """Written beside it and renamed, so that a kill in between leaves the last complete one."""
    new = FOLDER / f"step-{step}.json.tmp"
    new.write_text(json.dumps({"step": step}))
    os.replace(new, FOLDER / f"step-{step}.json")


def load() -> int:
    path = os.environ.get("TRAINHALL_RESUME_FROM")
    return int(json.loads(Path(path).read_text())["step"]) if path else 0


signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
first = load() + 1
print(f"first step {first}", flush=True)
for step in range(first, STEPS + 1):
    trainhall.log({"steps/done": step}, step=step)
    trainhall.progress(step, STEPS)
    if asked or step % 50 == 0:
        save(step)
    if asked:
        print(f"saved at step {step}", flush=True)
        sys.exit(STOPPED)
    time.sleep(0.1)
print("done", flush=True)
