"""The detached process that is one pod's kubelet: `python -m jobs.cluster.local.runner <pod folder>` (DESIGN 11.7).

It holds the lock on the pod's folder for life, so there is never a second one. It runs the init containers and then `main`,
stores their output as numbered lines, enforces the limits of time and memory, obeys stop files, ends with its siblings,
leaves no process behind, and writes how it ended. Standard library only, and quick to start.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobs.cluster.local import journal, processes
from jobs.cluster.local.container import Container, failed_to_start, remove_short_tmp
from jobs.cluster.local.layout import PodFolder, boot_id, read_json, ring, try_lock, write_atomically, write_once
from jobs.cluster.local.lines import LineSplitter, RateCap
from jobs.cluster.local.logfile import LogWriter
from jobs.cluster.local.sidecars import Sidecars, is_sidecar

TICK = 0.1  # seconds between two looks at files, memory and clock
SHUTDOWN_GRACE = 4.0  # when the machine asks the runner itself to end
WARN_AT = 0.9  # of the time limit: from then on the notice file says when it ends
LAST_READ = 5.0  # that sidecars may take once `main` has ended; half a second when the pod is being ended
MARGIN = 2.0  # seconds for which a time stamp of a folder is too coarse to be trusted

OOM_EXIT = 137


class Ending:
    """Why the pod is being ended from outside."""

    def __init__(self, kind: str, deadline: float) -> None:
        self.kind = kind  # suspend, kill, disruption, gang
        self.deadline = deadline


class Runner:
    def __init__(self, pod: PodFolder) -> None:
        self.pod = pod
        self.object = pod.object
        self.job = self.object.job_of(pod.role)
        self.failed = pod.failed
        self.spec: dict[str, Any] = self.job["spec"]["template"]["spec"]
        self.release = read_json(self.object.released)
        self.record = pod.record()
        self.grace = float(self.spec.get("terminationGracePeriodSeconds", 30))
        self.ending: Ending | None = None
        self.told_at: float | None = None  # when SIGTERM went out
        self.out_of_memory = False
        self.phase: dict[str, Any] = {"containers": {}}
        self.sidecars = Sidecars(pod)
        self._asked_to_end = False
        self._has_warned = False
        self._folder_stamp = -1.0

    # A pod's life

    def live(self) -> None:
        self._note_start()
        processes.become_subreaper()
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.log = LogWriter(self.pod)
        self._splitter, self._cap = LineSplitter(), RateCap()
        self._look_around()
        outcome: dict[str, Any] = {"code": None, "signal": None, "reason": "Stopped", "container": ""}
        if self.ending is None:
            for spec in (*self.spec.get("initContainers", ()), *self.spec["containers"]):
                if is_sidecar(spec):
                    self.sidecars.start(spec, job=self.job, release=self.release, index=self.record["index"])
                    continue
                outcome = self._run(spec)
                if outcome["code"] != 0 or self.ending is not None:
                    break
            self._end_sidecars()
        self._note_exit(outcome)

    def _note_start(self) -> None:
        me = os.getpid()
        start = {"pid": me, "ticks": processes.start_ticks(me), "boot_id": boot_id(), "at": time.time()}
        write_atomically(self.pod.start, start)
        journal.append(self.object.path, "start", pod=self.pod.worker, pid=me)
        ring(self.object.root)

    def _note_exit(self, outcome: dict[str, Any]) -> None:
        remove_short_tmp(self.pod)
        ended_by = self.ending.kind if self.ending else ""
        exit_record = {
            **outcome,
            "message": self.log.message() or outcome.get("message", ""),
            "ended_by": ended_by,
            "finished_at": time.time(),
        }
        write_atomically(self.pod.exit, exit_record)
        journal.append(
            self.object.path,
            "exit",
            pod=self.pod.worker,
            code=outcome["code"],
            reason=outcome["reason"],
            ended_by=ended_by,
        )
        if outcome["code"] != 0 and not ended_by:
            # the siblings end with us: a gang is all or nothing
            write_once(self.failed, {"kind": "pod", "pod": self.pod.worker, "at": exit_record["finished_at"]})
        ring(self.object.root)

    # One container

    def _run(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Run a container to its end and leave nothing of it alive."""
        name = spec["name"]
        self._note_phase(name, started_at=time.time())
        output, write_end = os.pipe()
        os.set_blocking(output, False)
        try:
            container = Container(spec, pod=self.pod, job=self.job, release=self.release, index=self.record["index"])
            main = container.start(write_end)
        except failed_to_start as error:
            os.close(write_end)
            os.close(output)
            self._write([(time.time(), str(error), False)])
            outcome = {"code": 128, "signal": None, "reason": "StartError", "container": name, "message": str(error)}
        else:
            os.close(write_end)
            status = self._watch(main, output)
            self._end_leftovers(output)
            os.close(output)
            outcome = self._outcome(name, status)
        self._write(self._cap.pass_on(self._splitter.finish(time.time()), time.time()))
        self._write(self._cap.finish(time.time()))
        self._note_phase(name, finished_at=time.time(), code=outcome["code"], signal=outcome["signal"])
        return outcome

    def _watch(self, main: int, output: int) -> int:
        """Read output and keep the limits until the container's first process ends; return its wait status."""
        poller = select.poll()
        poller.register(output, select.POLLIN)
        end_of_main = os.pidfd_open(main)
        poller.register(end_of_main, select.POLLIN)
        reading, next_look = True, 0.0
        try:
            while True:
                wait = max(0.0, next_look - time.monotonic())
                if poller.poll(wait * 1000) and reading and not self._read(output):
                    poller.unregister(output)  # every writer closed it; the process may live on
                    reading = False
                status = _reap(main)
                if status is not None:
                    return status
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + TICK
                    self._write(self._cap.reopen(time.time()))
                    self._write(self._cap.pass_on(self._splitter.pending(time.time()), time.time()))
                    self._look_around()
                    self._enforce(main)
                    if self.ending is None:
                        self.sidecars.tend()
        finally:
            os.close(end_of_main)

    def _read(self, output: int) -> bool:
        """Take what there is; False at the end of it."""
        try:
            data = os.read(output, 256 * 1024)
        except BlockingIOError:
            return True
        now = time.time()
        self._write(self._cap.pass_on(self._splitter.feed(data, now), now))
        return bool(data)

    def _write(self, lines: list[tuple[float, str, bool]]) -> None:
        if lines:
            self.log.write(lines)

    def _end_leftovers(self, output: int) -> None:
        """Kill what the container left running, then read what is still in the pipe."""
        end = time.monotonic() + 5
        while (left := self._family()) and time.monotonic() < end:
            processes.signal_all(left, signal.SIGKILL)
            _reap(0)
            time.sleep(0.005)
        for _chunk in range(64):  # the pipe holds at most 1 MiB; a writer that escaped must not hold us
            with suppress(BlockingIOError):
                if select.select([output], [], [], 0)[0] and self._read(output):
                    continue
            break

    def _family(self) -> list[int]:
        """The processes of the container that runs: all of ours but the sidecars'."""
        beside = self.sidecars.family()
        return [pid for pid in processes.descendants(os.getpid()) if pid not in beside]

    def _end_sidecars(self) -> None:
        """Let them look a last time. The outcome of the pod stands already; it is told when nothing of it lives."""
        end = time.time() + LAST_READ
        if self.ending is not None:
            end = min(end, max(self.ending.deadline, time.time() + 0.5))
        if not self.object.kill.exists():
            self.sidecars.tend(at_once=True)  # one that died a moment ago has not looked a last time
        self.sidecars.ask_to_end()
        while self.sidecars.family() and time.time() < end and not self.object.kill.exists():
            time.sleep(0.01)
            _reap(0)
        self.sidecars.kill()
        _reap(0)

    def _outcome(self, name: str, status: int) -> dict[str, Any]:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = 128 + number if number is not None else os.WEXITSTATUS(status)
        if self.out_of_memory:
            return {"code": OOM_EXIT, "signal": int(signal.SIGKILL), "reason": "OOMKilled", "container": name}
        return {"code": code, "signal": number, "reason": "Completed" if code == 0 else "Error", "container": name}

    # The world outside

    def _look_around(self) -> None:
        """Read the stop files, if the object's folder has changed, and the clock."""
        now = time.time()
        if self._asked_to_end:
            self._begin_ending("disruption", now + min(self.grace, SHUTDOWN_GRACE))
        limit = self.job["spec"].get("activeDeadlineSeconds")
        if limit is not None and not self._has_warned and now >= self.release["at"] + limit * WARN_AT:
            self._has_warned = True
            self._write_notice(self.release["at"] + limit + self.grace)
        if limit is not None and now >= self.release["at"] + limit and self.ending is None:
            write_once(self.failed, {"kind": "deadline", "pod": self.pod.worker, "at": now})
        stamp = os.stat(self.object.path).st_mtime
        if stamp == self._folder_stamp and now - stamp > MARGIN:
            return
        self._folder_stamp = stamp
        if self.object.kill.exists():
            self._begin_ending("kill", now)
        if (stop := read_json(self.object.stop)) is not None:
            self._begin_ending(stop["kind"], stop["deadline"])
        if (failed := read_json(self.failed)) is not None:
            self._begin_ending("deadline" if failed["kind"] == "deadline" else "gang", failed["at"] + self.grace)

    def _begin_ending(self, kind: str, deadline: float) -> None:
        """The first reason stays; a nearer deadline is taken over."""
        if self.ending is None:
            self.ending = Ending(kind, deadline)
        elif deadline < self.ending.deadline:
            self.ending.deadline = deadline
            if kind == "kill":
                self.ending.kind = kind

    def _enforce(self, main: int) -> None:
        family = self._family()
        limit = self.record.get("memory_bytes")
        if limit and processes.own_memory(family) > limit:
            self.out_of_memory = True
            processes.signal_all(family, signal.SIGKILL)
            return
        if self.ending is None:
            return
        if time.time() >= self.ending.deadline:
            processes.signal_all(family, signal.SIGKILL)
        elif self.told_at is None:
            self.told_at = time.time()
            self._write_notice(self.ending.deadline)
            # the group, as a terminal would; what left it is killed at the deadline
            with suppress(ProcessLookupError):
                os.killpg(main, signal.SIGTERM)

    def _write_notice(self, deadline: float) -> None:
        """TRAINHALL_NOTICE_FILE: epoch seconds of the coming SIGKILL."""
        folder = self.pod.volumes / "run"
        with suppress(FileNotFoundError):  # a job that mounts no such folder gets no notice
            write_atomically(folder / "notice", round(deadline, 3))

    def _on_sigterm(self, _number: int, _frame: object) -> None:
        self._asked_to_end = True

    def _note_phase(self, container: str, **facts: Any) -> None:
        self.phase["containers"].setdefault(container, {}).update(facts)
        write_atomically(self.pod.phase, self.phase)
        ring(self.object.root)


def _reap(main: int) -> int | None:
    """Collect every child that has ended; the status of `main` if it was among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == main:
            found = status


def main(folder: str) -> None:
    pod = PodFolder(Path(folder))
    lock = try_lock(pod.path)  # held until the process ends; children do not inherit it
    if lock is None or pod.start.exists() or not pod.object.released.exists():
        return
    Runner(pod).live()


if __name__ == "__main__":
    main(sys.argv[1])
