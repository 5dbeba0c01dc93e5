"""The log page of a job: what stands on it before any script runs, what its address means, and the plain text beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse

from jobs.cluster.port import RawLine
from jobs.logs import lines as logs
from jobs.models import Job, Worker
from tests.cast import PASSWORD
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db


def signed_in(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def wrote(job: Job, texts: Iterable[str], *, attempt: int = 1, workers: int = 1, index: int = 0) -> None:
    made = job.attempts.filter(number=attempt).first() or make_attempt(job, number=attempt, workers=workers)
    worker = Worker.objects.get(attempt=made, index=index)
    start = worker.log_number
    raw = [RawLine(start + place, 1_760_000_000.0 + place, text) for place, text in enumerate(texts, 1)]
    logs.store_lines(made, worker, raw)


async def joined(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


@pytest.fixture
def job(world: None, alice: Any, vision: Any) -> Job:
    return make_job(alice, vision)


def shown(client: Client, job: Job, query: str = "") -> str:
    answer = client.get(reverse("jobs:logs", args=[job.pk]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_it_opens_with_the_last_two_thousand_lines(job: Job) -> None:
    wrote(job, [f"line {number}" for number in range(1, 2501)])
    page = shown(signed_in("bob"), job)
    assert page.count('class="line"') == 2000
    assert "line 501<" in page
    assert "line 500<" not in page
    assert "2500 lines" in page


def test_what_a_program_wrote_is_text_and_never_markup(job: Job) -> None:
    wrote(job, ["<img src=x onerror=alert(1)>", "</span><script>1</script>"])
    page = shown(signed_in("alice"), job)
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<script>1" not in page


def test_the_address_chooses_worker_and_attempt_and_the_view(job: Job) -> None:
    wrote(job, ["first of zero"], workers=2)
    wrote(job, ["first of one"], index=1)
    wrote(job, ["second of zero"], attempt=2, workers=2)
    client = signed_in("alice")
    assert all(words in shown(client, job) for words in ("first of zero", "first of one", "second of zero"))
    one = shown(client, job, "?worker=1")
    assert "first of one" in one
    assert "of zero" not in one
    second = shown(client, job, "?attempt=2&wrap=1&ts=0&q=a%22b")
    assert "second of zero" in second
    assert "first of" not in second
    assert 'value="a&quot;b"' in second
    assert "data-log-wrap checked" in second
    assert "data-log-times checked" not in second
    assert f"/api/v1/jobs/{job.pk}/logs/?text=1&amp;attempt=2" in second, "the download has what is chosen"


@pytest.mark.parametrize("query", ["?worker=../etc", "?attempt=x", "?attempt=²", "?attempt=99999999999999999999"])
def test_a_worker_or_an_attempt_that_cannot_be_is_not_found(job: Job, query: str) -> None:
    client = signed_in("alice")
    for name in ("jobs:logs", "jobs:log-raw"):
        assert client.get(reverse(name, args=[job.pk]) + query).status_code == 404


def test_raw_is_plain_text_in_the_browser(job: Job) -> None:
    wrote(job, ["\x1b[31mred\x1b[0m", "<b>"])
    answer = signed_in("bob").get(reverse("jobs:log-raw", args=[job.pk]) + "?worker=0")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"] == "inline"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert async_to_sync(joined)(answer.streaming_content) == b"\x1b[31mred\x1b[0m\n<b>\n"


def test_dave_finds_neither(job: Job, speech: Any) -> None:
    client = signed_in("dave")
    for name in ("jobs:logs", "jobs:log-raw"):
        assert client.get(reverse(name, args=[job.pk])).status_code == 404


def test_the_page_costs_the_same_however_many_lines(job: Job, django_assert_max_num_queries: Any) -> None:
    for _ in range(5):
        wrote(job, ["x"] * 300)
    client = signed_in("alice")
    shown(client, job)
    with django_assert_max_num_queries(25):
        shown(client, job)
