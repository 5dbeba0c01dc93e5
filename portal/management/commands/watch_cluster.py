"""The watcher: brings each cluster into the database until it is told to stop."""

from __future__ import annotations

import signal
from threading import Event, Thread
from typing import Any

from django.core.management.base import BaseCommand

from jobs.cluster.registry import connect
from jobs.models import Cluster
from jobs.reconcile import Mirror


class Command(BaseCommand):
    help = "Watch every cluster of this portal: pods, nodes and logs go into the database."

    def handle(self, *_args: Any, **_options: Any) -> None:
        stop = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        mirrors = [Mirror(name, connect(name)) for name in Cluster.objects.values_list("name", flat=True)]
        threads = [Thread(target=mirror.run, args=[stop], name=mirror.name) for mirror in mirrors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
