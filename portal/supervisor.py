"""The processes of one portal on one machine: started in order, kept alive, stopped in order (DESIGN 1 and 11.7)."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from portal.embedded import process
from portal.embedded.home import Home
from portal.embedded.postgres import Postgres
from portal.embedded.slapd import Slapd
from portal.embedded.valkey import Valkey
from portal.logs import Echo

BACKOFF_FIRST, BACKOFF_LAST = 1.0, 30.0
STEADY_AFTER = 10.0  # seconds alive after which a death starts the back-off afresh: it is for what dies while starting
STOP_BUDGET = 9.5  # seconds from the first signal until the last process is gone, whatever hangs


class Hurry(Exception):
    """Whoever waits for the stop has asked a second time."""


@dataclass(slots=True)
class Service:
    """One process of the portal's own."""

    name: str
    launch: Callable[[], subprocess.Popen[bytes]]
    patience: float  # seconds between the first signal and SIGKILL at the end
    first: signal.Signals = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    backoff: float = BACKOFF_FIRST
    due: float = 0.0

    def start(self) -> None:
        self.process = self.launch()
        self.started_at = time.monotonic()
        self.due = 0.0


@dataclass(slots=True)
class Supervisor:
    """Starts services, starts again what dies, says so, and stops all of them in the order it is told."""

    home: Home
    say: Callable[[str], None]
    services: list[Service] = field(default_factory=list)
    deadline: float = 0.0
    echo: Echo = field(init=False)

    def __post_init__(self) -> None:
        self.echo = Echo(self.home.logs)

    def start(self, service: Service) -> None:
        self.services.append(service)
        self.echo.follow(service.name)
        service.start()

    def tend(self) -> None:
        """Start again what has ended, with a growing pause, and pass on the warnings of all."""
        now = time.monotonic()
        for service in self.services:
            if service.process is None or service.process.poll() is None:
                continue
            if not service.due:
                if now - service.started_at > STEADY_AFTER:
                    service.backoff = BACKOFF_FIRST
                service.due = now + service.backoff
                words = process.last_words(self.home.logs / f"{service.name}.log", lines=1)
                self.say(
                    f"{service.name} ended (exit {service.process.returncode}) and is started again in"
                    f" {service.backoff:.0f} s: {words[:200]}"
                )
                service.backoff = min(BACKOFF_LAST, service.backoff * 2)
            elif now >= service.due:
                service.start()
        for line in self.echo.look():
            self.say(line)

    def begin_stop(self) -> None:
        self.deadline = time.monotonic() + STOP_BUDGET

    def time_left(self, at_most: float) -> float:
        return max(0.0, min(at_most, self.deadline - time.monotonic()))

    def stop(self, *names: str) -> None:
        """End these services side by side, each with its own patience; at once for one who is in a hurry."""
        going = [service for service in self.services if service.name.split("-")[0] in names and service.process]
        self.services = [service for service in self.services if service not in going]
        try:
            for service in going:
                if service.process and service.process.poll() is None:
                    service.process.send_signal(service.first)
            for service in going:
                if service.process:
                    process.wait(service.process, patience=self.time_left(service.patience))
        except Hurry:
            self.deadline = time.monotonic()
        finally:
            for service in going:
                if service.process:
                    process.end(service.process)


def server_services(servers: Sequence[Postgres | Valkey | Slapd], *, keep: Sequence[int]) -> list[Service]:
    """The embedded servers, which hold the lock of the data folder while they live."""
    return [
        Service(
            name=server.name,
            launch=lambda server=server: server.start(keep=keep),  # type: ignore[misc]
            patience=3.0,
            first=server.stop_signal,
        )
        for server in servers
    ]


def portal_services(
    *,
    home: Home,
    checkout: Path,
    environment: Mapping[str, str],
    listening: int,
    web_workers: int,
    for_operators: int | None = None,
    for_pods: int | None = None,
) -> list[Service]:
    """web, worker, beat and watcher, as DESIGN 1 lists them; and a web process each for operators and pods that have a socket.

    The supervisor holds the listening socket and every web process inherits it: while one of them is started again, callers
    wait instead of being refused, and nobody can take the port.
    """
    python = sys.executable
    web = [python, "-m", "uvicorn", "portal.asgi:application", "--no-access-log"]
    # pods run on this machine too: none of them may say where a request came from
    web += ["--no-proxy-headers"]
    web += ["--timeout-graceful-shutdown", "3", "--ws", "websockets-sansio", "--lifespan", "on"]
    celery = [python, "-m", "celery", "-A", "portal"]
    # no gossip, no mingle: one worker has no peers, and both cost seconds at start
    worker = [*celery, "worker", "-c", "2", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    beat = [*celery, "beat", "--loglevel", "WARNING", "--pidfile", ""]

    def service(
        name: str, argv: Sequence[str], *, patience: float, keep: Sequence[int] = (), surface: str = "main"
    ) -> Service:
        told = {**environment, "TRAINHALL_SURFACE": surface}

        def launch() -> subprocess.Popen[bytes]:
            return process.spawn(argv, log=home.logs / f"{name}.log", env=told, cwd=checkout, keep=keep)

        return Service(name, launch, patience=patience)

    def web_service(name: str, socket: int, *, surface: str = "main") -> Service:
        return service(name, [*web, "--fd", str(socket)], patience=4.0, keep=[socket], surface=surface)

    names = ["web", *(f"web-{number}" for number in range(2, web_workers + 1))]
    return [
        *(web_service(name, listening) for name in names),
        *([] if for_operators is None else [web_service("web-operator", for_operators, surface="operator")]),
        *([] if for_pods is None else [web_service("web-pods", for_pods)]),
        service("worker", worker, patience=1.5),
        service("beat", beat, patience=1.0),
        service("watcher", [python, str(checkout / "manage.py"), "watch_cluster"], patience=3.0),
    ]
