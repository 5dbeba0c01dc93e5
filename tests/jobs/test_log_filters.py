"""UX-C7: lines of one level and of a stretch of time, wherever they lie, on the page, in what is fetched and through REST."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse

from jobs.cluster.port import RawLine
from jobs.logs import sealing
from jobs.logs.levels import Level
from jobs.logs.lines import store_lines
from jobs.logs.search import Anything, count, count_levels, find_after, find_before
from jobs.logs.stretches import Wanted
from jobs.models import Attempt, Job, LogBlock, LogChunk, Worker
from jobs.states import JobStatus
from tests.cast import PASSWORD
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()
SAID = [
    "start",
    "INFO ready",
    "WARNING: slow",
    "Traceback (most recent call last):",
    '  File "a.py"',
    "KeyError: 'x'",
    "end",
]


@pytest.fixture
def job(world: None, alice: Any, vision: Any) -> Job:
    return make_job(alice, vision, status=JobStatus.RUNNING, attempt_number=1)


def signed_in(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


@pytest.fixture
def api(job: Job) -> Client:
    return signed_in("bob")


def write(attempt: Attempt, *texts: str, index: int = 0, at: float = NOON, overwritten: bool = False) -> None:
    """A line a second."""
    worker = attempt.workers.get(index=index)
    first = worker.log_number + 1
    store_lines(attempt, worker, [RawLine(first + n, at + n, text, overwritten) for n, text in enumerate(texts)])


def ask(api: Client, job: Job, query: str) -> Any:
    answer = api.get(f"/api/v1/jobs/{job.pk}/logs/?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def seqs(answer: Any) -> list[int]:
    return [line["seq"] for line in answer["lines"]]


@pytest.fixture(params=["fresh", "sealed", "both"])
def told(request: pytest.FixtureRequest, job: Job) -> Job:
    attempt = make_attempt(job, workers=2)
    write(attempt, *SAID)  # 1 to 7
    if request.param == "both":
        assert sealing.seal(job.pk, whole=True)
    write(attempt, "ERROR of another", index=1, at=NOON + 60)  # 8
    write(attempt, " 10%", " 20%", at=NOON + 70, overwritten=True)
    write(attempt, "100%", at=NOON + 80)  # 11
    if request.param == "sealed":
        assert sealing.seal(job.pk, whole=True)
    return job


def test_c7_levels_are_told_and_chosen(api: Client, told: Job) -> None:
    lines = ask(api, told, "after=0")["lines"]
    assert [line.get("level", "") for line in lines[:8]] == [
        "",
        "info",
        "warning",
        "error",
        "error",
        "error",
        "",
        "error",
    ]
    assert [line["seq"] for line in lines if line.get("continues")] == [5]
    assert seqs(ask(api, told, "level=error")) == [4, 5, 6, 8]
    assert seqs(ask(api, told, "level=error&worker=1")) == [8]
    assert seqs(ask(api, told, "level=warning,info")) == seqs(ask(api, told, "level=info&level=WARNING")) == [2, 3]
    assert seqs(ask(api, told, "level=plain")) == [1, 7, 9, 10, 11]
    assert seqs(ask(api, told, "level=error&before=6&limit=1")) == [5]
    found = ask(api, told, "level=error&after=4&limit=2")
    assert (seqs(found), found["next"], found["done"]) == ([5, 6], 6, False)


def test_c7_a_stretch_of_time(api: Client, told: Job) -> None:
    assert seqs(ask(api, told, "from=2026-11-30T12:00:02Z&to=2026-11-30T12:00:05Z")) == [3, 4, 5]
    assert seqs(ask(api, told, "from=2026-11-30T21:01:00%2B09:00")) == [8, 9, 10, 11]
    assert seqs(ask(api, told, "from=2026-11-30T12:00:05&level=error")) == [6, 8]
    assert seqs(ask(api, told, "to=2026-11-30")) == []
    assert seqs(ask(api, told, "from=10m")) == []


def test_c7_with_a_search_and_counts(api: Client, told: Job) -> None:
    assert seqs(ask(api, told, "q=y&level=error")) == [5, 6]
    assert ask(api, told, "q=y&level=error&count=1")["seqs"] == [5, 6]
    assert ask(api, told, "level=error&count=1")["count"] == 4
    counts = ask(api, told, "levels=1")
    assert counts["levels"] == {"error": 4, "warning": 1, "info": 1, "debug": 0, "plain": 3}, "as people see them"
    assert (counts["searched"], counts["done"]) == (11, True)
    assert ask(api, told, "levels=1&after=7")["levels"]["error"] == 1, "so that new lines are counted alone"
    assert ask(api, told, "levels=1&q=KeyError")["levels"] == {**dict.fromkeys(counts["levels"], 0), "error": 1}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("level=fatal", "level"),
        ("from=yesterday", "from"),
        ("to=2026-13-01", "to"),
        ("from=1e9", "from"),
        ("to=²", "to"),
    ],
)
def test_c7_what_cannot_be_read_is_named(api: Client, job: Job, query: str, field: str) -> None:
    for more in ("", "&text=1"):
        answer = api.get(f"/api/v1/jobs/{job.pk}/logs/?{query}{more}")
        assert answer.status_code == 422
        assert list(answer.json()["error"]["fields"]) == [field]
    page = api.get(reverse("jobs:logs", args=[job.pk]) + f"?{query}")
    assert page.status_code == 200
    assert f"{field}: must be" in page.content.decode()


def test_c7_what_is_fetched_has_what_is_chosen(api: Client, told: Job) -> None:
    def fetch(url: str) -> tuple[str, str]:
        answer: Any = api.get(url)
        content = async_to_sync(_joined)(answer.streaming_content)
        if answer["Content-Type"] == "application/gzip":
            content = gzip.decompress(content)
        return answer["Content-Disposition"], content.decode()

    wanted = "?level=warning,error&worker=0&from=2026-11-30T12:00:03Z"
    name, text = fetch(f"/api/v1/jobs/{told.pk}/logs/{wanted}&text=1")
    assert name == f'attachment; filename="{told.pk}-worker-0-error-warning-part.log"'
    assert text.splitlines() == SAID[3:6]
    assert fetch(f"/api/v1/jobs/{told.pk}/logs/{wanted}&text=1&gzip=1")[1] == text
    assert fetch(reverse("jobs:log-raw", args=[told.pk]) + wanted) == ("inline", text)
    page = api.get(reverse("jobs:logs", args=[told.pk]) + wanted).content.decode()
    assert page.count('class="line"') == 3
    same = "worker=worker-0&amp;level=error%2Cwarning&amp;from=2026-11-30T12%3A00%3A03Z"
    assert page.count(same) == 4, "plain text, two files, JSON"
    assert 'value="2026-11-30T12:00:03"' in page


def test_c7_dave_gets_none_of_it(told: Job) -> None:
    client = signed_in("dave")
    for query in ("level=error", "levels=1", "from=1d", "text=1&level=error"):
        assert client.get(f"/api/v1/jobs/{told.pk}/logs/?{query}").status_code == 404


def test_c7_a_look_without_time_goes_on_where_it_stopped(job: Job) -> None:
    attempt = make_attempt(job)
    for number in range(12):
        write(attempt, *(f"INFO {number} {line}" for line in range(500)), *(["ERROR rare"] if number in (0, 7) else []))
        if number == 5:
            sealing.seal(job.pk, whole=True)
    wanted, found, at, rounds = Wanted(levels=frozenset({Level.ERROR})), [], 0, 0
    while True:
        part = find_after(job.pk, Anything(), Wanted(after=at, levels=wanted.levels), limit=9, budget=0)
        found, rounds = [*found, *part.lines], rounds + 1
        assert part.searched > at or part.done
        at = part.searched
        if part.done:
            break
    assert ([line["text"] for line in found], rounds > 2) == (["ERROR rare"] * 2, True)
    back, below = [], 10**9
    while True:
        part = find_before(job.pk, Anything(), Wanted(before=below, levels=wanted.levels), limit=9, budget=0)
        back = [*part.lines, *back]
        assert part.searched < below or part.done
        below = part.searched
        if part.done:
            break
    assert back == found
    total, at = 0, 0
    while True:
        counted = count_levels(job.pk, Anything(), Wanted(after=at), budget=0)
        total, at = total + counted.counts["info"], counted.searched
        if counted.done:
            break
    assert total == 6000 == count(job.pk, Anything(), Wanted(levels=frozenset({Level.INFO}))).total


def test_c7_a_traceback_goes_on_in_the_next_block(job: Job) -> None:
    attempt = make_attempt(job)
    for text in SAID:
        write(attempt, text)
        attempt = Attempt.objects.get(pk=attempt.pk)  # as after a restart of the watcher
    levels = [line.get("level") for line in find_after(job.pk, Anything(), Wanted(), limit=10).lines]
    assert levels == [None, "info", "warning", "error", "error", "error", None]
    assert Worker.objects.get(attempt=attempt).log_opened == []


def test_c7_lines_from_before_levels_are_plain(job: Job) -> None:
    write(make_attempt(job), *SAID)
    block = LogBlock.objects.get()
    import orjson
    import zstandard

    rows = [row[:3] for row in orjson.loads(zstandard.decompress(block.body))]
    LogBlock.objects.update(body=zstandard.compress(orjson.dumps(rows)))
    assert count_levels(job.pk, Anything(), Wanted()).counts["plain"] == 7
    sealing.seal(job.pk, whole=True)
    assert LogChunk.objects.count() == 1
    assert count_levels(job.pk, Anything(), Wanted()).counts["plain"] == 7


async def _joined(pieces: Any) -> bytes:
    return b"".join([piece async for piece in pieces])
