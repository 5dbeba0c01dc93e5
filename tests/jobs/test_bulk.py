"""One verb for many jobs: an answer per job; what one may not stop is skipped over, what one may not see is not there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEvent, User
from jobs.models import Job
from tests.factories import make_job

pytestmark = pytest.mark.django_db


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def bulk(client: Client, action: str, ids: list[str], **more: Any) -> Any:
    body = json.dumps({"action": action, "ids": ids, **more})
    return client.post("/api/v1/jobs/bulk/", body, content_type="application/json")


def by_id(answer: Any) -> dict[str, dict[str, Any]]:
    assert answer.status_code == 200, answer.content
    return {result["id"]: result for result in answer.json()["results"]}


def test_fifty_jobs_of_mixed_owners_are_answered_one_by_one(
    world: None, alice: User, bob: User, dave: User, vision: Any, speech: Any
) -> None:
    mine = [make_job(alice, vision, name=f"mine {number}") for number in range(20)]
    bobs = [make_job(bob, vision, name=f"bob {number}") for number in range(15)]
    over = [make_job(alice, vision, status="succeeded", finished_at=timezone.now()) for _number in range(10)]
    unseen = [make_job(dave, speech) for _number in range(5)]
    ids = [job.pk for job in (*mine, *bobs, *over, *unseen)]
    answer = bulk(signed_in(alice), "stop", ids, reason="wrong data")
    results = by_id(answer)
    assert [result["id"] for result in answer.json()["results"]] == ids
    assert answer.json()["counts"] == {"done": 20, "skipped": 10, "refused": 20}
    assert {results[job.pk]["outcome"] for job in mine} == {"done"}
    assert {results[job.pk]["code"] for job in bobs} == {"not_allowed"}
    assert results[bobs[0].pk]["name"] == "bob 0"
    assert "a lead of vision" in results[bobs[0].pk]["why"]
    assert {results[job.pk]["code"] for job in over} == {"over"}
    assert {(results[job.pk]["code"], results[job.pk]["name"]) for job in unseen} == {("not_found", None)}
    assert set(Job.objects.filter(status="cancelled").values_list("pk", flat=True)) == {job.pk for job in mine}
    assert set(Job.objects.filter(status="cancelled").values_list("cancel_note", flat=True)) == {"wrong data"}
    assert AuditEvent.objects.filter(action="job.stop").count() == 20


def test_what_is_not_seen_is_said_like_what_is_not_there(world: None, alice: User, dave: User, speech: Any) -> None:
    theirs = make_job(dave, speech)
    results = by_id(bulk(signed_in(alice), "stop", [theirs.pk, "zzzzzzzzzz", "..", "x" * 40]))
    answers = {(one["name"], one["outcome"], one["code"], one["why"]) for one in results.values()}
    assert len(answers) == 1


def test_a_repeat_finds_nothing_left_to_do(world: None, alice: User, vision: Any) -> None:
    running = make_job(alice, vision, status="running", attempt_number=1, started_at=timezone.now())
    waiting = make_job(alice, vision)
    client = signed_in(alice)
    assert bulk(client, "stop", [running.pk, waiting.pk]).json()["counts"]["done"] == 2
    asked_at = Job.objects.get(pk=running.pk).cancel_requested_at
    again = by_id(bulk(client, "stop", [running.pk, waiting.pk]))
    assert (again[running.pk]["code"], again[waiting.pk]["code"]) == ("already", "over")
    assert Job.objects.get(pk=running.pk).cancel_requested_at == asked_at
    assert AuditEvent.objects.filter(action="job.stop").count() == 2


def test_a_lead_stops_jobs_of_others(world: None, alice: User, bob: User, carol: User, vision: Any) -> None:
    jobs = [make_job(alice, vision), make_job(bob, vision)]
    assert bulk(signed_in(carol), "stop", [job.pk for job in jobs]).json()["counts"]["done"] == 2


def test_hold_release_and_tag(world: None, alice: User, vision: Any) -> None:
    one, two = make_job(alice, vision, tags=["a"]), make_job(alice, vision)
    client, ids = signed_in(alice), [one.pk, two.pk]
    assert bulk(client, "hold", ids).json()["counts"]["done"] == 2
    assert bulk(client, "hold", ids).json()["counts"]["skipped"] == 2
    assert bulk(client, "release", ids).json()["counts"]["done"] == 2
    assert bulk(client, "tag", ids, tags=["a"]).json()["counts"] == {"done": 1, "skipped": 1, "refused": 0}
    assert bulk(client, "tag", ids, tags=["b", "c"]).json()["counts"]["done"] == 2
    assert sorted(Job.objects.get(pk=one.pk).tags) == ["a", "b", "c"]
    assert bulk(client, "untag", ids, tags=["b"]).json()["counts"]["done"] == 2
    assert sorted(Job.objects.get(pk=two.pk).tags) == ["a", "c"]


def test_an_id_given_twice_is_answered_once(world: None, alice: User, vision: Any) -> None:
    job = make_job(alice, vision)
    assert bulk(signed_in(alice), "stop", [job.pk, job.pk]).json()["counts"] == {"done": 1, "skipped": 0, "refused": 0}


@pytest.mark.parametrize(
    "wish",
    [
        {"action": "stop", "ids": []},
        {"action": "explode", "ids": ["x"]},
        {"action": "tag", "ids": ["x"]},
        {"action": "stop", "ids": [f"{number:010}" for number in range(501)]},
        {"action": "stop"},
        {"action": "stop", "ids": "all"},
    ],
)
def test_a_wrong_request_changes_nothing_and_is_named(world: None, alice: User, wish: dict[str, Any]) -> None:
    answer = signed_in(alice).post("/api/v1/jobs/bulk/", json.dumps(wish), content_type="application/json")
    assert answer.status_code in (400, 422)
    assert set(answer.json()["error"]["fields"]) & {"ids", "action", "tags"}


def test_without_scripts_the_bar_answers_with_a_page(world: None, alice: User, bob: User, vision: Any) -> None:
    mine, bobs = make_job(alice, vision, name="mine"), make_job(bob, vision, name="bobs")
    answer = signed_in(alice).post(
        "/jobs/bulk/", {"action": "stop", "ids": [mine.pk, bobs.pk], "query": "status=queued"}
    )
    page = answer.content.decode()
    assert "1 done, 0 skipped, 1 refused" in page
    assert 'href="/jobs/?status=queued"' in page
    odd = signed_in(alice).post("/jobs/bulk/", {"action": "stop", "ids": ["a\0b"]})
    assert "There is no such job for you." in odd.content.decode()
    nothing = signed_in(alice).post("/jobs/bulk/", {"action": "stop", "query": "status=queued"})
    assert (nothing.status_code, nothing["Location"]) == (302, "/jobs/?status=queued")
