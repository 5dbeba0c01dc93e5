"""The portal's hands inside a pod.

`python -m trainhall.agent --setup` is the init container: it copies the SDK to where the program imports it from, fetches and
checks the code, and makes the run's folders; whatever goes wrong is one plain line on standard error and exit code 3.

`python -m trainhall.agent` stands beside the program and reports what it writes into TensorBoard's event files, wherever they
lie in the workspace or in the run's folders. At SIGTERM it looks a last time, and ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import List, Mapping, Optional

from trainhall.setup import SetupError, install_sdk

FAILED, USAGE = 3, 2
LOOK_EVERY = 1.0  # seconds
LAST_SEND = 3.0  # seconds, when the portal is away or slow
MOST_WAITING = 50_000  # records that wait to be sent; the rest stays in the files
FOLDERS = ("TRAINHALL_OUTPUT_DIR", "TRAINHALL_CHECKPOINT_DIR", "TRAINHALL_TB_DIR")


def main(arguments: Optional[List[str]] = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if not words:
        return watch()
    if words != ["--setup"]:
        print("usage: python -m trainhall.agent [--setup]", file=sys.stderr)
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


def watch() -> int:
    """Until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    # whoever started us may have held the signal back until somebody listens
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    from trainhall.event_folders import EventFolders
    from trainhall.place import find_place
    from trainhall.sender import Sender, import_all

    place = find_place()
    if place is None:
        print("trainhall agent: not inside a job, nothing to watch.", file=sys.stderr)
        return USAGE
    import_all()
    sender = Sender(place, source="tensorboard")
    folders = EventFolders(roots(os.environ, place.rank), float(os.environ.get("TRAINHALL_AGENT_SINCE") or time.time()))

    def look(last: bool = False) -> None:
        for key, scalar in folders.read(last=last):
            while len(sender.records) >= MOST_WAITING and not stop.is_set():
                time.sleep(0.05)
            sender.add((scalar.time, scalar.step, [(key, scalar.value)]))

    while not stop.wait(LOOK_EVERY):
        look()
    look(last=True)
    sender.finish(LAST_SEND)
    return 0


def roots(env: Mapping[str, str], rank: int) -> List[str]:
    """The workspace, which is this pod's own; of the folders that all workers share the first worker's agent reads all."""
    shared = [env.get("TRAINHALL_TB_DIR"), env.get("TRAINHALL_OUTPUT_DIR")] if rank == 0 else []
    found = [*shared, env.get("TRAINHALL_WORKSPACE") or "/workspace"]
    return [os.path.normpath(folder) for folder in found if folder]


if __name__ == "__main__":
    sys.exit(main())
