"""Two processes of one job, each with a rank of its own and reporting its own loss: the chart shows a line per rank."""

from __future__ import annotations

import math
import random
import time

import trainhall

STEPS = 200

rank, size = trainhall.rank(), trainhall.world_size()
print(f"I am rank {rank} of {size}.", flush=True)
noise = random.Random(rank)
for step in range(STEPS):
    # each rank sees its own part of the data, so each has a loss of its own
    loss = 2 * math.exp(-step / (60 + 20 * rank)) + noise.uniform(0, 0.1)
    trainhall.log({"train/loss": loss}, step=step)
    trainhall.progress(step + 1, STEPS)
    if step % 20 == 0:
        print(f"rank {rank} step {step} loss {loss:.4f}", flush=True)
    time.sleep(0.1)
