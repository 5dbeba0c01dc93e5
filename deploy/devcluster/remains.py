"""What a node leaves behind: containers, mounts, control groups. Read from the kernel, so that a crash makes no difference."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from deploy.devcluster.settings import CannotStart, Settings

CGROUPS = Path("/sys/fs/cgroup")
PATIENCE = 15.0


def clear(settings: Settings) -> None:
    """End every container and its shim, then unmount, then remove the control groups."""
    _end_all(settings)
    for sockets in _shim_sockets(settings):
        sockets.unlink(missing_ok=True)
    for mounted in _mounts(settings):
        subprocess.run(["umount", "--lazy", mounted], capture_output=True, check=False)
    _remove_cgroups(settings)


def _end_all(settings: Settings) -> None:
    deadline = time.monotonic() + PATIENCE
    while pids := {*_shims(settings), *_contained(settings)}:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise CannotStart(f"Processes of pods do not end: {sorted(pids)}")
        time.sleep(0.05)


def _shims(settings: Settings) -> Iterator[int]:
    """containerd's shims, told from those of another containerd by the socket they report to."""
    for process in psutil.process_iter(["cmdline"]):
        argv = process.info["cmdline"] or []
        if argv and Path(argv[0]).name.startswith("containerd-shim") and str(settings.containerd) in argv:
            yield process.pid


def _contained(settings: Settings) -> Iterator[int]:
    """Whatever runs in a pod's control group: such a process may have left its session and its parent."""
    for listing in _branches(settings, "**/cgroup.procs"):
        with contextlib.suppress(OSError):
            yield from map(int, listing.read_text().split())


def _shim_sockets(settings: Settings) -> Iterator[Path]:
    """They lie in one folder for all of a machine's containerds; each task's folder names its own."""
    for address in (settings.folder / "node" / "state").glob("io.containerd.runtime.v2.task/*/*/address"):
        yield Path(address.read_text().removeprefix("unix://"))


def _mounts(settings: Settings) -> list[str]:
    """Ours, the innermost first."""
    below = f"{settings.folder}/"
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split(" ")[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in reversed(points) if point.startswith(below)]


def _remove_cgroups(settings: Settings) -> None:
    deadline = time.monotonic() + PATIENCE
    for branch in _branches(settings, ""):
        folders = sorted((folder for folder in branch.rglob("*") if folder.is_dir()), key=lambda it: -len(it.parts))
        for folder in [*folders, branch]:
            # the kernel lets a group go a moment after its last process
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)


def _branches(settings: Settings, pattern: str) -> Iterator[Path]:
    roots = (
        [CGROUPS]
        if (CGROUPS / "cgroup.controllers").exists()
        else [it for it in CGROUPS.glob("*") if not it.is_symlink()]
    )
    for root in roots:
        branch = root / settings.cgroup
        if branch.is_dir():
            yield from branch.glob(pattern) if pattern else [branch]
