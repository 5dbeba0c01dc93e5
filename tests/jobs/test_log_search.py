"""Search of a log: over what people see, all attempts and workers, wherever the lines lie."""

from __future__ import annotations

import gzip
import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from jobs.cluster.port import RawLine
from jobs.logs.lines import store_lines
from jobs.logs.search import Pattern, count, find_after, find_before
from jobs.logs.stretches import Wanted
from jobs.models import Attempt, Job
from jobs.states import JobStatus
from tests.cast import PASSWORD
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(world: None, alice: Any, vision: Any) -> Job:
    return make_job(alice, vision, status=JobStatus.RUNNING, attempt_number=1)


@pytest.fixture
def api(job: Job) -> Client:
    return signed_in("bob")


def signed_in(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def write(attempt: Attempt, *texts: str, index: int = 0, overwritten: bool = False) -> None:
    worker = attempt.workers.get(index=index)
    start = worker.log_number + 1
    store_lines(attempt, worker, [RawLine(start + n, 10.0 + n, text, overwritten) for n, text in enumerate(texts)])


def ask(api: Client, job: Job, query: str) -> Any:
    answer = api.get(f"/api/v1/jobs/{job.pk}/logs/?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def seqs(answer: Any) -> list[int]:
    return [line["seq"] for line in answer["lines"]]


def test_bob_finds_lines_of_alice_and_dave_finds_nothing(api: Client, job: Job) -> None:
    write(make_attempt(job), "epoch 1", "loss 0.5", "epoch 2", "loss 0.25", "done")
    found = ask(api, job, "q=loss|done&limit=2")
    assert (seqs(found), found["next"], found["done"]) == ([2, 4], 4, False)
    found = ask(api, job, "q=loss|done&limit=2&after=4")
    assert (seqs(found), found["next"], found["done"]) == ([5], 5, True)
    found = ask(api, job, "q=^epoch%20\\d$&before=3&limit=5")
    assert (seqs(found), found["next"], found["done"]) == ([1], 0, True)
    found = ask(api, job, "q=o&before=5&limit=2")
    assert (seqs(found), found["next"], found["done"]) == ([3, 4], 3, False)
    assert signed_in("dave").get(f"/api/v1/jobs/{job.pk}/logs/?q=loss").status_code == 404


def test_count_says_how_many_and_where(api: Client, job: Job) -> None:
    write(make_attempt(job), *(f"step {number}" for number in range(12_000)))
    assert ask(api, job, "q=9$&count=1") == {
        "count": 1200,
        "seqs": list(range(10, 12_001, 10)),
        "searched": 12_000,
        "done": True,
    }
    found = ask(api, job, "q=step&count=1&after=100")
    assert (found["count"], len(found["seqs"]), found["seqs"][0]) == (11_900, 10_000, 101)


def test_attempts_and_workers_hold_and_all_are_searched(api: Client, job: Job) -> None:
    write(first := make_attempt(job, workers=2), "a 1")
    write(first, "a 2", "b 2", index=1)
    write(make_attempt(job, number=2, workers=2), "a 3", index=1)
    assert seqs(ask(api, job, "q=a")) == [1, 2, 4]
    assert seqs(ask(api, job, "q=a&worker=1")) == [2, 4]
    assert seqs(ask(api, job, "q=a&attempt=1")) == [1, 2]
    assert seqs(ask(api, job, "q=a&attempt=2&worker=worker-0")) == []
    assert ask(api, job, "q=a&count=1&worker=1&attempt=1")["seqs"] == [2]
    assert seqs(ask(api, job, "q=a&worker=1&before=4")) == [2]


def test_case_and_plain_text(api: Client, job: Job) -> None:
    write(make_attempt(job), "CUDA out of memory", "cuda [0]", "ÄRGER")
    assert seqs(ask(api, job, "q=cuda")) == [2]
    assert seqs(ask(api, job, "q=cuda&case=i")) == [1, 2]
    assert seqs(ask(api, job, "q=ärger&case=i")) == [3]
    assert seqs(ask(api, job, "q=[0]&literal=1")) == [2]
    assert seqs(ask(api, job, "q=A%20[0]&literal=1&case=i")) == [2]


def test_what_is_seen_is_searched_and_what_was_written_comes_back(api: Client, job: Job) -> None:
    attempt = make_attempt(job)
    write(attempt, "\x1b[31mlo\x1b[1mss\x1b[0m is nan", "\x1b]8;;http://loss\x07link\x1b]8;;\x07")
    write(attempt, "loss 1 %", "loss 2 %", overwritten=True)
    write(attempt, "loss 100 %")
    found = ask(api, job, "q=loss")
    assert seqs(found) == [1, 5]
    assert found["lines"][0]["text"] == "\x1b[31mlo\x1b[1mss\x1b[0m is nan"
    assert seqs(ask(api, job, "q=^loss")) == [1, 5]
    assert seqs(ask(api, job, "q=31m")) == []


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("foo(", "missing ): foo("),
        ("(?<=x)y", "invalid perl operator"),
        ("x{2000}", "invalid repetition size"),
        (r"\pL{900}", "too large"),
        ("x" * 1001, "longer than 1000"),
        ("a\nb", "line end"),
    ],
)
def test_a_bad_pattern_is_refused_by_name(api: Client, job: Job, pattern: str, said: str) -> None:
    answer = api.get(f"/api/v1/jobs/{job.pk}/logs/", {"q": pattern})
    assert answer.status_code == 422
    assert said in answer.json()["error"]["fields"]["q"][0]
    assert "(?m)" not in answer.content.decode()


TEXTS = ["", "a", "ab", "b\ta", "abab", "", "ä b", "x" * 300, "end a", ""]


@pytest.mark.parametrize(
    "pattern",
    ["^$", "a", "^a", "a$", r"\bb", "[^x]", r"\s", "b|e", "x{200}", "(?i)AB", r"\Aa", r"a\z", "a*", "(?s)a.*b", r"\W"],
)
def test_a_line_matches_as_if_it_were_alone(job: Job, pattern: str) -> None:
    write(make_attempt(job), *TEXTS)
    alone = [n for n, text in enumerate(TEXTS, 1) if re.search(pattern.replace(r"\z", r"\Z"), text, re.ASCII)]
    if pattern == r"\W":
        assert 7 in alone  # both engines take the letter for no word
    parsed = Pattern.parse(pattern)
    assert count(job.pk, parsed, Wanted()).seqs == alone
    assert [line["seq"] for line in find_after(job.pk, parsed, Wanted(), limit=3).lines] == alone[:3]
    assert [line["seq"] for line in find_before(job.pk, parsed, Wanted(), limit=3).lines] == alone[-3:]


def test_a_search_without_time_goes_on_where_it_stopped(job: Job) -> None:
    attempt = make_attempt(job)
    for _round in range(12):
        write(attempt, *(f"{'x' * 400} {number}" for number in range(1000)))
    pattern, at, total, rounds = Pattern.parse(" 99[0-9]$"), 0, 0, 0
    while True:
        counted = count(job.pk, pattern, Wanted(after=at), budget=0)
        total, rounds = total + counted.total, rounds + 1
        assert counted.searched > at or counted.done
        at = counted.searched
        if counted.done:
            break
    assert (total, at) == (120, 12_000)
    assert rounds > 12
    found = find_before(job.pk, pattern, Wanted(), limit=200, budget=0)
    while not found.done:
        rest = find_before(job.pk, pattern, Wanted(before=found.searched), limit=200, budget=0)
        found = rest._replace(lines=rest.lines + found.lines)
    assert len(found.lines) == 120
    assert [line["seq"] for line in found.lines] == sorted({line["seq"] for line in found.lines})


def test_an_answer_of_very_long_lines_ends_early_and_goes_on(api: Client, job: Job) -> None:
    attempt = make_attempt(job)
    for _block in range(6):
        write(attempt, *(f"{number} {'x' * 60_000}" for number in range(16)))
    for turn in ("after", "before"):
        found, at, answers = list[int](), {"after": 0, "before": 10_000}[turn], 0
        done = False
        while not done:
            answer = ask(api, job, f"q=x$&{turn}={at}&limit=5000")
            assert sum(len(line["text"]) for line in answer["lines"]) < 5 * 2**20
            at, done, answers = answer["next"], answer["done"], answers + 1
            found = found + seqs(answer) if turn == "after" else seqs(answer) + found
        assert found == list(range(1, 97))
        assert answers >= 2


def test_the_download_is_a_file_of_text_or_gzip(api: Client, job: Job) -> None:
    write(make_attempt(job), "one")
    write(make_attempt(job, number=2), "two \x1b[31mred\x1b[0m")

    def fetch(query: str) -> tuple[str, str, bytes]:
        answer: Any = api.get(f"/api/v1/jobs/{job.pk}/logs/?text=1{query}")
        content = async_to_sync(_joined)(answer.streaming_content)
        return answer["Content-Type"], answer["Content-Disposition"], content

    kind, name, content = fetch("")
    assert (kind, name) == ("text/plain; charset=utf-8", f'attachment; filename="{job.pk}.log"')
    assert content.decode() == "[1/worker-0] one\n[2/worker-0] two \x1b[31mred\x1b[0m\n"
    kind, name, packed = fetch("&gzip=1")
    assert (kind, name) == ("application/gzip", f'attachment; filename="{job.pk}.log.gz"')
    assert gzip.decompress(packed) == content
    _kind, name, content = fetch("&attempt=1&worker=0")
    assert (name, content) == (f'attachment; filename="{job.pk}-attempt-1-worker-0.log"', b"one\n")
    assert fetch("&attempt=3")[2] == b""
    assert gzip.decompress(fetch("&attempt=3&gzip=1")[2]) == b""


async def _joined(pieces: Any) -> bytes:
    return b"".join([piece async for piece in pieces])
