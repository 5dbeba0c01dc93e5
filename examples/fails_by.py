"""Fails in the way that is asked for, to see how the job page tells it: python fails_by.py import"""

from __future__ import annotations

import importlib
import math
import os
import pathlib
import signal
import sys
import time

import trainhall

GPU_MEMORY = (
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.10 GiB is free."
)


def fail(how: str) -> None:
    if how == "import":
        importlib.import_module("a_module_that_is_not_there")
    elif how == "file":
        print(pathlib.Path("/data/labels.csv").read_text())
    elif how == "variable":
        os.environ["A_KEY_NOBODY_SET"]
    elif how == "disk":
        with open("/dev/full", "w") as file:  # a disk without room, on every Linux
            file.write("a checkpoint")
    elif how == "gpu-memory":
        raise RuntimeError(GPU_MEMORY)  # what torch says; no GPU is needed to read it
    elif how == "nan":
        trainhall.log({"train/loss": math.nan}, step=5)
        sys.exit("Loss is nan, stopping training")
    elif how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif how == "one-of-two":
        if trainhall.rank() == 1:
            raise ValueError("sample 4,711 is broken")
        time.sleep(600)


if __name__ == "__main__":
    for step in range(5):
        print(f"step {step}", flush=True)
        trainhall.log({"train/loss": 1 / (step + 1)}, step=step)
    fail(sys.argv[1])
