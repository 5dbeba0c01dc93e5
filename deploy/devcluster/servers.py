"""Servers that outlive the command that started them: who they are is written down, so that only they are stopped."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from deploy.devcluster.settings import CannotStart, Settings

PATIENCE = 20.0


def start(
    settings: Settings,
    name: str,
    argv: Sequence[str],
    *,
    read: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
) -> bool:
    """Start a server unless it runs as it should. `read` are the files it reads at its start: others mean another server."""
    wanted = hashlib.sha256("\0".join([*argv, *(path.read_text() for path in read)]).encode()).hexdigest()
    if running(settings, name) and _record(settings, name)["wanted"] == wanted:
        return False
    stop(settings, name)
    with log(settings, name).open("ab") as output:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=settings.folder,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(settings.folder), **(environment or {})},
            start_new_session=True,
        )
    record = {"pid": process.pid, "born": psutil.Process(process.pid).create_time(), "wanted": wanted}
    _path(settings, name).write_text(json.dumps(record))
    return True


def running(settings: Settings, name: str) -> psutil.Process | None:
    """The server that was started under this name, if it lives: a number alone could be somebody else's by now."""
    record = _record(settings, name)
    try:
        process = psutil.Process(record["pid"])
        alive = process.create_time() == record["born"] and process.status() != psutil.STATUS_ZOMBIE
    except (KeyError, psutil.NoSuchProcess):
        return None
    return process if alive else None


def stop(settings: Settings, name: str) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = running(settings, name)
        if process is not None:
            process.send_signal(number)
        # not psutil's wait: some machines' process 1 takes seconds to reap what it inherits
        deadline = time.monotonic() + PATIENCE
        while running(settings, name) and time.monotonic() < deadline:
            time.sleep(0.02)
    _path(settings, name).unlink(missing_ok=True)


def wait(settings: Settings, name: str, ready: Callable[[], bool], *, patience: float = 60.0) -> None:
    """Until it is ready; a server that ended, or takes too long, is told with the end of its log."""
    deadline = time.monotonic() + patience
    while not ready():
        if running(settings, name) is None:
            raise CannotStart(f"{name} ended at once. {_last_words(settings, name)}")
        if time.monotonic() > deadline:
            raise CannotStart(f"{name} is not ready after {patience:.0f} s. {_last_words(settings, name)}")
        time.sleep(0.1)


def listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def log(settings: Settings, name: str) -> Path:
    return settings.folder / "logs" / f"{name}.log"


def _path(settings: Settings, name: str) -> Path:
    return settings.folder / "servers" / f"{name}.json"


def _record(settings: Settings, name: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(_path(settings, name).read_text())
    except FileNotFoundError:
        return {}
    return record


def _last_words(settings: Settings, name: str) -> str:
    lines = log(settings, name).read_bytes()[-3000:].decode(errors="replace").strip().splitlines()[-4:]
    return f"{log(settings, name)} ends with:\n" + "\n".join(lines)
