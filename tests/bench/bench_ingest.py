"""Authenticated ingest against a bare ASGI + PostgreSQL packed-row reference, batches of 1,000 points.

Both run under the same uvicorn, on the same PostgreSQL with the same durability, under the same client, by turns. The bar:
at least 0.2 of the reference; 0.5 is the aim.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

SENDERS = 8
SECONDS = 5.0
ROUNDS = 3
BAR = 0.2
MARK = b"00000000-0000-0000-0000-000000000000"


@contextmanager
def servers() -> Iterator[None]:
    """A PostgreSQL that waits for the disk, and a Valkey; thrown away afterwards."""
    from portal.embedded.home import find_home, make_home
    from portal.embedded.postgres import Postgres
    from portal.embedded.valkey import Valkey

    folder = Path(tempfile.mkdtemp(prefix="trainhall-bench-"))
    folder.chmod(0o711)
    home = find_home(folder, {"TRAINHALL_DATA_DIR": str(folder / "data")}, uid=os.geteuid())
    make_home(home)
    postgres, valkey = Postgres(home), Valkey(home)
    postgres.prepare()
    postgres.start()
    valkey.start(durable=False)
    try:
        for server in (postgres, valkey):
            server.wait_ready()
        postgres.ensure_database("bench")
        os.environ |= {
            "DATABASE_URL": postgres.url("bench"),
            "REDIS_URL": valkey.url,
            "TRAINHALL_DATA_DIR": str(home.data),
            "DJANGO_SETTINGS_MODULE": "portal.settings.test",
        }
        yield
    finally:
        valkey.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def prepare() -> list[tuple[str, str]]:
    """A database with one running job per sender; their ids and tokens."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from jobs.credentials import attempt_token
    from portal import seed
    from tests.metrics.makers import make_job

    call_command("migrate", verbosity=0)
    alice, vision = seed.ensure_person("alice"), seed.ensure_project("vision")
    jobs = [make_job(alice, vision) for _sender in range(SENDERS)]
    connections.close_all()
    return [(job.pk, attempt_token(job.pk, 1)) for job in jobs]


@contextmanager
def web(application: str, port: int) -> Iterator[None]:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", application, "--host", "127.0.0.1", "--port", str(port)),
            *("--no-access-log", "--log-level", "warning", "--ws", "websockets-sansio"),
        ],
        cwd=ROOT,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def bodies(series: int) -> bytes:
    """1,000 points as `series` metrics of an attempt; the mark is replaced by the id of each batch."""
    each = 1000 // series
    rng = random.Random(7)
    return json.dumps(
        {
            "batch": MARK.decode(),
            "series": [
                {
                    "key": f"train/metric{number}",
                    "step": list(range(each)),
                    "time": [1767225600.123 + step / 10 for step in range(each)],
                    "value": [rng.gauss(0, 1) for _step in range(each)],
                }
                for number in range(series)
            ],
        }
    ).encode()


async def load(port: int, targets: list[tuple[str, str]], body: bytes, seconds: float) -> tuple[float, list[float]]:
    """Batches a second over all senders, and each answer's time."""
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def sender(path: str, token: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        while (began := time.perf_counter()) < until:
            writer.write(head + body.replace(MARK, str(uuid.uuid4()).encode(), 1))
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            content = await reader.readexactly(length)
            if not answer.startswith(b"HTTP/1.1 200") or json.loads(content)["accepted"] != 1000:
                raise RuntimeError(f"{answer!r} {content[:500]!r}")
            times.append(time.perf_counter() - began)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(sender(path, token) for path, token in targets))
    return len(times) / (time.perf_counter() - began), times


async def ready(port: int) -> None:
    for _try in range(300):
        try:
            _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise RuntimeError("A server did not start.")


def compare(name: str, ports: tuple[int, int], ours: list[tuple[str, str]], body: bytes) -> float:
    rates: tuple[list[float], list[float]] = ([], [])
    slowest: tuple[list[float], list[float]] = ([], [])
    for _round in range(ROUNDS):
        for which, targets in ((0, [("/", "none")] * SENDERS), (1, ours)):
            rate, times = asyncio.run(load(ports[which], targets, body, SECONDS))
            rates[which].append(rate)
            slowest[which].append(statistics.quantiles(times, n=100)[98])
    reference, mine = statistics.median(rates[0]), statistics.median(rates[1])
    print(
        f"{name:34} {reference * 1000:>12,.0f} {mine * 1000:>12,.0f} {mine / reference:>7.2f}"
        f" {statistics.median(slowest[0]) * 1000:>9.1f} {statistics.median(slowest[1]) * 1000:>9.1f}",
        flush=True,
    )
    return mine / reference


def main() -> int:
    with servers():
        jobs = prepare()
        from tests.ports import free_port

        ports = (free_port(), free_port())
        targets = [(f"/api/v1/jobs/{job}/ingest/", token) for job, token in jobs]
        with web("tests.bench.reference_ingest:application", ports[0]), web("portal.asgi:application", ports[1]):
            for port in ports:
                asyncio.run(ready(port))
            for which, to in ((0, [("/", "none")]), (1, targets)):
                for series in (1, 50):
                    asyncio.run(load(ports[which], to, bodies(series), 1.0))  # warm: statements prepared, keys known
            print("Ingest, batches of 1,000 points, 8 senders; points a second, answers' p99 in ms")
            print(f"{'':34} {'reference':>12} {'ours':>12} {'ratio':>7} {'p99 ref':>9} {'p99 ours':>9}")
            results: list[Any] = [
                compare("1 series, a job per sender", ports, targets, bodies(1)),
                compare("50 series, a job per sender", ports, targets, bodies(50)),
                compare("1 series, all senders one job", ports, [targets[0]] * SENDERS, bodies(1)),
            ]
    return 0 if min(results[:2]) >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
