"""The processes of one portal on one machine: started in order, kept alive, stopped in order (DESIGN 1 and 11.7)."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from portal.embedded import process
from portal.embedded.home import CannotStart, Home

BACKOFF_FIRST, BACKOFF_LAST = 1.0, 30.0
STEADY_AFTER = 60.0  # seconds alive after which a death starts the back-off afresh
LOCK_PATIENCE = 8.0


@dataclass(slots=True)
class Service:
    """One process of the portal's own."""

    name: str
    argv: Sequence[str]
    patience: float  # seconds between SIGTERM and SIGKILL at the end
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    backoff: float = BACKOFF_FIRST
    due: float = 0.0


def portal_services(*, port: int, checkout: Path, web_workers: int) -> dict[str, Service]:
    """web, worker, beat and watcher, as DESIGN 1 lists them."""
    python = sys.executable
    manage = str(checkout / "manage.py")
    web = [python, "-m", "uvicorn", "portal.asgi:application", "--host", "127.0.0.1", "--port", str(port)]
    web += ["--timeout-graceful-shutdown", "3", "--ws", "websockets-sansio", "--no-access-log", "--lifespan", "on"]
    celery = [python, "-m", "celery", "-A", "portal"]
    # no gossip, no mingle: one worker has no peers, and both cost seconds at start
    worker = [*celery, "worker", "-c", "2", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    return {
        "web": Service("web", web + (["--workers", str(web_workers)] if web_workers > 1 else []), patience=4.0),
        "worker": Service("worker", worker, patience=1.5),
        "beat": Service("beat", [*celery, "beat", "--loglevel", "WARNING", "--pidfile", ""], patience=1.0),
        "watcher": Service("watcher", [python, manage, "watch_cluster"], patience=3.0),
    }


@dataclass(slots=True)
class Supervisor:
    """Starts services, starts again what dies, and says so."""

    home: Home
    environment: Mapping[str, str]
    checkout: Path
    say: Callable[[str], None]
    services: list[Service] = field(default_factory=list)

    def start(self, service: Service) -> None:
        service.process = process.spawn(
            service.argv,
            log=self.home.logs / f"{service.name}.log",
            env=self.environment,
            cwd=self.checkout,
            death_signal=signal.SIGTERM if service.name == "watcher" else signal.SIGKILL,
        )
        service.started_at = time.monotonic()
        if service not in self.services:
            self.services.append(service)

    def tend(self) -> None:
        """Start again what has ended, with a growing pause."""
        now = time.monotonic()
        for service in self.services:
            if service.process is None or service.process.poll() is None:
                continue
            if not service.due:
                if now - service.started_at > STEADY_AFTER:
                    service.backoff = BACKOFF_FIRST
                service.due = now + service.backoff
                words = process.last_words(self.home.logs / f"{service.name}.log", lines=1)
                self.say(f"{service.name} ended (exit {service.process.returncode}), started again: {words[:200]}")
                service.backoff = min(BACKOFF_LAST, service.backoff * 2)
            elif now >= service.due:
                service.due = 0.0
                self.start(service)

    def stop(self, *names: str) -> None:
        """End these services side by side, each with its own patience."""
        going = [service for service in self.services if service.name in names and service.process]
        for service in going:
            if service.process and service.process.poll() is None:
                service.process.terminate()
        for service in going:
            if service.process:
                process.stop(service.process, first=signal.SIGTERM, patience=service.patience)
            self.services.remove(service)


def check_port(port: int) -> None:
    """Raise CannotStart if somebody listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CannotStart(
                f"Port {port} cannot be used ({error.strerror}): stop what listens there, or choose another with"
                f" PORT={port + 1 if port < 65535 else 8000} make run."
            ) from error


def lock(home: Home) -> int:
    """Take the data folder for this supervisor and its servers. Raise CannotStart if another one has it.

    The servers inherit the lock: a supervisor that was killed gives it back only when they are down too.
    """
    path = home.data / "supervisor.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.pread(handle, 20, 0).decode(errors="replace").strip()
            alive = pid.isdecimal() and Path(f"/proc/{pid}").exists()
            if alive or time.monotonic() > deadline:
                raise CannotStart(
                    f"Trainhall already runs from this folder (process {pid}); stop it there, or run a second clone."
                ) from None
            time.sleep(0.1)
        else:
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            return handle
