"""`make run`: everything a portal needs on one machine, on loopback, until Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from jobs.cluster.registry import local_cluster
from portal.embedded import environment
from portal.embedded.home import CannotStart, Home, find_home, make_home
from portal.embedded.postgres import Postgres
from portal.embedded.valkey import Valkey
from portal.supervisor import Supervisor, check_port, lock, portal_services

READY_PATIENCE = 60.0
DEMO_GPUS = "8"


class Command(BaseCommand):
    help = "Start PostgreSQL, Valkey, web, worker, beat and watcher on this machine; Ctrl-C stops all of them."
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        self.wants_to_stop = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.note_signal)
        try:
            self.run(settings.BASE_DIR, settings.PORT)
        except CannotStart as error:
            raise CommandError(str(error)) from error

    def note_signal(self, _number: int, _frame: Any) -> None:
        self.wants_to_stop += 1

    def say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()

    def run(self, checkout: Path, port: int) -> None:
        check_port(port)
        home = find_home(checkout, os.environ, uid=os.geteuid())
        make_home(home)
        kept = lock(home)
        servers: list[Postgres | Valkey] = []
        supervisor = None
        try:
            servers = self.start_servers(home, kept)
            surroundings = self.surroundings(home, port)
            password = self.prepare(home, checkout, surroundings)
            supervisor = Supervisor(home=home, environment=surroundings, checkout=checkout, say=self.say)
            workers = int(os.environ.get("TRAINHALL_WEB_WORKERS", "1") or 1)
            services = portal_services(port=port, checkout=checkout, web_workers=workers)
            for service in services.values():
                supervisor.start(service)
            self.wait_ready(supervisor, port)
            if not self.wants_to_stop:
                self.greet(home, port, password, surroundings)
            while not self.wants_to_stop:
                supervisor.tend()
                time.sleep(0.2)
        finally:
            self.stop_all(home, supervisor, servers)

    def start_servers(self, home: Home, kept: int) -> list[Postgres | Valkey]:
        servers: list[Postgres | Valkey] = []
        if not os.environ.get("REDIS_URL", "").strip() or os.environ["REDIS_URL"] == Valkey(home).url:
            valkey = Valkey(home)
            valkey.start(keep=[kept])
            servers.append(valkey)
        ours = Postgres(home)
        given = os.environ.get("DATABASE_URL", "").strip()
        if not given or (ours.password_file.exists() and given == ours.url(environment.DATABASE)):
            ours.prepare()
            ours.start(keep=[kept])
            servers.append(ours)
        for server in servers:
            server.wait_ready()
        if ours in servers:
            ours.ensure_database(environment.DATABASE)
        return servers

    def surroundings(self, home: Home, port: int) -> dict[str, str]:
        ours = environment.of_home(home, os.environ)
        ours["PORT"] = str(port)
        ours.setdefault("TRAINHALL_LOCAL_GPUS", DEMO_GPUS)
        ours.setdefault("TRAINHALL_INTERNAL_URL", f"http://127.0.0.1:{port}")
        ours.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.dev")
        ours["PYTHONUNBUFFERED"] = "1"
        return ours

    def prepare(self, home: Home, checkout: Path, surroundings: dict[str, str]) -> str:
        """Migrate, seed and gather static files in a process that has the database in its settings."""
        done = subprocess.run(
            [sys.executable, str(checkout / "manage.py"), "prepare"],
            env=surroundings,
            cwd=checkout,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        (home.logs / "prepare.log").write_text(done.stderr)
        if done.returncode:
            last = [line for line in done.stderr.splitlines() if line.strip()][-1:] or ["no word why"]
            raise CannotStart(f"The portal could not be prepared: {last[0]} (all of it in {home.logs}/prepare.log)")
        return done.stdout.strip().splitlines()[-1]

    def wait_ready(self, supervisor: Supervisor, port: int) -> None:
        deadline = time.monotonic() + READY_PATIENCE
        said = "it does not answer yet"
        while not self.wants_to_stop:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                    return
            except urllib.error.HTTPError as error:
                said = error.read().decode(errors="replace")[:300]
            except OSError as error:
                said = str(error)
            if time.monotonic() > deadline:
                raise CannotStart(
                    f"The portal is not ready after {READY_PATIENCE:.0f} s ({said}); see {supervisor.home.logs}."
                )
            supervisor.tend()
            time.sleep(0.1)

    def greet(self, home: Home, port: int, password: str, surroundings: dict[str, str]) -> None:
        self.say(f"\nTrainhall is ready at http://localhost:{port}/\n")
        self.say("  sign in as   alice, bob (members of vision), carol (its lead), dave (a stranger to them), admin")
        self.say(f"  password     {password}")
        self.say(f"  data, logs   {home.data}")
        if surroundings["TRAINHALL_LOCAL_GPUS"] != "0":
            self.say(f"  GPUs         {surroundings['TRAINHALL_LOCAL_GPUS']} virtual ones: they are counted, not real")
        if shutil.which("git") is None:
            self.say("  git          is not installed, so code cannot come from git URLs")
        self.say("  stop         Ctrl-C: running jobs are queued again and start at the next make run\n")

    def stop_all(self, home: Home, supervisor: Supervisor | None, servers: list[Postgres | Valkey]) -> None:
        """DESIGN 11.7: nothing new starts, pods end, their ends are stored, then everything else."""
        if supervisor is not None:
            self.say("Stopping: nothing new is started…")
            supervisor.stop("beat", "worker")
            ended = local_cluster(home.data, gpus=0).stop_everything(4.0)
            if ended:
                self.say(f"{ended} running {'job is' if ended == 1 else 'jobs are'} queued again.")
            supervisor.stop("watcher")
            supervisor.stop("web")
        for server in servers:
            server.stop()
        self.say("Stopped.")
