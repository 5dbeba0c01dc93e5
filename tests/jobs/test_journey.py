"""A job's journey through the real local cluster, each step taken by hand: no Celery, the same functions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection

from jobs import dispatch, submission
from jobs.exceptions import IdempotencyConflict, NeverFits, NotAllowed, SpecError
from jobs.logs.lines import read_lines
from jobs.models import Attempt, Job, JobEvent, UsageInterval, Worker
from jobs.reading import document_of
from jobs.reconcile import Mirror
from jobs.states import JobStatus, Reason
from metrics import store
from metrics.doors.sink import StdoutDoor
from tests.metrics.makers import report

pytestmark = pytest.mark.django_db(transaction=True)


class Hall:
    """The portal's hands: submits, dispatches, launches, looks."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.mirror = Mirror("local", cluster)
        self.mirror.look()

    def submit(self, user: Any, command: str, **more: Any) -> Job:
        data = {"namespace": "vision", "runtime": "shell", "command": command, **more}
        return submission.submit(user=user, document=document_of(data), request=None, origin="api").job

    def go(self) -> None:
        for attempt_id in dispatch.admit_waiting():
            dispatch.launch(attempt_id)

    def until(self, job: Job, reached: Callable[[Job], bool], *, within: float = 20) -> Job:
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            self.cluster.changes(0.2)
            self.mirror.look()
            job = Job.objects.get(pk=job.pk)
            if reached(job):
                return job
        pytest.fail(f"{job.pk} is {job.status}: {job.reason_code} {job.reason}")

    def over(self, job: Job, *, within: float = 20) -> Job:
        return self.until(job, lambda found: found.is_final, within=within)


@pytest.fixture
def hall(world: None, local_cluster: Any) -> Hall:
    return Hall(local_cluster)


def test_a_job_runs_and_leaves_its_lines_events_and_ledger(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "echo hello; echo there; exit 0", name="hello")
    assert (job.status, job.version) == (JobStatus.QUEUED, 1)
    hall.go()
    job = hall.over(job)
    assert (job.status, job.reason_code, job.exit_code) == (JobStatus.SUCCEEDED, Reason.COMPLETED, 0)
    assert [line["text"] for line in read_lines(job.pk)] == ["hello", "there"]
    assert [line["seq"] for line in read_lines(job.pk)] == [1, 2]
    moves = [(event.old, event.new) for event in job.events.filter(kind="move")]
    assert moves[0] == ("", "queued") and moves[-1][1] == "succeeded"
    usage = UsageInterval.objects.get(worker__attempt__job=job)
    assert usage.ended_at is not None
    hall.mirror.look()
    assert Attempt.objects.get(job=job).deleted_at is not None
    assert [record["event"] for record in journal(hall, job)].count("create") == 1


def test_points_of_text_that_waited_for_the_sdk_are_stored_when_the_job_ends(hall: Hall, alice: Any) -> None:
    hall.mirror = Mirror("local", hall.cluster, sink=StdoutDoor())
    job = hall.submit(alice, 'for step in 1 2 3 4; do echo "step=$step loss=0.$step"; done')
    hall.go()
    report(job, {"loss": [(1, 0.1)]})
    hall.over(job)
    [found] = store.read_series(job.pk, keys=["loss (stdout)"])
    assert found.run is not None and found.run.value.tolist() == [0.1, 0.2, 0.3, 0.4]


def journal(hall: Hall, job: Job) -> list[dict[str, Any]]:
    import json

    attempt = Attempt.objects.get(job=job, number=1)
    found = list(hall.cluster.root.glob(f"**/{attempt.object_name}/journal.jsonl"))
    assert len(found) == 1
    return [json.loads(line) for line in found[0].read_text().splitlines()]


def test_a_failing_job_says_its_exit_code_and_last_line(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "echo 'ValueError: bad data' >&2; exit 3")
    hall.go()
    job = hall.over(job)
    assert (job.status, job.reason_code, job.exit_code) == (JobStatus.FAILED, Reason.NON_ZERO_EXIT, 3)
    assert "3" in job.reason
    assert read_lines(job.pk)[-1]["text"] == "ValueError: bad data"


def test_a_gang_reports_every_rank(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "echo rank $RANK of $WORLD_SIZE", resources={"workers": 3})
    hall.go()
    job = hall.over(job)
    assert job.status == JobStatus.SUCCEEDED
    said = {line["worker"]: line["text"] for line in read_lines(job.pk)}
    assert said == {f"worker-{rank}": f"rank {rank} of 3" for rank in range(3)}
    assert {worker.exit_code for worker in Worker.objects.filter(attempt__job=job)} == {0}


def test_stopping_a_running_job_gives_it_its_grace(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "trap 'echo saving; exit 0' TERM; echo up; while :; do sleep 0.1; done")
    hall.go()
    job = hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    hall.until(job, lambda found: found.feed.log_seq >= 1)
    submission.cancel(Job.objects.get(pk=job.pk), user=alice, note="enough")
    dispatch.stop(Attempt.objects.get(job=job).pk)
    job = hall.over(job)
    assert (job.status, job.reason_code) == (JobStatus.CANCELLED, Reason.STOPPED)
    assert "Stopped by alice. enough" in job.reason
    assert read_lines(job.pk)[-1]["text"] == "saving"
    assert Attempt.objects.get(job=job).deleted_at is not None


def test_stop_now_does_not_wait_for_the_grace(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "trap '' TERM; while :; do sleep 0.1; done", stop_grace="300s")
    hall.go()
    job = hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    submission.cancel(Job.objects.get(pk=job.pk), user=alice, at_once=True)
    dispatch.stop(Attempt.objects.get(job=job).pk)
    assert hall.over(job).status == JobStatus.CANCELLED


def test_a_queued_job_is_cancelled_at_once(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "sleep 60")
    job = submission.cancel(job, user=alice)
    assert Job.objects.get(pk=job.pk).status == JobStatus.CANCELLED
    hall.go()
    assert not Attempt.objects.exists()


def test_cancelling_twice_changes_nothing(hall: Hall, alice: Any) -> None:
    job = submission.cancel(hall.submit(alice, "sleep 60"), user=alice)
    version = Job.objects.get(pk=job.pk).version
    submission.cancel(Job.objects.get(pk=job.pk), user=alice)
    assert Job.objects.get(pk=job.pk).version == version


def test_carol_stops_a_job_of_the_namespace_she_leads_and_bob_does_not(
    hall: Hall, alice: Any, bob: Any, carol: Any
) -> None:
    job = hall.submit(alice, "sleep 60")
    with pytest.raises(NotAllowed):
        submission.cancel(job, user=bob)
    assert submission.cancel(Job.objects.get(pk=job.pk), user=carol).status == JobStatus.CANCELLED


def test_a_stop_between_admission_and_launch_leaves_no_object(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "sleep 60")
    (attempt_id,) = dispatch.admit_waiting()
    submission.cancel(Job.objects.get(pk=job.pk), user=alice)
    dispatch.launch(attempt_id)
    job = Job.objects.get(pk=job.pk)
    assert job.status == JobStatus.CANCELLED
    assert not UsageInterval.objects.filter(ended_at=None).exists()
    assert not hall.cluster.observe().jobs


def test_holding_a_running_job_queues_it_and_release_starts_the_next_attempt(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "echo attempt $TRAINHALL_ATTEMPT; [ $TRAINHALL_ATTEMPT = 2 ] || sleep 60")
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    submission.hold(Job.objects.get(pk=job.pk), user=alice)
    dispatch.stop(Attempt.objects.get(job=job).pk)
    job = hall.until(job, lambda found: found.status == JobStatus.QUEUED)
    hall.go()
    assert Job.objects.get(pk=job.pk).reason_code == Reason.HELD
    submission.release(Job.objects.get(pk=job.pk), user=alice)
    hall.go()
    job = hall.over(job)
    assert (job.status, job.attempt_number) == (JobStatus.SUCCEEDED, 2)
    said = [(line["attempt"], line["text"]) for line in read_lines(job.pk) if line["text"] != "Terminated"]
    assert said == [(1, "attempt 1"), (2, "attempt 2")]


def test_ctrl_c_queues_running_jobs_again_uncharged(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "echo up; [ $TRAINHALL_ATTEMPT = 2 ] || sleep 60")
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    hall.cluster.stop_everything(4.0)
    job = hall.until(job, lambda found: found.status == JobStatus.QUEUED)
    assert (job.reason_code, job.charged_failures) == (Reason.DISRUPTION, 0)
    hall.go()
    assert hall.over(job).status == JobStatus.SUCCEEDED


def test_retries_are_charged_and_run_out(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "exit 1", retries=1)
    hall.go()
    job = hall.until(job, lambda found: found.status == JobStatus.QUEUED and found.attempt_number == 1)
    assert (job.reason_code, job.charged_failures) == (Reason.RETRIED, 1)
    Job.objects.filter(pk=job.pk).update(not_before=None)
    hall.go()
    job = hall.over(job)
    assert (job.status, job.attempt_number) == (JobStatus.FAILED, 2)


def test_a_deleted_folder_ends_as_unknown_never_as_success(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "sleep 60")
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    attempt = Attempt.objects.get(job=job)
    hall.cluster.delete(dispatch.reference(attempt), person=None)
    job = hall.over(job)
    assert (job.status, job.reason_code) == (JobStatus.FAILED, Reason.OUTCOME_UNKNOWN)


def test_the_same_key_is_the_same_job_and_another_document_a_conflict(hall: Hall, alice: Any) -> None:
    document = document_of({"namespace": "vision", "runtime": "shell", "command": "true"})
    arguments = {"user": alice, "request": None, "origin": "api", "idempotency_key": "k1"}
    first = submission.submit(document=document, **arguments)
    again = submission.submit(document=document, **arguments)
    assert (again.job.pk, again.repeated) == (first.job.pk, True)
    other = document_of({"namespace": "vision", "runtime": "shell", "command": "false"})
    with pytest.raises(IdempotencyConflict):
        submission.submit(document=other, **arguments)


def test_a_stranger_and_a_made_up_namespace_get_the_same_words(hall: Hall, dave: Any) -> None:
    words = []
    for name in ("vision", "visiom"):
        with pytest.raises(SpecError) as caught:
            hall.submit(dave, "true", namespace=name)
        words.append(caught.value.message.replace(name, "…"))
    assert words[0] == words[1]


def test_what_can_never_fit_is_refused_with_a_way_out(hall: Hall, alice: Any) -> None:
    with pytest.raises(NeverFits) as caught:
        hall.submit(alice, "true", resources={"gpus": 9})
    assert "the largest node has 8" in caught.value.message
    assert "Would fit" in caught.value.fields["resources"][1]
    assert not Job.objects.exists()


def test_a_final_state_is_never_left_whoever_tries(hall: Hall, alice: Any) -> None:
    job = submission.cancel(hall.submit(alice, "true"), user=alice)
    with pytest.raises(IntegrityError, match="final state"), connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_job SET status = 'running' WHERE id = %s", [job.pk])


def test_secrets_reach_the_process_and_nothing_that_is_shown(hall: Hall, alice: Any) -> None:
    canary = "canary-7f3k2p9"
    job = hall.submit(
        alice, 'test "$HF_TOKEN" = ' + "canary-7f3k2p9".replace("7f", "'7f'"), secrets={"HF_TOKEN": {"value": canary}}
    )
    assert canary not in Job.objects.get(pk=job.pk).spec_text
    hall.go()
    assert hall.over(job).status == JobStatus.SUCCEEDED
    assert canary not in str(list(JobEvent.objects.values())) + str(list(Job.objects.values()))
    assert not job.secrets.exists()


def test_pasted_code_lies_in_the_workspace_and_the_sdk_is_there(hall: Hall, alice: Any) -> None:
    code = {"files": {"pack/run.py": "import trainhall, os; print('ran', os.getcwd() != '/')"}}
    job = hall.submit(alice, "python pack/run.py", runtime="numpy", code=code)
    hall.go()
    # no portal listens in this test, so the archive cannot be fetched: after half a minute of trying the setup says so
    job = hall.over(job, within=60)
    assert (job.status, job.reason_code) == (JobStatus.FAILED, Reason.SETUP_FAILED)
