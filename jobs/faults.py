"""Named places where a test may kill the process, to show that a crash there is repaired (RELIABILITY F01).

Does nothing unless TRAINHALL_FAULT_DIR names a folder that holds a file called like the point: the file is taken away, so a
fault strikes once, and the process ends as by kill -9. Standard library only: the local cluster's runner imports this.
"""

from __future__ import annotations

import os
import signal


def point(name: str) -> None:
    """Die here if a test asked for it."""
    folder = os.environ.get("TRAINHALL_FAULT_DIR")
    if not folder:
        return
    try:
        os.unlink(os.path.join(folder, name))
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
