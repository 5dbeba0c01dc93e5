"""A shell beside a worker of the local cluster: in its folder, with its environment, as the portal's own account.

It is no child of the pod's runner, so it is watched from here: it ends with the pod, and leaves no process behind.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import shutil
import struct
import subprocess
import termios
import uuid
from contextlib import suppress

from jobs.cluster.local import processes
from jobs.cluster.local.container import Container, failed_to_start
from jobs.cluster.local.layout import PodFolder, read_json
from jobs.exceptions import ClusterRefuses, ObjectGone

MOST = 32 * 2**10  # bytes of one reading
LOOK = 0.5  # seconds between two looks whether the pod still runs
MARK = "TRAINHALL_LOCAL_SHELL"  # by it everything that was started from a shell is found
# the first terminal that the leader of a session opens becomes its own; if memory runs short, the kernel takes these first
BEGIN = 'echo 500 >/proc/self/oom_score_adj; exec 0<>"$1" 1>&0 2>&0; shift; exec "$@"'


class LocalTerminal:
    """The `Terminal` of the port."""

    def __init__(self, pod: PodFolder, program: subprocess.Popen[bytes], terminal: int, mark: str) -> None:
        self.ended = ""
        self._pod = pod
        self._program = program
        self._terminal = terminal
        self._mark = mark

    async def read(self) -> bytes:
        while True:
            try:
                output = os.read(self._terminal, MOST)
            except BlockingIOError:
                if not await self._ready(read=True) and self._pod.exit.exists():
                    self.ended = "The worker has ended."
                    return b""
            except OSError:  # EIO: nobody holds the other side any more
                return b""
            else:
                return output

    async def write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._terminal, data) :]
            except BlockingIOError:
                await self._ready(read=False)
            except OSError:  # it has just ended, which `read` tells
                return

    async def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def close(self) -> None:
        os.close(self._terminal)
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        processes.kill_marked(f"{MARK}={self._mark}".encode())
        self._program.wait()

    async def _ready(self, *, read: bool) -> bool:
        """Wait until the terminal can be read or written, for a moment; whether it can."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        add, remove = (loop.add_reader, loop.remove_reader) if read else (loop.add_writer, loop.remove_writer)
        add(self._terminal, lambda: None if ready.done() else ready.set_result(None))
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await ready
        finally:
            remove(self._terminal)
        return ready.done() and not ready.cancelled()


def begin_shell(pod: PodFolder) -> LocalTerminal:
    """Raise ObjectGone where the pod does not run, ClusterRefuses where a shell cannot be started in it."""
    release, job = read_json(pod.object.released), pod.object.job_of(pod.role)
    if release is None or job is None or not pod.start.exists() or pod.exit.exists():
        raise ObjectGone("The worker does not run.")
    spec = job["spec"]["template"]["spec"]["containers"][0]
    container = Container(spec, pod=pod, job=job, release=release, index=pod.record()["index"])
    try:
        environment, folder = container.surroundings()
    except failed_to_start as error:
        raise ClusterRefuses(str(error)) from error
    mark = uuid.uuid4().hex
    environment |= {"TERM": "xterm-256color", MARK: mark}
    ours, theirs = pty.openpty()
    try:
        os.set_blocking(ours, False)
        name = os.ttyname(theirs)
        program = subprocess.Popen(
            ["/bin/sh", "-c", BEGIN, "sh", name, shutil.which("bash", path=environment["PATH"]) or "/bin/sh"],
            cwd=folder,
            env=environment,
            stdin=theirs,  # or ours would read EIO until the shell has opened it
            start_new_session=True,
        )
        return LocalTerminal(pod, program, ours, mark)
    except OSError as error:
        os.close(ours)
        raise ClusterRefuses(f"A shell could not be started: {error.strerror}.") from error
    finally:
        os.close(theirs)
