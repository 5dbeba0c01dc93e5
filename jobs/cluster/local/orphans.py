"""Pods that nobody watches over: their runner was killed, or never came. Whoever holds the pod's lock may write its exit."""

from __future__ import annotations

import os
import time

from jobs.cluster.local import journal, processes, state
from jobs.cluster.local.container import mark_of, remove_short_tmp
from jobs.cluster.local.facts import PodFacts
from jobs.cluster.local.layout import PodFolder, boot_id, read_json, ring, try_lock, write_atomically, write_once


def close_if_orphaned(pod: PodFolder) -> None:
    """A pod whose runner is gone without a word: its lock is free."""
    lock = try_lock(pod.path)
    if lock is None:
        return
    try:
        if not pod.exit.exists():  # it may have ended between two looks
            bury(pod)
    finally:
        os.close(lock)


def bury(pod: PodFolder) -> None:
    """Write the exit that nobody saw. The caller holds the pod's lock.

    Not yet, if a process of it cannot be killed at the moment: it still holds what it holds, and the next look tries again.
    """
    started = read_json(pod.start)
    stop = read_json(pod.object.stop)
    ended_by = "kill" if pod.object.kill.exists() else stop["kind"] if stop else ""
    if started["boot_id"] != boot_id():
        _write_exit(pod, reason=state.LOST, ended_by=ended_by, note="The machine was restarted.")
    elif processes.kill_marked(mark_of(pod)):
        note = "The process that watched over it was killed, so how it ended is not known."
        _write_exit(pod, reason=state.UNKNOWN, ended_by=ended_by, note=note)


def _write_exit(pod: PodFolder, *, reason: str, ended_by: str, note: str) -> None:
    remove_short_tmp(pod)
    record = {
        "code": None,
        "signal": None,
        "reason": reason,
        "container": "",
        "message": "",
        "note": note,
        "ended_by": ended_by,
        "finished_at": time.time(),
    }
    write_atomically(pod.exit, record)
    journal.append(pod.object.path, "exit", pod=pod.worker, code=None, reason=reason, ended_by=ended_by)
    if not ended_by:
        write_once(pod.failed, {"kind": "pod", "pod": pod.worker, "at": record["finished_at"]})
    ring(pod.object.root)


def never_start(pod: PodFacts) -> None:
    """Close a released pod that no runner has taken."""
    if pod.started is not None or pod.exited is not None:
        return
    lock = try_lock(pod.folder.path)
    if lock is None:
        return  # a runner has just taken it, and will read the stop
    try:
        if not pod.folder.start.exists():
            _write_exit(pod.folder, reason="Stopped", ended_by="disruption", note="The portal was shut down.")
    finally:
        os.close(lock)
