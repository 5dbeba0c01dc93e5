"""A watch of pods that does nothing but note when each change came: how late a cluster is by itself, before any watcher of ours.

python bare_watch.py PORT FOLDER    with the folder of an admin's certificate; a line for each change, until it is ended
"""

from __future__ import annotations

import http.client
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson


@contextmanager
def bare_watch(port: int, pki: Path, noted: Path) -> Iterator[Path]:
    """A process of its own, so that whoever makes the changes does not hold it up."""
    with noted.open("wb") as output:
        process = subprocess.Popen([sys.executable, __file__, str(port), str(pki)], stdout=output)
    time.sleep(3)  # it is there before the first change
    try:
        yield noted
    finally:
        process.terminate()
        process.wait(10)


def lateness(noted: Path, told: Mapping[tuple[str, str], float]) -> list[float]:
    """In milliseconds, of each pod's message whose time is known."""
    came = {}
    for line in noted.read_text().splitlines():
        at, name, message = line.split("\t")
        came[name, message] = float(at)
    return [(came[key] - at) * 1000 for key, at in told.items() if key in came]


def watch(port: int, pki: str) -> None:
    context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
    context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
    connection.request("GET", "/api/v1/pods?limit=1")
    version = orjson.loads(connection.getresponse().read())["metadata"]["resourceVersion"]
    connection.request("GET", f"/api/v1/pods?watch=1&resourceVersion={version}&timeoutSeconds=3600")
    for line in connection.getresponse():
        at = time.time()
        item = orjson.loads(line)["object"]
        print(at, item["metadata"]["name"], item["status"].get("message", ""), sep="\t", flush=True)


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2])
