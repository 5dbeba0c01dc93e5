"""The watcher: brings each cluster into the database until it is told to stop.

Any number of them may run, on as many machines: each cluster is watched by one, and when that one ends another goes on.
"""

from __future__ import annotations

import gc
import logging
import signal
import sys
from threading import Event, Thread
from typing import Any

from django.core.management.base import BaseCommand
from django.db import OperationalError, connection

from jobs.cluster.registry import connect, kinds
from jobs.reconcile import RETRY_AFTER, Mirror
from jobs.turns import Turn
from metrics.doors.sink import StdoutDoor
from portal import seed

LOOK_EVERY = 0.5  # seconds between two looks whether it is our turn
COLLECT_EVERY = 300.0  # seconds between two collections of all generations
YOUNG, RARELY = 10_000, 10_000  # the collector's first threshold, more than a batch of news makes, and its third
logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Watch every cluster of this portal: pods, nodes and logs go into the database."

    def handle(self, *_args: Any, **_options: Any) -> None:
        self.stop = Event()
        self.failed = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop.set())
        seed.ensure_clusters()
        threads = [Thread(target=self.watch, args=[name], name=name) for name in kinds()]
        # every thread stands still while all objects are gone through, and those of a big cluster are hundreds of thousands: the
        # collector alone would do so several times for each list, for nothing: neither they nor rows hold each other
        gc.freeze()
        gc.set_threshold(YOUNG, gc.get_threshold()[1], RARELY)
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(COLLECT_EVERY)
                gc.collect()
        if self.failed:
            sys.exit(1)

    def watch(self, name: str) -> None:
        try:
            self._watch(name)
        except (
            Exception
        ):  # one blind mirror must not go unnoticed: all end, and the supervisor starts the watcher again
            logger.exception("The mirror of %s broke", name)
            self.failed = True
            self.stop.set()

    def _watch(self, name: str) -> None:
        port = connect(name)
        turn = Turn(name)
        turn.start()
        while not self.stop.is_set():
            if turn.is_elsewhere.is_set():
                port.look_away()
            if not turn.is_mine.wait(LOOK_EVERY):
                continue
            try:
                # new ones: while it was not our turn another one stored lines
                door = StdoutDoor()
                door.resume(name)
                Mirror(name, port, sink=door).run(self.stop, may_act=turn.is_mine.is_set)
            except OperationalError as error:  # at the start or the very end; in between it is waited for
                logger.warning("The database does not answer: %s", error)
                connection.close()
                self.stop.wait(RETRY_AFTER)
