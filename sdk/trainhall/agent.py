"""The portal's hands inside a pod.

`python -m trainhall.agent --setup` is the init container: it copies the SDK to where the program imports it from, fetches and
checks the code, and makes the run's folders; whatever goes wrong is one plain line on standard error and exit code 3.
`--wait` is the one that lets an MPI launcher begin only when its workers answer.

`python -m trainhall.agent` stands beside the program and reports what it writes into TensorBoard's event files, JSON lines and
CSV, wherever they lie in the workspace or in the run's folders. At SIGTERM it looks a last time, and ends. One that died is
started again, and goes on from what the portal has.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence

from trainhall.setup import SetupError, install_sdk

if TYPE_CHECKING:
    from trainhall.batches import Record
    from trainhall.place import Place
    from trainhall.sender import Sender

FAILED, USAGE = 3, 2
LOOK_EVERY = 1.0  # seconds
LAST_SEND = 3.0  # seconds, when the portal is away or slow
MOST_WAITING = 50_000  # records that wait to be sent; the rest stays in the files
FOLDERS = ("TRAINHALL_OUTPUT_DIR", "TRAINHALL_CHECKPOINT_DIR", "TRAINHALL_TB_DIR")


def main(arguments: Optional[List[str]] = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if not words:
        return watch()
    if words == ["--wait"]:
        wait_for(os.environ.get("TRAINHALL_MPI_HOSTS", "").split())
        return 0
    if words != ["--setup"]:
        print("usage: python -m trainhall.agent [--setup | --wait]", file=sys.stderr)
        return USAGE
    try:
        setup()
    except SetupError as error:
        print("trainhall setup: {}".format(error), file=sys.stderr)
        return FAILED
    except OSError as error:
        what = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
        print("trainhall setup: {}.".format(what), file=sys.stderr)
        return FAILED
    return 0


def setup() -> None:
    from trainhall.fetching import fetch
    from trainhall.unpacking import unpack

    workspace = os.environ.get("TRAINHALL_WORKSPACE") or "/workspace"
    install_sdk(os.environ.get("TRAINHALL_SDK_DIR") or "/opt/trainhall")
    os.makedirs(workspace, exist_ok=True)
    for name in FOLDERS:
        if os.environ.get(name):
            os.makedirs(os.environ[name], exist_ok=True)
    url = os.environ.get("TRAINHALL_CODE_URL")
    if not url:
        return
    archive = fetch(url, os.environ.get("TRAINHALL_CODE_SHA256", ""), workspace)
    try:
        unpack(archive, workspace)
    finally:
        os.unlink(archive)


def wait_for(pairs: Sequence[str]) -> None:
    """Until every `name=host:port` answers; how long that may take is the job's time limit."""
    for pair in pairs:
        name, _, address = pair.partition("=")
        host, _, port = address.rpartition(":")
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=5).close()
                break
            except OSError as error:  # its name comes late, and its program later
                print("{} does not answer yet: {}".format(name, error), file=sys.stderr, flush=True)
                time.sleep(1)


def watch() -> int:
    """Until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    # whoever started us may have held the signal back until somebody listens
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    from trainhall.place import find_place
    from trainhall.sender import import_all

    place = find_place()
    if place is None:
        print("trainhall agent: not inside a job, nothing to watch.", file=sys.stderr)
        return USAGE
    import_all()
    watch = Watch(place, stop)
    while not stop.wait(LOOK_EVERY):
        watch.look()
    watch.look(last=True)
    watch.finish()
    return 0


class Watch:
    """What the agent reads, each kind of file by a sender of its own: a batch has one source."""

    def __init__(self, place: "Place", stop: threading.Event) -> None:
        from trainhall.agent_state import StateFile
        from trainhall.event_folders import EventFolders
        from trainhall.metric_folders import MetricFolders
        from trainhall.sender import Sender

        self.stop = stop
        self.kept = StateFile(place)
        state = self.kept.load() or {}
        try:
            since = float(state.get("since") or os.environ.get("TRAINHALL_AGENT_SINCE") or time.time())
            self._open(EventFolders, MetricFolders, roots(os.environ, place.rank), since)
            if state:
                self.events.restore(state["events"])
                self.metrics.restore(state["metrics"])
        except (KeyError, TypeError, ValueError, AttributeError):  # not what an agent wrote
            since = float(os.environ.get("TRAINHALL_AGENT_SINCE") or time.time())
            self._open(EventFolders, MetricFolders, roots(os.environ, place.rank), since)
        self.since = since
        self.event_sender = Sender(place, source="tensorboard")
        self.metric_sender = Sender(place, source="file")
        self.handed_on = 0  # points

    def look(self, *, last: bool = False) -> None:
        self._keep_state()
        for key, scalar in self.events.read(last=last):
            self._hand_on(self.event_sender, (scalar.time, scalar.step, [(key, scalar.value)]))
        for told in self.metrics.read(last=last):
            self._hand_on(self.metric_sender, told)
        if self.metrics.progress is not None:
            self.metric_sender.set_progress(dict(self.metrics.progress))
            self.metrics.progress = None

    def finish(self) -> None:
        """Both at one time: what is left of the last seconds is for both."""
        other = threading.Thread(target=self.metric_sender.finish, args=(LAST_SEND,))
        other.start()
        self.event_sender.finish(LAST_SEND)
        other.join()

    def _open(self, events: Any, metrics: Any, folders: List[str], since: float) -> None:
        self.events, self.metrics = events(folders, since), metrics(folders, since)

    def _hand_on(self, sender: "Sender", record: "Record") -> None:
        while len(sender.records) >= MOST_WAITING and not self.stop.is_set():
            time.sleep(0.05)
        sender.add(record)
        self.handed_on += len(record[2])

    def _keep_state(self) -> None:
        """Only when everything that was read is with the portal, so that whoever takes over loses nothing."""
        if self.event_sender.settled + self.metric_sender.settled == self.handed_on:
            self.kept.save({"since": self.since, "events": self.events.state(), "metrics": self.metrics.state()})


def roots(env: Mapping[str, str], rank: int) -> List[str]:
    """The workspace, which is this pod's own; of the folders that all workers share the first worker's agent reads all."""
    shared = [env.get("TRAINHALL_TB_DIR"), env.get("TRAINHALL_OUTPUT_DIR")] if rank == 0 else []
    found = [*shared, env.get("TRAINHALL_WORKSPACE") or "/workspace"]
    return [os.path.normpath(folder) for folder in found if folder]


if __name__ == "__main__":
    sys.exit(main())
