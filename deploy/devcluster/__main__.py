"""A real one-machine Kubernetes for developers and tests: `python -m deploy.devcluster up`, `down`, `build` or `status`.

`connect` makes the portal's accounts on it and prints the path for TRAINHALL_CLUSTERS.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.devcluster import (
    certificates,
    control,
    fakes,
    images,
    network,
    node,
    portal,
    programs,
    remains,
    servers,
    volumes,
)
from deploy.devcluster.api import Api, is_ready
from deploy.devcluster.settings import CannotStart, Settings, read


def up(settings: Settings) -> None:
    """Start what does not run, so that a second `up` mends what died, and wait until all of it is ready."""
    if settings.nodes:
        node.check()
    programs.build(settings, programs.needed(settings))
    for name in ("logs", "servers", "node"):
        (settings.folder / name).mkdir(parents=True, exist_ok=True)
    with _alone(settings):
        certificates.issue(settings)
        api = Api(settings)
        control.up(settings, api)
        if settings.nodes:
            node.up(settings, api)
        else:
            _end_node(settings)
        volumes.start(settings, api)
        fakes.up(settings, api)


def build(settings: Settings) -> None:
    """Everything that takes long and is kept: so that a test's first `up` takes seconds."""
    programs.build(settings, programs.PROGRAMS)
    if settings.nodes:
        node.check()
        for image in images.IMAGES:
            images.make(settings, image)


def down(settings: Settings) -> None:
    """Stop what `up` started and remove what it made; only the cache stays."""
    if not settings.folder.exists():
        return
    with _alone(settings):
        for name in ("kwok", "volumes"):
            servers.stop(settings, name)
        _end_node(settings)
        control.down(settings)
    shutil.rmtree(settings.folder)


def status(settings: Settings) -> int:
    """One line per server and node; the exit status says whether the API server answers."""
    for path in sorted((settings.folder / "servers").glob("*.json")):
        process = servers.running(settings, path.stem)
        print(f"{path.stem:12} {f'runs, process {process.pid}' if process else 'is dead'}")
    if not (settings.folder / "pki" / "done").exists() or not Api(settings).ready():
        print("There is no cluster; `make cluster-up` starts one.")
        return 1
    found = Api(settings).send("GET", "/api/v1/nodes")["items"]
    print(f"{sum(map(is_ready, found))} of {len(found)} nodes ready")
    return 0


def _end_node(settings: Settings) -> None:
    if not (settings.folder / "node" / "before.json").exists():
        return
    for name in ("kubelet", "containerd"):
        servers.stop(settings, name)
    remains.clear(settings)
    network.down(settings)


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Two of these at once would start each server twice."""
    with (settings.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.devcluster", description=__doc__)
    parser.add_argument("verb", choices=["up", "down", "build", "status", "connect"])
    verb = parser.parse_args().verb
    try:
        settings = read()
        if verb == "status":
            return status(settings)
        if verb in ("build", "up") and settings.nodes:
            node.install()
        if verb == "build":
            build(settings)
        elif verb == "down":
            down(settings)
        elif verb == "connect":
            print(portal.connect(settings, port=int(os.environ.get("PORT") or 8000)))
        else:
            began = time.monotonic()
            up(settings)
            print(
                f"Ready after {time.monotonic() - began:.0f} s. Use it with:\n  export KUBECONFIG={settings.kubeconfig}"
            )
            print(f"  {programs.find(settings, 'kubectl')} get nodes")
    except CannotStart as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
