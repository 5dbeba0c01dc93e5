"""Named places where a test may kill the process, to show that a crash there is repaired (RELIABILITY F01).

Does nothing unless TRAINHALL_FAULT_DIR names a folder that holds a file called like the point: the file is taken away, so a
fault strikes once, and the process ends as by kill -9. Words in the file say whose fault it is: a process that was not started
with them passes by. Standard library only: the local cluster's runner imports this.
"""

from __future__ import annotations

import os
import signal
import sys


def point(name: str) -> None:
    """Die here if a test asked for it."""
    folder = os.environ.get("TRAINHALL_FAULT_DIR")
    if not folder:
        return
    path = os.path.join(folder, name)
    try:
        with open(path) as file:
            if file.read() not in " ".join(sys.orig_argv):
                return
        os.unlink(path)
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
