"""What only one portal at a time can have: a port and a data folder."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

from portal.embedded.home import CannotStart, Home

LOCK_PATIENCE = 8.0
BACKLOG = 512


def claim_port(port: int, *, host: str = "127.0.0.1", setting: str = "PORT") -> socket.socket:
    """Listen on loopback. Raise CannotStart if somebody does already."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # what is accepted from it has this too. asyncio sets it only on sockets of its own making, not on an inherited one; without
    # it the body of every answer waits for the caller to acknowledge the head: 40 ms on Linux
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        other = port + 1 if port < 65535 else 8000
        value = other if setting == "PORT" else f"{host}:{other}"
        raise CannotStart(
            f"Port {port} cannot be used ({error.strerror}): stop what listens there, or choose another with"
            f" {setting}={value} make run."
        ) from error
    return listening


def claim_folder(home: Home) -> int:
    """Lock the data folder for this supervisor and its servers. Raise CannotStart if another one has it.

    The servers inherit the lock: a supervisor that was killed gives it back only when they are down too.
    """
    handle = os.open(home.data / "supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.pread(handle, 20, 0).decode(errors="replace").strip()
            if (pid.isdecimal() and Path(f"/proc/{pid}").exists()) or time.monotonic() > deadline:
                os.close(handle)
                raise CannotStart(
                    f"Trainhall already runs from this folder (process {pid}); stop it there, or run a second clone."
                ) from None
            time.sleep(0.1)
        else:
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            return handle


def free_port() -> int:
    """A port of loopback that nobody has now; whoever uses it may still find it taken."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
