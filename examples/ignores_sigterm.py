"""Ignores the request to stop. Stopping it takes the whole grace of the job; then it is killed."""

from __future__ import annotations

import itertools
import signal
import time

import trainhall


def hear(*_signal: object) -> None:
    print("I was asked to stop, and will not.", flush=True)


signal.signal(signal.SIGTERM, hear)
for step in itertools.count():
    deadline = trainhall.notice()
    left = f", {deadline - time.time():.0f} s left" if deadline else ""
    print(f"step {step}{left}", flush=True)
    trainhall.log({"steps/done": step}, step=step)
    time.sleep(1)
