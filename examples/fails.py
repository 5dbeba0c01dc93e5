"""Fails by an exception after a few steps: the job page shows the traceback and the last lines."""

from __future__ import annotations

import time

import trainhall

rows = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6], [0.5, 0.5]]
for step, row in enumerate(rows):
    print(f"step {step}: {len(row)} columns", flush=True)
    trainhall.log({"train/loss": row[0]}, step=step)
    trainhall.log({"train/error": row[1]}, step=step)  # the fourth row has one column only
    time.sleep(1)
