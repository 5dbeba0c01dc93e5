"""What a watcher looks at first: news, in small pieces; all else in turn, a little at a time, and nothing for ever last."""

from __future__ import annotations

import gc
import time
import weakref
from collections import Counter
from collections.abc import Callable, Collection
from threading import Event
from typing import Any

import pytest
from django.utils import timezone

from jobs import reconcile
from jobs.cluster.port import Manifest, ObjectRef, Observation, RawLine
from jobs.exceptions import ClusterUnavailable
from jobs.models import Attempt, Cluster, Job, Worker
from jobs.reconcile import AT_ONCE, Mirror
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db

MANY = 2 * AT_ONCE + 7


class Paper:
    """A cluster that is no more than what a test writes down of it, and keeps what it was asked."""

    repair_every = 3600.0

    def __init__(self) -> None:
        self.jobs: dict[str, Manifest] = {}
        self.pods: dict[str, Manifest] = {}  # by the UID of their Job
        self.news: list[set[str]] = []
        self.asked: list[Collection[str] | None] = []

    def add(self, attempt: Attempt) -> None:
        owner = {"kind": "Job", "name": attempt.object_name, "uid": attempt.uid}
        metadata = {"name": attempt.object_name, "uid": attempt.uid}
        self.jobs[attempt.uid] = {"metadata": metadata, "spec": {"parallelism": 1}}
        pod = {"metadata": {"name": "pod", "uid": f"pod-{attempt.uid}", "ownerReferences": [owner]}}
        self.pods[attempt.uid] = pod | {"status": {"phase": "Pending"}}

    def changes(self, _timeout: float) -> Collection[str]:
        return self.news.pop(0) if self.news else ()

    def observe(self, jobs: Collection[str] | None = None) -> Observation:
        self.asked.append(jobs)
        uids = self.jobs.keys() if jobs is None else self.jobs.keys() & set(jobs)
        return Observation(jobs=[self.jobs[uid] for uid in uids], pods=[self.pods[uid] for uid in uids], nodes=())

    def find(self, ref: ObjectRef) -> Manifest | None:
        return self.jobs.get(ref.uid)

    def logs(self, *_of: Any, **_from: Any) -> list[RawLine]:
        return []


@pytest.fixture
def paper() -> Paper:
    return Paper()


@pytest.fixture
def attempts(paper: Paper, local_row: Any, alice: Any, vision: Any) -> list[Attempt]:
    found = []
    for number in range(MANY):
        job = make_job(alice, vision, name=f"job {number}", status="running", attempt_number=1)
        attempt = make_attempt(job, uid=f"uid-{number:03}", released_at=timezone.now(), started_at=timezone.now())
        paper.add(attempt)
        found.append(attempt)
    return found


@pytest.fixture
def mirror(paper: Paper, attempts: list[Attempt]) -> Mirror:
    """It has looked at everything once."""
    mirror = Mirror("local", paper)  # type: ignore[arg-type]
    mirror.look()
    paper.asked.clear()
    return mirror


def turns(mirror: Mirror, some: int) -> None:
    left = iter([True] * some)
    mirror.run(Event(), may_act=lambda: next(left, False))


def pieces(paper: Paper) -> list[set[str]]:
    return [set(uids) for uids in paper.asked if uids is not None]


def test_a_round_comes_a_little_at_a_time_and_ends(
    paper: Paper, mirror: Mirror, attempts: list[Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "repair_every", 0.0)
    before = mirror.repaired_at
    turns(mirror, 2)
    assert [len(piece) for piece in pieces(paper)] == [AT_ONCE, AT_ONCE]
    assert mirror.repaired_at == before, "not everything was looked at yet"
    turns(mirror, 1)
    assert Counter(uid for piece in pieces(paper) for uid in piece) == Counter(one.uid for one in attempts)
    assert mirror.repaired_at > before


def test_news_come_before_what_waits_and_are_not_looked_at_twice(
    paper: Paper, mirror: Mirror, attempts: list[Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "repair_every", 0.0)
    last = attempts[-1].uid
    turns(mirror, 1)
    paper.pods[last]["status"] = {"phase": "Pending", "message": "news"}
    paper.news.append({last})
    paper.asked.clear()
    turns(mirror, 2)
    assert pieces(paper)[0] == {last}
    assert Worker.objects.get(attempt__uid=last).message == "news"
    assert [uid for piece in pieces(paper) for uid in piece].count(last) == 1


def test_news_without_end_keep_no_round_from_its_end(
    paper: Paper, mirror: Mirror, attempts: list[Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "repair_every", 0.0)
    before = mirror.repaired_at
    paper.news = [{attempts[0].uid} for _turn in range(3)]
    turns(mirror, 3)
    assert not paper.news
    assert mirror.repaired_at > before


def test_who_is_not_simply_running_is_looked_at_every_few_seconds(
    paper: Paper, mirror: Mirror, attempts: list[Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "LOOK_EVERY", 0.0)
    Job.objects.filter(pk=attempts[3].job_id).update(status="starting")
    turns(mirror, 1)
    assert paper.asked == [None, [attempts[3].uid]]


def test_rows_that_are_not_needed_any_more_wait_for_no_collector(mirror: Mirror, attempts: list[Attempt]) -> None:
    """Thousands of them an hour: going through everything there is stops all threads of a watcher."""
    uid = attempts[0].uid
    old = weakref.ref(mirror.live[uid][0])
    assert mirror.live[uid][1][0].attempt is old()
    gc.disable()
    try:
        mirror.look_at([uid])
        assert old() is None
    finally:
        gc.enable()


def test_after_an_error_everything_is_looked_at_again_at_once(
    paper: Paper, mirror: Mirror, attempts: list[Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "RETRY_AFTER", 0.0)
    monkeypatch.setattr(paper, "repair_every", 0.0)
    turns(mirror, 1)
    observe: Callable[..., Observation] = paper.observe
    monkeypatch.setattr(paper, "observe", lambda _uids=None: unavailable())
    turns(mirror, 1)
    assert Cluster.objects.get(name="local").error == "It is away."
    monkeypatch.setattr(paper, "observe", observe)
    paper.asked.clear()
    began = time.monotonic()
    turns(mirror, 1)
    assert paper.asked[0] is None
    assert mirror.repaired_at >= began and not mirror.waiting


def unavailable() -> Observation:

    raise ClusterUnavailable("It is away.")
