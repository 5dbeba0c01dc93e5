"""Takes 16 MiB more every step, until its memory limit ends it: the job page says OutOfMemory."""

from __future__ import annotations

import time

import trainhall

STEP = 16 * 2**20
held: list[bytearray] = []
while True:
    block = bytearray(STEP)
    block[::4096] = b"x" * len(block[::4096])  # memory that nobody has written to is not counted
    held.append(block)
    mebibytes = len(held) * STEP // 2**20
    print(f"holding {mebibytes} MiB", flush=True)
    trainhall.log({"memory/MiB": mebibytes}, step=len(held))
    time.sleep(0.2)
