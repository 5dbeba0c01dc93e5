"""Start a pod's runner so that it belongs to nobody: it outlives whoever asked, and is never anyone's zombie."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from jobs.cluster.local.layout import PodFolder

CODE = Path(__file__).resolve().parents[3]  # the folder that `jobs` is imported from

# The shell puts it in the background and ends at once, so the runner's parent becomes process 1.
_DETACH = '"$@" </dev/null >>"$RUNNER_LOG" 2>&1 &'


def runner(pod: PodFolder, *, python: str) -> None:
    """Start it and return. Safe to repeat: a second runner of a pod leaves at once."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "RUNNER_LOG": str(pod.runner_log)}
    if "TRAINHALL_FAULT_DIR" in os.environ:
        environment["TRAINHALL_FAULT_DIR"] = os.environ["TRAINHALL_FAULT_DIR"]
    # -S and -E: no site-packages and no PYTHON* of ours; the runner needs neither and starts faster
    command = [python, "-S", "-E", "-m", "jobs.cluster.local.runner", str(pod.path)]
    subprocess.run(
        ["/bin/sh", "-c", _DETACH, "sh", *command],
        cwd=CODE,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
    )
