"""Sealing of logs: lines move into the storage, and whoever reads meets each of them once, before, while and after."""

from __future__ import annotations

import gzip
import random
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from jobs.cluster.port import RawLine
from jobs.logs import sealing
from jobs.logs.chunks import folder_of
from jobs.logs.lines import download, last_lines, read_lines, store_lines, zipped
from jobs.logs.search import Pattern, count, find_after, find_before
from jobs.logs.stretches import Wanted
from jobs.models import Attempt, Job, LogBlock, LogChunk
from jobs.states import JobStatus
from jobs.tasks import seal_logs
from metrics.snapshot import lines_since
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(world: None, alice: Any, vision: Any) -> Iterator[Job]:
    made = make_job(alice, vision, status=JobStatus.RUNNING, attempt_number=1)
    yield made
    for name in files_of(made):
        default_storage.delete(f"{folder_of(made.pk)}/{name}")


def files_of(job: Job) -> list[str]:
    try:
        return sorted(default_storage.listdir(folder_of(job.pk))[1])
    except FileNotFoundError:
        return []


def write(attempt: Attempt, *texts: str, index: int = 0, overwritten: bool = False) -> None:
    worker = attempt.workers.get(index=index)
    start = worker.log_number + 1
    store_lines(attempt, worker, [RawLine(start + n, 10.5 + n, text, overwritten) for n, text in enumerate(texts)])


def end(job: Job, *, ago: timedelta = timedelta(minutes=2)) -> None:
    Job.objects.filter(pk=job.pk).update(status=JobStatus.SUCCEEDED, finished_at=timezone.now() - ago)


def tell(job: Job) -> Attempt:
    """Two attempts of two workers, with all that a log may hold; the last attempt."""
    first, second = make_attempt(job, workers=2), make_attempt(job, number=2, workers=2)
    write(first, "start", "", "\x1b[32mgreen\x1b[0m", "half a glyph \ufffd", "NUL \u2400 here")
    write(first, " 1%", " 2%", index=1, overwritten=True)
    write(first, "100%", index=1)
    write(first, "a\nb", "tab\there", "\u2028 odd \x85 end", "x" * 65_536 + " … [9 more bytes of this line were cut]")
    write(second, "start again", "üñï 🚀", index=1)
    write(second, " 50%", overwritten=True)
    return second


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"after": 3, "limit": 4},
    {"before": 9, "limit": 4},
    {"before": 9, "limit": 4, "worker": "worker-1"},
    {"worker": "worker-1"},
    {"attempt": 2},
    {"attempt": 1, "worker": "worker-0", "limit": 3, "after": 1},
    {"before": 2**62, "limit": 1},
    {"after": 10**17},
]


def test_every_answer_is_the_same_once_lines_are_sealed(job: Job) -> None:
    last = tell(job)
    patterns = [Pattern.parse(text) for text in ("start", "^$", "%", "odd", "x{100}", "green", r"a b")]

    def answers() -> list[Any]:
        found: list[Any] = [read_lines(job.pk, **question) for question in QUESTIONS]
        for pattern in patterns:
            for wanted in (Wanted(), Wanted(worker="worker-1"), Wanted(attempt=2), Wanted(after=4, before=12)):
                found.append(count(job.pk, pattern, wanted))
                found.append(find_after(job.pk, pattern, wanted, limit=2))
                found.append(find_before(job.pk, pattern, wanted, limit=2))
        found.append(b"".join(download(job.pk)))
        found.append(b"".join(download(job.pk, Wanted(1, "worker-1"))))
        return [*found, last_lines(job.pk, count=3), lines_since(job.pk, 2)]

    before = answers()
    assert before[0][2]["text"] == "\x1b[32mgreen\x1b[0m"
    assert sealing.seal(job.pk, whole=False) == 0  # far from full
    end(job)
    seal_logs()
    assert not LogBlock.objects.exists()
    chunk = LogChunk.objects.get()
    assert (chunk.first_seq, chunk.last_seq, len(files_of(job))) == (1, 15, 1)
    assert sorted(map(tuple, chunk.writers)) == [(1, "worker-0"), (1, "worker-1"), (2, "worker-0"), (2, "worker-1")]
    assert answers() == before
    write(last, "one more")
    assert [line["seq"] for line in read_lines(job.pk)] == list(range(1, 17))
    assert [line["text"] for line in last_lines(job.pk, count=2)] == [" 50%", "one more"]


def test_a_job_that_has_just_ended_waits_for_its_last_words(job: Job) -> None:
    tell(job)
    end(job, ago=timedelta(seconds=5))
    assert sealing.due() == []
    end(job)
    assert sealing.due() == [(job.pk, True)]


def test_full_stretches_go_while_the_job_runs(job: Job) -> None:
    attempt = make_attempt(job)
    chance = random.Random(3)
    for _block in range(12):
        write(attempt, *(chance.randbytes(250).hex() for _line in range(1000)))
    assert sealing.due() == [(job.pk, False)]
    seal_logs()
    assert LogChunk.objects.get().last_seq == 9_000
    assert LogBlock.objects.count() == 3
    assert [line["seq"] for line in read_lines(job.pk, after=8_998, limit=4)] == [8999, 9000, 9001, 9002]
    assert [line["seq"] for line in read_lines(job.pk, before=9_002, limit=3)] == [8999, 9000, 9001]
    now, lines = lines_since(job.pk, 8_999)
    assert (now, lines and lines[0]["seq"], lines and len(lines)) == (12_000, 9_000, 3_001)


def test_many_small_blocks_are_full_as_well(job: Job) -> None:
    attempt = make_attempt(job)
    for number in range(sealing.FULL_ROWS + 2):
        write(attempt, f"second {number}")
    seal_logs()
    assert LogBlock.objects.count() == 2
    assert [line["seq"] for line in read_lines(job.pk, limit=5000)] == list(range(1, sealing.FULL_ROWS + 3))
    found = find_before(job.pk, Pattern.parse("second [0-9]$"), Wanted(), limit=3)
    assert [line["text"] for line in found.lines] == ["second 7", "second 8", "second 9"]


def test_a_crash_before_the_commit_loses_nothing_and_leaves_nothing(job: Job) -> None:
    tell(job)
    before = read_lines(job.pk)
    with transaction.atomic():
        assert sealing.seal(job.pk, whole=True) == 15
        transaction.set_rollback(True)
    assert (LogChunk.objects.count(), len(files_of(job))) == (0, 1)
    assert read_lines(job.pk) == before
    orphan = files_of(job)[0]
    assert sealing.seal(job.pk, whole=True) == 15
    assert len(files_of(job)) == 1 and orphan not in files_of(job)
    assert read_lines(job.pk) == before


@pytest.mark.parametrize("keeps", [0, 7, 39, 60])
def test_a_chunk_that_was_cut_off_is_said_in_its_place(job: Job, keeps: int) -> None:
    tell(job)
    sealing.seal(job.pk, whole=True)
    path = Path(default_storage.path(LogChunk.objects.get().storage_name))
    path.write_bytes(path.read_bytes()[:keeps])
    (line,) = read_lines(job.pk, limit=100)
    assert "damaged in the storage" in line["text"]
    path.write_bytes(path.read_bytes().ljust(400, b"x"))
    assert "damaged in the storage" in last_lines(job.pk, count=10)[0]["text"]


@pytest.mark.parametrize("place", [0.2, 0.4, 0.6, 0.8, 0.99])
@pytest.mark.parametrize("is_old", [False, True])
def test_a_damaged_byte_anywhere_is_a_gap_and_no_error(job: Job, place: float, is_old: bool) -> None:
    """Also in what is unpacked only when a page, a search or a download comes to it."""
    attempt = tell(job)
    sealing.seal(job.pk, whole=True)
    write(attempt, "after it")
    path = Path(default_storage.path(LogChunk.objects.get().storage_name))
    body = bytearray(path.read_bytes())
    if is_old:  # as files were before they had a checksum
        body = bytearray(body[:7] + b"\x02" + body[8:-4])
    at = int(len(body) * place)
    body[at : at + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(body)
    gap = "[Lines 1 to 15 are damaged in the storage.]"
    assert [line["text"] for line in read_lines(job.pk)] == [gap, "after it"]
    assert [line["text"] for line in last_lines(job.pk, count=10)] == [gap, "after it"]
    assert b"".join(download(job.pk)).decode().splitlines()[0].endswith(gap)
    assert [line["text"] for line in find_after(job.pk, Pattern.parse("after"), Wanted(), limit=5).lines] == [
        "after it"
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_a_chunk_from_before_checksums_is_read(job: Job, version: int) -> None:
    tell(job)
    before = read_lines(job.pk)
    sealing.seal(job.pk, whole=True)
    path = Path(default_storage.path(LogChunk.objects.get().storage_name))
    body = path.read_bytes()
    path.write_bytes(body[:7] + bytes([version]) + body[8:-4])
    assert [line["text"] for line in read_lines(job.pk)] == [line["text"] for line in before]


def test_a_row_that_is_damaged_is_a_gap_and_is_sealed_as_one(job: Job) -> None:
    attempt = tell(job)
    write(attempt, "one", "two", "three")
    last = LogBlock.objects.order_by("last_seq").last()
    assert last is not None
    LogBlock.objects.filter(pk=last.pk).update(body=last.body[:5])
    gap = ["[Lines 16 to 18 are damaged in the database.]", "", ""]
    assert [line["text"] for line in last_lines(job.pk, count=3)] == gap
    sealing.seal(job.pk, whole=True)
    assert [line["text"] for line in last_lines(job.pk, count=3)] == gap


def test_a_chunk_that_the_storage_lost_is_said_in_its_place(job: Job) -> None:
    attempt = tell(job)
    sealing.seal(job.pk, whole=True)
    write(attempt, "after it")
    path = Path(default_storage.path(LogChunk.objects.get().storage_name))
    body = path.read_bytes()
    path.write_bytes(body[:-1])
    assert read_lines(job.pk)[0]["text"] == "[Lines 1 to 15 are damaged in the storage.]"
    path.unlink()
    lines = read_lines(job.pk)
    assert [line["text"] for line in lines] == ["[Lines 1 to 15 are not in the storage any more.]", "after it"]


def test_a_download_has_every_line_of_all_and_says_whose(job: Job) -> None:
    last = tell(job)
    sealing.seal(job.pk, whole=True)
    write(last, "end")
    text = b"".join(download(job.pk)).decode()
    assert text.split("\n")[:3] == ["[1/worker-0] start", "[1/worker-0] ", "[1/worker-0] \x1b[32mgreen\x1b[0m"]
    assert text.endswith("[2/worker-0] end\n")
    assert " 1%" not in text and "[1/worker-1] 100%\n" in text
    assert gzip.decompress(b"".join(zipped(download(job.pk)))).decode() == text
    assert b"".join(download(job.pk, Wanted(2, "worker-1"))).decode() == "start again\nüñï 🚀\n"


@pytest.mark.django_db(transaction=True)
def test_a_reader_meets_every_line_once_while_they_are_sealed(job: Job) -> None:
    attempt, other = make_attempt(job, workers=2), make_attempt(job, number=2)
    lines = 0
    for block in range(240):
        write(other if block % 5 == 4 else attempt, *(f"line {block} {n}" for n in range(20)), index=0)
        lines += 20
    wrong: list[str] = []
    rounds = [0]
    over = threading.Event()

    def read() -> None:
        try:
            pattern = Pattern.parse("^line")
            while not over.is_set() or not rounds[0]:
                forth = [line["seq"] for line in read_lines(job.pk, limit=5000)]
                back = [line["seq"] for line in read_lines(job.pk, before=10**6, limit=5000)]
                ones = [line["seq"] for line in read_lines(job.pk, attempt=2, limit=5000)]
                found = count(job.pk, pattern, Wanted(), budget=60).seqs
                every = list(range(1, lines + 1))
                if not forth == back == found == every or len(set(ones)) != len(ones) or len(ones) != lines // 5:
                    wrong.append(f"{len(forth)} {len(back)} {len(found)} {len(ones)}")
                rounds[0] += 1
        finally:
            connection.close()

    readers = [threading.Thread(target=read) for _reader in range(2)]
    for reader in readers:
        reader.start()
    rest = lines
    while rest:
        # by pieces, so that the border between rows and chunks moves under the readers' feet
        sealed = seal_some(job.pk, 8)
        assert sealed
        rest -= sealed
    over.set()
    for reader in readers:
        reader.join(60)
    assert (wrong, LogBlock.objects.count(), LogChunk.objects.count()) == ([], 0, 30)
    assert rounds[0]


def seal_some(job_id: str, rows: int) -> int:
    kept = sealing.FULL_ROWS
    sealing.FULL_ROWS = rows
    try:
        return sealing.seal(job_id, whole=False)
    finally:
        sealing.FULL_ROWS = kept
