"""Search of 100 MB of log through REST: to the first hit, which is rare and near the end. The bar: under 1 s.

Beside it, in the same run: the same text decompressed and matched by RE2 in memory, and `zstd -d | grep -E` if it can be had.
"""

from __future__ import annotations

import http.client
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from place import Portal, Table, portal, quiet

SIZE = 100 * 10**6
BLOCK = 2000
TIMES = 5
BAR = 1000.0
NEEDLE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 79.1 GiB total)"
PATTERNS = (
    "CUDA out of memory",
    r"OutOfMemoryError: .*allocate \d+\.\d+ GiB",
    "^torch",
    r"\w+Error\b",
    "(?i)cuda out OF memory|nccl timeout",
)


def talk(chance: random.Random) -> Iterator[tuple[str, bool]]:
    """What a training prints: steps, some colours, warnings, bars, a stack now and then."""
    step = 0
    while True:
        step += 1
        kind = chance.random()
        at = f"2026-03-01 12:{step // 60 % 60:02}:{step % 60:02},{chance.randrange(1000):03}"
        if kind < 0.85:
            rate = f"lr={chance.random() / 1000:.6f} img/s={chance.randrange(2000, 4000)}"
            words = f"loss={chance.random():.6f} acc={chance.random():.4f} {rate}"
            yield f"{at} INFO train: epoch {step // 5000} step {step} {words}", False
        elif kind < 0.90:
            yield (
                f"\x1b[32m{at}\x1b[0m \x1b[1mINFO\x1b[0m eval: top1={chance.random():.5f} top5={chance.random():.5f}",
                False,
            )
        elif kind < 0.95:
            bar = f"{'█' * (step % 10)}{' ' * (10 - step % 10)}"
            yield f"{step % 100:3}%|{bar}| {step % 100}/100 [00:12<00:34, {chance.random():.2f}it/s]", True
        elif kind < 0.99:
            yield f"{at} WARNING data: sample {chance.getrandbits(64):016x} has no label, skipped", False
        else:
            yield '  File "/usr/lib/python3/site-packages/torch/nn/modules/module.py", line 1511, in _call_impl', False


def fill() -> tuple[str, int, bytes]:
    """A job that is over, with its log sealed; the number of lines, and as text what people see of it."""
    from django.utils import timezone

    from accounts.models import Namespace, User
    from jobs.cluster.port import RawLine
    from jobs.logs import sealing
    from jobs.logs.lines import store_lines
    from jobs.logs.text import as_seen
    from tests.factories import make_attempt, make_job

    job = make_job(
        User.objects.get(username="alice"),
        Namespace.objects.get(slug="vision"),
        status="failed",
        finished_at=timezone.now(),
        attempt_number=1,
    )
    attempt = make_attempt(job, workers=4)
    workers = list(attempt.workers.all())
    chance = random.Random(11)
    words = talk(chance)
    size, lines = 0, 0
    seen: list[str] = []
    while size < SIZE:
        some = [next(words) for _line in range(BLOCK)]
        if SIZE - size < 2 * 10**6 and size < SIZE - 10**6 and NEEDLE not in seen:
            some[BLOCK // 2] = (NEEDLE, False)
        worker = chance.choice(workers)
        numbers = range(worker.log_number + 1, worker.log_number + 1 + BLOCK)
        store_lines(attempt, worker, [RawLine(number, 1e9, *line) for number, line in zip(numbers, some, strict=True)])
        seen += as_seen([text for text, overwritten in some if not overwritten])
        size += sum(len(text.encode()) for text, _overwritten in some)
        lines += BLOCK
    while sealing.seal(job.pk, whole=True):
        pass
    return job.pk, lines, "\n".join(seen).encode()


def ask(place: Portal, connection: http.client.HTTPConnection, job_id: str, **query: Any) -> Any:
    headers = {"Authorization": f"Bearer {place.token}"}
    connection.request("GET", f"/api/v1/jobs/{job_id}/logs/?{urllib.parse.urlencode(query)}", headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{query}: {answer.status} {content[:300]!r}")
    return json.loads(content)


def timed(do: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = do()
    return (time.perf_counter() - began) * 1000, found


def in_memory(packed: list[bytes], pattern: str) -> float:
    """Milliseconds for the least that any search has to do: decompress, and match until there is a hit."""
    import re2
    import zstandard

    options = re2.Options()
    options.never_nl = True
    regex = re2.compile(f"(?m){pattern}", options)
    took, found = timed(lambda: any(regex.search(zstandard.decompress(part)) for part in packed))
    if not found:
        raise RuntimeError(f"{pattern!r} is not in the text")
    return took


def by_grep(file: Path) -> str:
    tool = shutil.which("zstd")
    if not tool:
        return "no zstd here"
    command = f"{tool} -dc {file} | LC_ALL=C grep -m1 -E 'CUDA out of memory'"
    took, _done = timed(lambda: subprocess.run(["sh", "-c", command], check=True, stdout=subprocess.DEVNULL))
    return f"{took:.0f} ms"


def measure(place: Portal, table: Table) -> None:
    import zstandard

    took, (job_id, lines, text) = timed(fill)
    packed = [zstandard.compress(text[at : at + 4 * 2**20]) for at in range(0, len(text), 4 * 2**20)]
    print(f"  {lines:,} lines, {len(text) / 1e6:.0f} MB of text seen; written and sealed in {took / 1000:.0f} s")
    quiet(3)
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)
    for pattern in PATTERNS:
        ask(place, connection, job_id, limit=1)
        each = []
        for _time in range(TIMES):
            took, found = timed(lambda pattern=pattern: ask(place, connection, job_id, q=pattern, limit=1))  # type: ignore[misc]
            if [line["text"] for line in found["lines"]] != [NEEDLE]:
                raise RuntimeError(f"{pattern!r} found {found}")
            each.append(took)
        beside = min(in_memory(packed, pattern) for _time in range(3))
        table.line(
            f"first hit of {pattern}", max(each), BAR, beside=f"{min(each):.0f} at best; RE2 in memory {beside:.0f}"
        )
    took, found = timed(lambda: ask(place, connection, job_id, q="CUDA out of memory", count=1))
    table.line("count of it in the whole log", took, BAR, beside=f"{found['count']} found, done: {found['done']}")
    took, found = timed(lambda: ask(place, connection, job_id, q="WARNING", before=lines + 1, limit=500))
    table.line("the last 500 lines with a common word", took, BAR, beside=f"{len(found['lines'])} lines")
    took, found = timed(lambda: ask(place, connection, job_id, level="error", limit=500))
    table.line("every line that is an error", took, BAR, beside=f"{len(found['lines'])} found, done: {found['done']}")
    took, found = timed(lambda: ask(place, connection, job_id, levels=1))
    table.line("how many lines of each level", took, BAR, beside=f"{found['levels']}, done: {found['done']}")
    each = [timed(lambda: ask(place, connection, job_id, before=lines + 1, limit=2000))[0] for _time in range(TIMES)]
    table.line("tail of 2,000 lines", max(each), BAR)
    after, count, rounds = 0, 0, 0
    began = time.perf_counter()
    while True:
        found = ask(place, connection, job_id, q="loss=", count=1, after=after)
        after, count, rounds = found["searched"], count + found["count"], rounds + 1
        if found["done"]:
            break
    print(f"  count of a word in most lines: {count:,} in {time.perf_counter() - began:.1f} s, {rounds} requests")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "log.zst")
        file.write_bytes(zstandard.compress(text))
        print(f"  zstd -d | grep -E, first hit: {by_grep(file)}")
    connection.request(
        "GET", f"/api/v1/jobs/{job_id}/logs/?text=1&gzip=1", headers={"Authorization": f"Bearer {place.token}"}
    )
    took, size = timed(lambda: len(connection.getresponse().read()))
    print(f"  download as gzip: {size / 1e6:.1f} MB in {took / 1000:.1f} s")
    connection.close()


def main() -> int:
    with portal() as place:
        table = Table(f"A log of {SIZE / 1e6:.0f} MB, sealed; the slowest of {TIMES} requests")
        measure(place, table)
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
