"""`make run`: everything a portal needs on one machine, on loopback, until Ctrl-C."""

from __future__ import annotations

import ipaddress
import os
import secrets
import shutil
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.core.management.base import BaseCommand

from jobs.cluster.registry import local_cluster
from portal.embedded import demo_people, environment, process
from portal.embedded.claims import claim_folder, claim_port, free_port
from portal.embedded.home import CannotStart, Home, find_home, make_home
from portal.embedded.postgres import Postgres
from portal.embedded.slapd import Slapd, is_installed
from portal.embedded.valkey import Valkey
from portal.seed import choose_password
from portal.settings.env import env_int, is_loopback
from portal.supervisor import Hurry, Supervisor, portal_services, server_services

READY_PATIENCE = 60.0
DEMO_GPUS = "8"


class Stopped(Exception):
    """Asked to stop before everything was started."""


class Command(BaseCommand):
    help = "Start PostgreSQL, Valkey, web, worker, beat and watcher on this machine; Ctrl-C stops all of them."
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        self.asked_to_stop = 0
        self.stopping = False
        signal.signal(signal.SIGINT, self.note_signal)  # also where a script's `&` has made it ignored
        signal.signal(signal.SIGTERM, self.note_signal)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup means it
            signal.signal(signal.SIGHUP, self.note_signal)
        try:
            web_workers = env_int("TRAINHALL_WEB_WORKERS", 1, minimum=1, maximum=64)
            with (
                claim_port(settings.PORT) as listening,
                claim_for_operators() as for_operators,
                claim_for_pods() as for_pods,
            ):
                self.run(settings.BASE_DIR, listening, web_workers, for_operators=for_operators, for_pods=for_pods)
        except CannotStart as error:
            self.stderr.write(str(error))
            sys.exit(1)

    def note_signal(self, _number: int, _frame: Any) -> None:
        self.asked_to_stop += 1
        if self.stopping and self.asked_to_stop > 1:
            raise Hurry

    def say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()

    def run(
        self,
        checkout: Path,
        listening: socket.socket,
        web_workers: int,
        *,
        for_operators: socket.socket | None,
        for_pods: socket.socket | None,
    ) -> None:
        port = listening.getsockname()[1]
        home = find_home(checkout, os.environ, uid=os.geteuid())
        with_directory = wants_demo_directory(os.environ)
        make_home(home)
        kept = claim_folder(home)
        supervisor = Supervisor(home=home, say=self.say)
        self.say(f"Starting Trainhall on port {port}…")
        try:
            self.start_servers(home, supervisor, kept)
            if with_directory:
                self.start_directory(home, supervisor, kept)
            surroundings = self.surroundings(home, port)
            password = self.prepare(home, checkout, surroundings)
            for service in portal_services(
                home=home,
                checkout=checkout,
                environment=surroundings,
                listening=listening.fileno(),
                web_workers=web_workers,
                for_operators=for_operators.fileno() if for_operators else None,
                for_pods=for_pods.fileno() if for_pods else None,
            ):
                supervisor.start(service)
            self.wait_ready(supervisor, f"127.0.0.1:{port}")
            if for_operators:
                self.wait_ready(supervisor, settings.OPERATOR.authority)
            self.greet(home, port, password, surroundings)
            while not self.asked_to_stop:
                supervisor.tend()
                time.sleep(0.2)
        except Stopped:
            pass
        finally:
            self.stop_all(home, supervisor)

    def start_servers(self, home: Home, supervisor: Supervisor, kept: int) -> None:
        """The embedded ones, unless the person has servers of their own."""
        servers: list[Postgres | Valkey] = []
        valkey, postgres = Valkey(home), Postgres(home)
        given = os.environ.get("REDIS_URL", "").strip()
        if given in ("", valkey.url):
            servers.append(valkey)
        else:
            check_broker(given)
        given = os.environ.get("DATABASE_URL", "").strip()
        if not given or (postgres.password_file.exists() and given == postgres.url(environment.DATABASE)):
            postgres.prepare()
            servers.append(postgres)
        for service in server_services(servers, keep=[kept]):
            supervisor.start(service)
        for server in servers:
            server.wait_ready()
            supervisor.echo.follow(server.name)  # what it said to those who asked too early is no trouble
        if postgres in servers:
            postgres.ensure_database(environment.DATABASE)

    def start_directory(self, home: Home, supervisor: Supervisor, kept: int) -> None:
        """The demo's slapd; what the portal needs to use it goes into the environment of its processes."""
        password, _is_new = choose_password(home.data / "demo-password")
        reader = secrets.token_urlsafe(18)
        server = Slapd(home.data / "slapd", port=free_port())
        server.prepare(demo_people.entries(password, reader_password=reader))
        (service,) = server_services([server], keep=[kept])
        supervisor.start(service)
        server.wait_ready()
        os.environ.update(server.environment(reader))

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
        log = home.logs / "prepare.log"
        log.unlink(missing_ok=True)
        argv = [sys.executable, str(checkout / "manage.py"), "prepare"]
        child = process.spawn(argv, log=log, env=surroundings, cwd=checkout)
        while child.poll() is None:
            if self.asked_to_stop:
                process.end(child)  # migrations and the seed are transactions
                raise Stopped
            time.sleep(0.02)
        if child.returncode:
            why = process.last_words(log, lines=1).removeprefix("CommandError: ") or "no word why"
            raise CannotStart(f"The portal could not be prepared: {why} (all of it in {log})")
        return (home.data / "demo-password").read_text(encoding="utf-8").strip()

    def wait_ready(self, supervisor: Supervisor, address: str) -> None:
        deadline = time.monotonic() + READY_PATIENCE
        said = "it does not answer yet"
        while True:
            try:
                with urllib.request.urlopen(f"http://{address}/readyz", timeout=5):
                    return
            except urllib.error.HTTPError as error:
                said = error.read().decode(errors="replace")[:300]
            except OSError as error:
                said = str(error)
            if self.asked_to_stop:
                raise Stopped
            if time.monotonic() > deadline:
                raise CannotStart(
                    f"The portal is not ready after {READY_PATIENCE:.0f} s ({said}); see {supervisor.home.logs}."
                )
            supervisor.tend()
            time.sleep(0.1)

    def greet(self, home: Home, port: int, password: str, surroundings: dict[str, str]) -> None:
        self.say(f"\nTrainhall is ready at http://localhost:{port}/\n")
        url = surroundings.get("LDAP_URL", "").strip()
        if url and not surroundings.get("LDAP", "").strip():
            self.say("  sign in as   admin, the portal's own account, or anybody of your directory")
            self.say(f"  directory    {url}")
            self.say(f"  password     {password}, for admin")
        else:
            self.say(
                "  sign in as   alice, bob (members of vision), carol (its lead), dave (a stranger to them), admin"
            )
            if url:
                self.say(f"  directory    {url} with 200 people and 40 groups; admin is the portal's own account")
            self.say(f"  password     {password}")
        if settings.OPERATOR.url:
            self.say(f"  operators    {settings.OPERATOR.url}/ has runtimes, access and users, and nothing else has")
        self.say(f"  data, logs   {home.data}")
        if settings.HAS_LOCAL_CLUSTER and surroundings["TRAINHALL_LOCAL_GPUS"] != "0":
            self.say(f"  GPUs         {surroundings['TRAINHALL_LOCAL_GPUS']} virtual ones: they are counted, not real")
        if shutil.which("git") is None:
            self.say("  git          is not installed, so code cannot come from git URLs")
        becomes = "are queued again and start" if settings.HAS_LOCAL_CLUSTER else "go on, and are found again"
        self.say(f"  stop         Ctrl-C: running jobs {becomes} at the next make run\n")

    def stop_all(self, home: Home, supervisor: Supervisor) -> None:
        """DESIGN 11.7: nothing new starts, pods end, their ends are stored, then everything else."""
        self.stopping = True
        supervisor.begin_stop()
        self.say("Stopping: nothing new is started…")
        supervisor.stop("beat", "worker")
        cluster = local_cluster(home.data, gpus=0)
        try:
            ended = cluster.stop_everything(supervisor.time_left(4.0))
        except Hurry:
            supervisor.deadline = time.monotonic()
            ended = cluster.stop_everything(0)
        if ended:
            self.say(f"{ended} running {'job is' if ended == 1 else 'jobs are'} queued again.")
        supervisor.stop("watcher")
        supervisor.stop("web")
        supervisor.stop("valkey", "postgres", "slapd")
        self.say("Stopped.")


@contextmanager
def claim_for_operators() -> Iterator[socket.socket | None]:
    """The socket of their own address, where TRAINHALL_OPERATOR_BIND names one."""
    operator = settings.OPERATOR
    if not operator.host:
        yield None
        return
    if not is_loopback(operator.host):
        raise CannotStart(
            f"TRAINHALL_OPERATOR_BIND={operator.authority}: manage.py up listens on loopback only, such as"
            f" 127.0.0.1:{operator.port}; for another address start a web process of your own (docs/operations.md)."
        )
    with claim_port(operator.port, host=operator.host, setting="TRAINHALL_OPERATOR_BIND") as listening:
        yield listening


def wants_demo_directory(environ: Mapping[str, str]) -> bool:
    """LDAP=demo, and nothing else that `make run` knows of."""
    wanted = environ.get("LDAP", "").strip()
    if wanted not in ("", "demo"):
        raise CannotStart(f"LDAP={wanted} is not known: LDAP=demo starts a demo directory; for your own set LDAP_URL.")
    if wanted and environ.get("LDAP_URL", "").strip():
        raise CannotStart(
            "LDAP=demo starts a directory of its own, but LDAP_URL names another one: take one of them away."
        )
    if wanted and not is_installed():
        raise CannotStart("LDAP=demo needs slapd: apt-get install slapd.")
    return bool(wanted)


def check_broker(url: str) -> None:
    """Raise CannotStart if the person's own Valkey does not answer."""
    try:
        with redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=5) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise CannotStart(f"REDIS_URL: the server does not answer: {error}") from error


@contextmanager
def claim_for_pods() -> Iterator[socket.socket | None]:
    """Where pods of a cluster on this machine call the portal, if that is not loopback: the dev cluster's own interface.

    An address of another machine is not ours to listen on: whatever is there sends pods on to us.
    """
    for cluster in settings.KUBERNETES_CLUSTERS:
        url = urlsplit(cluster.internal_url)
        if url.hostname and is_of_this_machine(url.hostname):
            with claim_port(url.port or 80, host=url.hostname, setting="internal_url") as listening:
                yield listening
            return
    yield None


def is_of_this_machine(host: str) -> bool:
    """Whether it is an address of an interface here, loopback apart: another can be bound to no socket."""
    try:
        address = ipaddress.ip_address(host)
        if address.is_loopback or address.is_unspecified:
            return False
        with socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET) as probe:
            probe.bind((host, 0))
    except (ValueError, OSError):
        return False
    return True
