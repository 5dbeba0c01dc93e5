"""Causes stored and told: with an attempt, without one, in hostile words, and where explaining itself fails."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from jobs import failures, git_address, looks
from jobs.cluster.observed import Observed
from jobs.cluster.port import RawLine
from jobs.documents import job_document
from jobs.logs.lines import store_lines
from jobs.models import Attempt, Job, JobEvent, Worker
from jobs.states import JobStatus, Reason
from tests.factories import make_attempt, make_job

pytestmark = pytest.mark.django_db

HOSTILE = "ValueError: \x1b[31m<script>alert(1)</script>\x00 %(kind)s"


def running(owner: Any, namespace: Any, **attempt: Any) -> Attempt:
    job = make_job(owner, namespace, status=JobStatus.RUNNING, attempt_number=1)
    return make_attempt(job, deleted_at=timezone.now(), **attempt)


def write(attempt: Attempt, *texts: str, exit_code: int = 1) -> None:
    worker = Worker.objects.get(attempt=attempt)
    store_lines(attempt, worker, [RawLine(number, 0.0, text) for number, text in enumerate(texts, 1)])
    Worker.objects.filter(pk=worker.pk).update(exit_code=exit_code)


def failed(code: int = 1, reason: Reason = Reason.NON_ZERO_EXIT) -> Observed:
    return Observed(JobStatus.FAILED, reason, f"worker-0 ended with exit code {code}.", ended=True, exit_code=code)


def document(job_id: str) -> dict[str, Any]:
    return job_document(Job.objects.for_rows().get(pk=job_id))


def test_the_cause_is_there_when_the_end_is(vision: Any, alice: Any, local_row: Any) -> None:
    attempt = running(alice, vision)
    write(attempt, "Traceback (most recent call last):", "ModuleNotFoundError: No module named 'cv2'")
    looks.settle(attempt, failed())
    shown = document(attempt.job_id)
    assert (shown["status"], shown["cause"]["kind"], shown["cause"]["owner"]) == ("failed", "module_missing", "you")
    assert shown["cause"]["evidence"]["seq"] == 2
    assert shown["attempts"][0]["cause"] == shown["cause"]


def test_the_job_tells_the_cause_and_the_attempt_and_the_event_keep_the_words_of_the_cluster(
    vision: Any, alice: Any, local_row: Any
) -> None:
    attempt = running(alice, vision)
    write(attempt, "Traceback (most recent call last):", "ModuleNotFoundError: No module named 'cv2'")
    looks.settle(attempt, failed())
    shown = document(attempt.job_id)
    assert shown["reason"] == {"code": "NonZeroExit", "text": "The Python module cv2 is not there."}
    assert shown["attempts"][0]["reason"]["text"] == "worker-0 ended with exit code 1."
    assert (
        JobEvent.objects.filter(job_id=attempt.job_id, new="failed").get().reason == "worker-0 ended with exit code 1."
    )


def test_hostile_words_can_be_stored_and_stay_words(vision: Any, alice: Any, local_row: Any) -> None:
    attempt = running(alice, vision)
    write(attempt, "Traceback (most recent call last):", HOSTILE)
    looks.settle(attempt, failed())
    assert document(attempt.job_id)["cause"]["text"] == "ValueError: <script>alert(1)</script> %(kind)s"


def test_an_end_is_stored_also_where_it_cannot_be_explained(
    vision: Any, alice: Any, local_row: Any, caplog: Any
) -> None:
    attempt = running(alice, vision)
    Job.objects.filter(pk=attempt.job_id).update(spec={"retries": 0})  # as if a later version could not read it
    attempt.job.refresh_from_db()
    looks.settle(attempt, failed())
    job = Job.objects.get(pk=attempt.job_id)
    assert (job.status, Attempt.objects.get(job=job).cause) == ("failed", {})
    assert "could not be told" in caplog.text


def test_a_job_that_failed_without_an_attempt_is_explained_when_it_is_read(
    vision: Any, alice: Any, local_row: Any
) -> None:
    job = make_job(
        alice,
        vision,
        status=JobStatus.FAILED,
        reason_code=Reason.CODE_NOT_FETCHED,
        reason="The ref main2 is not there.",
    )
    cause = document(job.pk)["cause"]
    assert cause["text"] == "Its code could not be fetched: The ref main2 is not there."
    assert cause["evidence"] is None


def test_code_at_a_private_address_is_for_an_admin_to_allow(vision: Any, alice: Any, local_row: Any) -> None:
    job = make_job(
        alice,
        vision,
        status=JobStatus.FAILED,
        reason_code=Reason.CODE_NOT_FETCHED,
        reason=git_address.words_of_private("forge.example"),
    )
    cause = document(job.pk)["cause"]
    assert cause["owner"] == "platform" and "Ask an admin" in str(cause)


def test_a_job_that_failed_before_causes_were_stored_is_explained_when_it_is_read(
    vision: Any, alice: Any, local_row: Any
) -> None:
    attempt = running(alice, vision, ended_at=timezone.now())
    write(attempt, "sh: 1: nvcc: not found", exit_code=127)
    Job.objects.filter(pk=attempt.job_id).update(status=JobStatus.FAILED, reason_code=Reason.COMMAND_NOT_FOUND)
    assert document(attempt.job_id)["cause"]["text"] == "The command nvcc is not in the image."


def test_a_kind_that_the_catalogue_has_no_more_is_told_in_its_stored_words(
    vision: Any, alice: Any, local_row: Any
) -> None:
    attempt = running(alice, vision)
    write(attempt, "bye", exit_code=3)
    looks.settle(attempt, failed(3))
    stored = {**Attempt.objects.get(pk=attempt.pk).cause, "kind": "gone"}
    told = failures.told(stored)
    assert told and told["text"].startswith("The program ended with exit code 3")


def test_why_tells_members_and_hides_from_strangers(
    vision: Any, alice: Any, bob: Any, dave: Any, local_row: Any, client: Any
) -> None:
    attempt = running(alice, vision)
    write(attempt, "bye")
    looks.settle(attempt, failed(3))
    address = f"/api/v1/jobs/{attempt.job_id}/why/"
    client.force_login(bob)
    answer = client.get(address).json()
    assert (answer["cause"]["kind"], answer["cause"]["evidence"]["text"]) == ("nonzero_exit", "bye")
    client.force_login(dave)
    assert client.get(address).status_code == 404


def test_a_change_is_spelled_on_its_button_as_in_the_step(vision: Any, alice: Any, local_row: Any) -> None:
    attempt = running(alice, vision)
    Job.objects.filter(pk=attempt.job_id).update(spec={**attempt.job.spec, "time_limit": 60})
    attempt.job.refresh_from_db()
    write(attempt, "bye", exit_code=143)
    looks.settle(attempt, failed(143, Reason.TIME_LIMIT))
    cause = document(attempt.job_id)["cause"]
    assert cause["changes"] == [{"field": "time_limit", "label": "time limit", "value": "120s", "shown": "2 min"}]
    assert "for example 2 min" in cause["steps"][0]
