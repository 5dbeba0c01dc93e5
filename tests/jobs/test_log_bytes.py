"""Whatever a program writes, through the local cluster into the log and the storage: nothing lost, nothing broken (LOGS)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage

from jobs.cluster.port import RawLine
from jobs.exceptions import ObjectGone
from jobs.logs import sealing
from jobs.logs.chunks import folder_of
from jobs.logs.lines import BYTES_PER_BLOCK, LogFollower, download, read_lines, zipped
from jobs.logs.search import Pattern, count
from jobs.logs.stretches import Wanted
from jobs.models import Attempt, Job, LogBlock
from jobs.states import JobStatus
from tests.factories import make_attempt, make_job
from tests.jobs.yard import Yard

pytestmark = pytest.mark.django_db

HARD = r"""
import os, random, sys, time
def say(data): os.write(1, data)
say(b"caf\xe9 in latin-1\n")
say(b"glyph \xe2\x82"); time.sleep(0.05); say(b"\xac whole\n")
say(b"half \xe2\x82\n")
say(b"nul \x00 here\n")
say(b"\x1b[31mred \x1b[1mand bold\x1b[0m\n")
for step in range(5): say(b"\rbar %d%%" % (20 * step)); time.sleep(0.25)
say(b"\rbar 100%\n")
say(b"x" * 2**17 + b"\n")
say(random.Random(5).randbytes(2**20) + b"\n")
time.sleep(1.1)
say(b"the end of attempt " + os.environ["TRAINHALL_ATTEMPT"].encode())
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path)
    yield yard
    yard.close()


@pytest.fixture
def job(world: None, alice: Any, vision: Any) -> Iterator[Job]:
    made = make_job(alice, vision, status=JobStatus.RUNNING, attempt_number=1)
    yield made
    for name in default_storage.listdir(folder_of(made.pk))[1]:
        default_storage.delete(f"{folder_of(made.pk)}/{name}")


def run(yard: Yard, job: Job, number: int) -> tuple[Attempt, list[RawLine]]:
    """An attempt that writes all of it, followed to its end; its object is deleted afterwards."""
    ref = yard.start("", argv=["python", "-c", HARD], job_id=job.pk, attempt=number)
    attempt = make_attempt(job, number=number, uid=ref.uid)
    Attempt.objects.filter(pk=attempt.pk).update(kubernetes_namespace=ref.namespace, object_name=ref.name)
    attempt.refresh_from_db()
    worker, follower = attempt.workers.get(), LogFollower(yard.cluster)
    yard.wait(lambda: follower.follow(attempt, [worker]) and worker.log_number)  # some of it while it runs
    yard.end_of(ref)
    follower.follow(attempt, [worker])
    raw = yard.lines(ref)
    yard.cluster.delete(ref, person=None)
    with pytest.raises(ObjectGone):
        yard.lines(ref)
    return attempt, raw


def every_line(job: Job, **which: Any) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    while page := read_lines(job.pk, after=lines[-1]["seq"] if lines else 0, limit=5000, **which):
        lines += page
    return lines


def test_hard_bytes_of_two_attempts_outlive_their_objects(yard: Yard, job: Job) -> None:
    (_first, wrote), (_second, again) = run(yard, job, 1), run(yard, job, 2)
    for _sealed in range(2):
        lines = every_line(job)
        raw = [(1, line) for line in wrote] + [(2, line) for line in again]
        assert [line["seq"] for line in lines] == list(range(1, len(raw) + 1))
        assert [(line["attempt"], line["text"], line["overwritten"]) for line in lines] == [
            (number, line.text, line.overwritten) for number, line in raw
        ]
        texts = [line["text"] for line in every_line(job, attempt=1) if not line["overwritten"]]
        assert texts[:5] == [
            "caf\ufffd in latin-1",
            "glyph € whole",
            "half \ufffd",
            "nul ␀ here",
            "\x1b[31mred \x1b[1mand bold\x1b[0m",
        ]
        assert texts[5:7] == ["bar 100%", "x" * 65_536 + f" … [{2**16} more bytes of this line were cut]"]
        assert texts[-1] == "the end of attempt 1"
        for pattern, found in (("^red and bold$", 2), ("^bar ", 2), ("more bytes .* cut", 2), (r"attempt \d$", 2)):
            assert count(job.pk, Pattern.parse(pattern), Wanted()).total == found, pattern
        whole = "".join(f"[{number}/worker-0] {line.text}\n" for number, line in raw if not line.overwritten).encode()
        assert b"".join(download(job.pk)) == whole
        assert gzip.decompress(b"".join(zipped(download(job.pk)))) == whole
        while sealing.seal(job.pk, whole=True):
            pass
    assert not LogBlock.objects.exists()


def test_c9_a_flood_is_capped_and_every_line_of_it_is_kept_or_counted(yard: Yard, job: Job) -> None:
    total = 40_000
    ref = yard.start("", argv=["python", "-c", f"for n in range({total}): print('line', n)"], job_id=job.pk)
    attempt = make_attempt(job, uid=ref.uid)
    Attempt.objects.filter(pk=attempt.pk).update(kubernetes_namespace=ref.namespace, object_name=ref.name)
    attempt.refresh_from_db()
    yard.end_of(ref)
    LogFollower(yard.cluster).follow(attempt, list(attempt.workers.all()))
    lines = every_line(job)
    kept = [line["text"] for line in lines if line["text"].startswith("line ")]
    words = [line for line in lines if line["text"].endswith("lines dropped by the rate limit]")]
    assert len(kept) + len(words) == len(lines)
    assert words, "so many lines within a second are too many"
    assert len(kept) + sum(int(line["text"].strip("[").split()[0]) for line in words) == total
    assert {line["level"] for line in words} == {"warning"}
    assert sealing.seal(job.pk, whole=True) == len(lines)
    assert kept[-100:] == [f"line {number}" for number in range(total - 100, total)], "the last words of a flood"


def test_long_lines_make_small_blocks_and_short_pages(yard: Yard, job: Job) -> None:
    ref = yard.start("", argv=["python", "-c", "for n in range(30): print(n, 'x' * 60_000)"], job_id=job.pk)
    attempt = make_attempt(job, uid=ref.uid)
    Attempt.objects.filter(pk=attempt.pk).update(kubernetes_namespace=ref.namespace, object_name=ref.name)
    attempt.refresh_from_db()
    yard.end_of(ref)
    LogFollower(yard.cluster).follow(attempt, list(attempt.workers.all()))
    most = BYTES_PER_BLOCK // 60_000 + 1
    assert [row.last_seq - row.first_seq + 1 for row in LogBlock.objects.order_by("first_seq")] == [most, 30 - most]

    def numbers(**which: Any) -> list[int]:
        return [line["seq"] for line in read_lines(job.pk, most_bytes=200_000, **which)]

    for _sealed in range(2):
        assert numbers() == [1, 2, 3]
        assert numbers(after=most - 1) == [most, most + 1, most + 2]
        assert numbers(before=most + 2) == [most - 1, most, most + 1]
        assert len(read_lines(job.pk)) == 30
        sealing.seal(job.pk, whole=True)
