"""Jobs of several roles through the portal: admitted whole, ended with their leader, restarted as one."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Namespace
from jobs import dispatch, submission
from jobs.logs.lines import read_lines
from jobs.models import Attempt, Job, Runtime, UsageInterval, Worker
from jobs.queue import plan
from jobs.snapshot import take_snapshot
from jobs.states import JobStatus, Reason
from tests.jobs.test_journey import Hall

pytestmark = pytest.mark.django_db(transaction=True)

ROLE = 'role=$(python -c \'import json, os; print(json.loads(os.environ["TF_CONFIG"])["task"]["type"])\')'
FOR_EVER = "while :; do sleep 0.1; done"


@pytest.fixture
def hall(world: None, local_cluster: Any) -> Hall:
    Runtime.objects.create(slug="servers", title="Servers", image="i", launchers=["tensorflow", "mpi"])
    return Hall(local_cluster)


def submit(hall: Hall, user: Any, cases: str, **more: Any) -> Job:
    """A chief, two workers and a parameter server, each doing what its case says."""
    size = {"workers": 2, "parameter_servers": 1, "cpus": "100m", "memory": "64Mi"}
    command = f'{ROLE}; echo "I am $role $JOB_COMPLETION_INDEX"; case $role in {cases} esac'
    return hall.submit(user, command, runtime="servers", resources=size, **more)


def held(job: Job) -> int:
    return UsageInterval.objects.filter(worker__attempt__job=job, ended_at=None).count()


def test_the_chiefs_end_is_the_end_and_everything_is_given_back_once(hall: Hall, alice: Any) -> None:
    # a parameter server that takes its time to die: nobody waits for it but the quota
    stubborn = f"trap 'sleep 1.5; exit 0' TERM; {FOR_EVER}"
    job = submit(hall, alice, f"chief) sleep 0.5;; ps) {stubborn};; worker) {FOR_EVER};;")
    hall.go()
    attempt = Attempt.objects.get(job=job)
    assert attempt.object_name == f"j-{job.pk}-1-chief"
    assert [str(worker) for worker in attempt.workers.all()] == ["chief-0", "ps-0", "worker-0", "worker-1"]

    job = hall.over(job)
    assert (job.status, job.reason_code, job.exit_code) == (JobStatus.SUCCEEDED, Reason.COMPLETED, 0)
    assert job.reason == "Finished: chief-0 ended with exit code 0, which ends the others."
    attempt.refresh_from_db()
    assert attempt.ended_at is None and held(job) == 4, "its parameter server still holds its machine"

    hall.until(job, lambda found: held(found) == 0)
    attempt.refresh_from_db()
    assert (attempt.reason_code, attempt.exit_code) == (Reason.COMPLETED, 0)
    ends = set(UsageInterval.objects.filter(worker__attempt=attempt).values_list("ended_at", flat=True))
    assert ends == {attempt.ended_at}
    hall.mirror.look()
    seen = hall.cluster.observe()
    assert (seen.jobs, seen.pods) == ([], [])
    attempt.refresh_from_db()
    assert attempt.deleted_at is not None
    job.refresh_from_db()
    assert (job.status, job.charged_failures) == (JobStatus.SUCCEEDED, 0)


def test_each_role_has_a_log_of_its_own(hall: Hall, alice: Any) -> None:
    job = submit(hall, alice, f"chief) sleep 1;; *) {FOR_EVER};;")
    hall.go()
    hall.until(hall.over(job), lambda found: held(found) == 0)
    said = {line["worker"]: line["text"] for line in read_lines(job.pk) if line["text"].startswith("I am")}
    assert said == {
        "chief-0": "I am chief 0",
        "ps-0": "I am ps 0",
        "worker-0": "I am worker 0",
        "worker-1": "I am worker 1",
    }


def test_a_gang_of_several_roles_fails_and_restarts_as_one(hall: Hall, alice: Any) -> None:
    once = '[ "$TRAINHALL_ATTEMPT" = 2 ] || exit 7'
    job = submit(
        hall,
        alice,
        f"chief) sleep 1; {once.replace('exit 7', FOR_EVER)};; ps) {once}; {FOR_EVER};; worker) {FOR_EVER};;",
        retries=1,
    )
    hall.go()
    job = hall.until(job, lambda found: found.status == JobStatus.QUEUED and found.charged_failures == 1)
    first = Attempt.objects.get(job=job, number=1)
    assert (first.reason_code, first.exit_code, first.ended_at is None) == (Reason.NON_ZERO_EXIT, 7, False)
    assert first.reason.startswith("ps-0 ended with exit code 7")
    assert held(job) == 0, "another attempt begins when every pod of this one is gone"

    Job.objects.filter(pk=job.pk).update(not_before=None)
    hall.go()
    job = hall.over(job)
    assert (job.status, job.attempt_number) == (JobStatus.SUCCEEDED, 2)
    assert Worker.objects.filter(attempt__job=job, attempt__number=2).count() == 4


def test_a_stop_ends_every_role(hall: Hall, alice: Any) -> None:
    job = submit(hall, alice, f"*) {FOR_EVER};;")
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    submission.cancel(Job.objects.get(pk=job.pk), user=alice)
    dispatch.stop(Attempt.objects.get(job=job).pk)
    assert hall.over(job).status == JobStatus.CANCELLED
    assert held(job) == 0
    assert hall.cluster.observe().pods == []


def test_a_portal_that_dies_when_the_chief_has_ended_goes_on_where_it_was(hall: Hall, alice: Any) -> None:
    job = submit(hall, alice, f"chief) true;; *) {FOR_EVER};;")
    hall.go()
    hall.over(job)
    # the success was stored, the rest not ended: as a crash between the two leaves it
    Attempt.objects.filter(job=job).update(stop_requested_at=None)
    hall.until(job, lambda found: held(found) == 0)
    assert Attempt.objects.get(job=job).reason_code == Reason.COMPLETED


def test_every_pod_counts_for_the_quota_and_the_ledger(hall: Hall, alice: Any, vision: Any) -> None:
    Namespace.objects.filter(pk=vision.pk).update(cpu_limit_millis=350)
    job = submit(hall, alice, f"*) {FOR_EVER};;")
    hall.go()
    job.refresh_from_db()
    assert (job.status, job.reason_code) == (JobStatus.QUEUED, Reason.WAITING_FOR_QUOTA)
    assert "0.05 CPUs more" in job.reason, "four pods with a tenth of a CPU each"

    Namespace.objects.filter(pk=vision.pk).update(cpu_limit_millis=400)
    hall.go()
    [(_name, snapshot, _jobs)] = list(take_snapshot())
    [holding] = snapshot.holding
    assert (len(holding.nodes), holding.request.total_cpu_millis, holding.request.weight) == (4, 400, 4)
    assert plan(snapshot, holding.ends_by).waits == []
    rows = UsageInterval.objects.filter(worker__attempt__job=job).values_list("worker__role", "gpus", "cpu_millis")
    assert sorted(rows) == [("chief", 0, 100), ("ps", 0, 100), ("worker", 0, 100), ("worker", 0, 100)]


def test_the_document_names_parameter_servers_and_the_manifests_show_them(hall: Hall, alice: Any, client: Any) -> None:
    job = submit(hall, alice, f"*) {FOR_EVER};;")
    client.force_login(alice)
    found = client.get(f"/api/v1/jobs/{job.pk}/manifest/")
    names = [item["metadata"]["name"] for item in found.json()["results"] if item["kind"] == "Job"]
    assert names == [f"j-{job.pk}-1-{role}" for role in ("chief", "ps", "worker")]
    assert found.status_code == 200 and job.spec["resources"]["parameter_servers"] == 1
