"""Start a process of the portal's own so that it never outlives whoever started it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
# loaded before any fork: after it, only what is safe between fork and exec may run
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(death_signal: signal.Signals) -> None:
    """Ask the kernel to send this process a signal when the thread that forked it ends."""
    _libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)


def spawn(
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    death_signal: signal.Signals = signal.SIGKILL,
    account: pwd.struct_passwd | None = None,
    keep: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, its output appended to `log`, stopped when this one is gone.

    Call it from the main thread only: the kernel sends the death signal when the *thread* that forked ends.
    """
    parent = os.getpid()

    def between_fork_and_exec() -> None:
        die_with_parent(death_signal)  # after the change of uid, which would clear it
        if os.getppid() != parent:  # it died between fork and here: the signal would never come
            os._exit(1)

    with log.open("ab") as output:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=between_fork_and_exec,
            pass_fds=tuple(keep),
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=() if account else None,
        )


def wait(process: subprocess.Popen[bytes], *, patience: float) -> None:
    """Wait for a process that was asked to end, at most `patience` seconds."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and whatever it has forked into its session: a worker's children outlive a killed worker."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_words(log: Path, *, lines: int = 3) -> str:
    """The end of a log, for the sentence that says why a process ended."""
    try:
        text = log.read_bytes()[-4000:].decode(errors="replace")
    except OSError:
        return ""
    return " / ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:])
