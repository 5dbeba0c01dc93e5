"""The watcher: brings each cluster into the database until it is told to stop."""

from __future__ import annotations

import logging
import signal
import sys
from threading import Event, Thread
from typing import Any

from django.core.management.base import BaseCommand

from jobs.cluster.registry import connect, kinds
from jobs.reconcile import Mirror
from metrics.doors.sink import StdoutDoor
from portal import seed

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Watch every cluster of this portal: pods, nodes and logs go into the database."

    def handle(self, *_args: Any, **_options: Any) -> None:
        self.stop = Event()
        self.failed = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop.set())
        seed.ensure_clusters()
        doors = {name: StdoutDoor() for name in kinds()}
        mirrors = [Mirror(name, connect(name), sink=door) for name, door in doors.items()]
        threads = [Thread(target=self.watch, args=[one, doors[one.name]], name=one.name) for one in mirrors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failed:
            sys.exit(1)

    def watch(self, mirror: Mirror, door: StdoutDoor) -> None:
        try:
            door.resume(mirror.name)
            mirror.run(self.stop)
        except (
            Exception
        ):  # one blind mirror must not go unnoticed: all end, and the supervisor starts the watcher again
            logger.exception("The mirror of %s broke", mirror.name)
            self.failed = True
            self.stop.set()
