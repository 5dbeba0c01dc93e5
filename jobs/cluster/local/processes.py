"""What /proc says about the processes of a pod: who belongs to it, how much memory they hold. Standard library only."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Orphans of our children become our children, whatever session they fled to, so that none outlives the pod."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def prepare_to_die_with_parent() -> object:
    """Look the function up before the fork; call it after: SIGKILL for us when the runner is killed."""
    libc = ctypes.CDLL(None, use_errno=True)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot: with the pid it names one process. None if there is none."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def is_alive(pid: int, ticks: int | None) -> bool:
    """Whether that very process still runs; a zombie does not."""
    fields = _stat(pid)
    return fields is not None and fields[0] not in ("Z", "X") and ticks in (None, int(fields[19]))


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on; the name before it may hold anything, also brackets."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return data[data.rindex(b")") + 2 :].decode("ascii", "replace").split()


def descendants(pid: int) -> list[int]:
    """Every process below, nearest first."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = list(_children(waiting.pop(0)))
        found += children
        waiting += children
    return found


def _children(pid: int) -> Iterator[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return
    for thread in threads:
        with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
            yield from map(int, file.read().split())


def own_memory(pids: list[int]) -> int:
    """Bytes that these processes hold for themselves: resident, without what is shared with others or with a file."""
    total = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/statm", "rb") as file:
            resident, shared = file.read().split()[1:3]
            total += (int(resident) - int(shared)) * PAGE
    return total


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_marked(mark: bytes, *, patience: float = 1.0) -> bool:
    """Kill every process that carries the variable in its environment; True once none is left.

    This is how children of a runner that was killed are found, when no parent knows them any more.
    """
    end = time.monotonic() + patience
    while True:
        found = [pid for pid in _all_pids() if _carries(pid, mark)]
        if not found:
            return True
        signal_all(found, signal.SIGKILL)
        if time.monotonic() > end:
            return False
        time.sleep(0.02)


def _all_pids() -> Iterator[int]:
    me = os.getpid()
    return (int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != me)


def _carries(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:  # gone, a kernel thread, or another user's
        return False
