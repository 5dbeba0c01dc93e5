"""Jobs that are found on a cluster: taken into the queue once, as somebody's, and no longer there when they are deleted."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEvent
from jobs import adoption, departures, dispatch, intents, lifecycle, submission
from jobs.cluster.kubernetes.setting import KubernetesSetting
from jobs.cluster.observed import Observed
from jobs.exceptions import WrongState
from jobs.models import Adoption, Attempt, Cluster, ClusterNamespace, Job, JobFeed, UsageInterval
from jobs.states import JobStatus, Reason
from portal import seed
from tests.jobs.test_adopted_manifest import job as manifest

pytestmark = pytest.mark.django_db
ALICE = "trainhall:local:alice"


@pytest.fixture
def gpu(settings: Any, vision: Any, local_cluster: Any) -> Any:
    """A cluster with the namespace of the project; what of it is asked anew is asked of a real one that has nothing."""
    settings.KUBERNETES_CLUSTERS = [KubernetesSetting(name="gpu")]
    seed.ensure_priorities()
    cluster = Cluster.objects.create(name="gpu", kind="kubernetes")
    ClusterNamespace.objects.create(cluster=cluster, namespace=vision, digest="applied")
    return local_cluster


def made(vision: Any, *, by: str = ALICE, name: str = "digits", uid: str = "u-1", **spec: Any) -> dict[str, Any]:
    names = {"name": name, "uid": uid, "namespace": vision.kubernetes_name}
    return manifest(metadata=names | {"annotations": {"trainhall.io/created-by": by}}, **spec)


def look(port: Any, *jobs: dict[str, Any], **asked: Any) -> int:
    return adoption.look("gpu", port, list(jobs), **asked)


def test_it_is_its_makers_and_waits_in_the_queue(gpu: Any, vision: Any, alice: Any) -> None:
    assert look(gpu, made(vision, parallelism=3, completions=3)) == 1
    job = Job.objects.get()
    assert (job.name, job.origin, job.owner, job.namespace, job.cluster_id) == (
        "digits",
        "kubectl",
        alice,
        vision,
        "gpu",
    )
    assert (job.status, job.reason_code, job.workers) == ("queued", "PendingEvaluation", 3)
    assert JobFeed.objects.filter(job=job).exists()
    assert job.adoption.is_known and job.adoption.created_by == ALICE
    (event,) = AuditEvent.objects.filter(action="job.adopt")
    assert (event.target, event.namespace, event.actor) == (job.pk, "vision", "alice")


def test_it_is_taken_in_once_by_whoever_looks(gpu: Any, vision: Any) -> None:
    assert look(gpu, made(vision)) == 1
    assert look(gpu, made(vision)) == 0
    assert look(gpu, made(vision), asked={"u-1"}) == 0
    assert Job.objects.count() == 1


def test_of_two_that_take_it_in_at_the_same_moment_one_does(gpu: Any, vision: Any) -> None:
    row = ClusterNamespace.objects.get()
    adoption._insert("gpu", row.namespace, made(vision))
    assert not adoption._adopt("gpu", made(vision))
    assert Job.objects.count() == Adoption.objects.count() == JobFeed.objects.count() == 1


def test_made_again_under_the_same_name_it_is_another_job(gpu: Any, vision: Any) -> None:
    look(gpu, made(vision))
    look(gpu, made(vision, uid="u-2"))
    first, second = Job.objects.order_by("created_at")
    assert first.pk != second.pk and first.name == second.name
    assert (first.status, second.status) == ("cancelled", "queued")
    assert "deleted on the cluster" in first.reason
    # both had an attempt of that name
    for job in (first, second):
        Attempt.objects.create(
            job=job, number=1, cluster_id="gpu", kubernetes_namespace="p", object_name="digits", uid=job.adoption.uid
        )


@pytest.mark.parametrize("by", ["trainhall:local:dave", "system:serviceaccount:kube-system:cronjob-controller", ""])
def test_whom_the_portal_does_not_know_there_is_said_to_be_unknown(gpu: Any, vision: Any, dave: Any, by: str) -> None:
    look(gpu, made(vision, by=by))
    job = Job.objects.get()
    assert (job.owner.username, job.owner.is_active, job.owner.has_usable_password()) == ("unknown", False, False)
    assert not job.adoption.is_known and job.adoption.created_by == by
    # nobody who had a right has lost it
    assert departures.hold_jobs_of_who_left() == 0
    look(gpu, made(vision, by=by), made(vision, by=by, uid="u-2"))
    assert Job.objects.filter(owner=job.owner).count() == 2


def test_a_namespace_that_is_not_ours_is_left_alone(gpu: Any, vision: Any) -> None:
    foreign = made(vision)
    foreign["metadata"]["namespace"] = "kube-system"
    assert look(gpu, foreign) == 0
    ClusterNamespace.objects.update(digest="")
    assert look(gpu, made(vision)) == 0


def test_one_that_cannot_be_read_keeps_no_other_waiting_and_is_complained_of_once(
    gpu: Any, vision: Any, caplog: Any
) -> None:
    broken = made(vision, uid="u-broken")
    broken["spec"]["template"]["spec"]["containers"] = [{"name": "a", "image": "b", "command": 7}]
    assert look(gpu, broken, made(vision)) == 1
    assert look(gpu, broken) == look(gpu, broken) == 0
    assert caplog.text.count("could not be adopted") == 1 and "Traceback" in caplog.text


def test_what_says_things_that_no_database_holds_is_taken_in(gpu: Any, vision: Any) -> None:
    container = {"name": "a", "image": "b\0", "command": ["echo", "\0"]}
    assert look(gpu, made(vision, pod={"containers": [container]})) == 1
    assert Job.objects.get().parsed.image == "b\ufffd"


def test_more_pods_than_a_job_may_have_fail_at_once(gpu: Any, vision: Any) -> None:
    look(gpu, made(vision, parallelism=2_000_000_000, completions=None))
    job = Job.objects.get()
    assert (job.status, job.reason_code) == ("failed", "NeverFits")
    assert "2000000000 pods" in job.reason


def test_deleted_with_kubectl_while_it_waits_it_is_cancelled(gpu: Any, vision: Any) -> None:
    look(gpu, made(vision))
    look(gpu, asked={"another"})
    assert Job.objects.get().status == "queued"
    look(gpu, asked={"u-1"})
    job = Job.objects.get()
    assert (job.status, job.reason_code) == ("cancelled", "Stopped")
    assert "not through the portal" in job.reason


def admitted(job: Job, **fields: Any) -> Attempt:
    attempt = lifecycle.admit(job, ["node-1"] * job.workers)
    assert attempt is not None
    for name, value in fields.items():
        setattr(attempt, name, value)
    attempt.save()
    return attempt


def test_its_attempt_is_the_object_that_was_found_and_is_charged(gpu: Any, vision: Any, alice: Any) -> None:
    look(gpu, made(vision, parallelism=2, completions=2))
    attempt = admitted(Job.objects.get())
    assert (attempt.object_name, attempt.uid, attempt.kubernetes_namespace) == ("digits", "u-1", vision.kubernetes_name)
    assert dispatch.reference(attempt).uid == "u-1"
    charged = UsageInterval.objects.filter(owner=alice, namespace=vision)
    assert [(row.cpu_millis, row.memory_bytes) for row in charged] == [(1000, 2 * 2**30)] * 2


@pytest.mark.parametrize("reason", [Reason.NODE_LOST, Reason.DISRUPTION, Reason.NON_ZERO_EXIT, Reason.TIME_LIMIT])
def test_once_it_has_run_nothing_starts_it_again(gpu: Any, vision: Any, reason: Reason) -> None:
    look(gpu, made(vision))
    job = Job.objects.get()
    attempt = admitted(job, released_at=timezone.now())
    lifecycle.settle(job, attempt, Observed(JobStatus.FAILED, reason, "It ended.", ended=True, pods_gone=True))
    job = Job.objects.get()
    assert (job.status, job.reason_code) == ("failed", reason)
    assert ("make it again" in job.reason) == (reason in (Reason.NODE_LOST, Reason.DISRUPTION))


@pytest.mark.parametrize("reason", [Reason.START_TIMEOUT, Reason.NOT_ALLOWED])
def test_what_cannot_start_fails_and_says_what_to_do(gpu: Any, vision: Any, reason: Reason) -> None:
    look(gpu, made(vision))
    job = Job.objects.get()
    text = "It did not start within 10 min."
    attempt = admitted(job, released_at=timezone.now(), stop_code=reason, reason_code=reason, reason=text)
    lifecycle.settle(job, attempt, Observed(None, Reason.STOPPED, "Stopped.", ended=True, pods_gone=True))
    job = Job.objects.get()
    assert (job.status, job.reason_code) == ("failed", reason)
    assert text in job.reason


def test_held_between_admission_and_start_it_waits_again_with_the_same_object(
    gpu: Any, vision: Any, alice: Any
) -> None:
    look(gpu, made(vision))
    job = Job.objects.get()
    attempt = admitted(job, stop_code=Reason.HELD)
    lifecycle.settle(job, attempt, Observed.ended_without_running(Reason.HELD, "Ended before anything of it ran."))
    job = Job.objects.get()
    assert job.status == "queued"
    again = admitted(job)
    assert (again.number, again.object_name, again.uid) == (2, "digits", "u-1")


def test_its_object_stays_when_it_has_ended_and_nobody_stopped_it(gpu: Any, vision: Any) -> None:
    look(gpu, made(vision))
    attempt = admitted(Job.objects.get(), released_at=timezone.now(), ended_at=timezone.now())
    assert dispatch.delete_objects(attempt)
    attempt.refresh_from_db()
    assert attempt.deleted_at is not None  # no more looked at; `gpu` is no cluster that could have been asked


def test_it_can_be_held_only_while_it_waits(gpu: Any, vision: Any, alice: Any) -> None:
    look(gpu, made(vision))
    submission.hold(Job.objects.get(), user=alice)
    submission.release(Job.objects.get(), user=alice)
    admitted(Job.objects.get(), released_at=timezone.now())
    with pytest.raises(WrongState, match="started once"):
        submission.hold(Job.objects.get(), user=alice)


def test_stopped_here_while_it_waits_it_is_cancelled_at_once(gpu: Any, vision: Any, alice: Any) -> None:
    look(gpu, made(vision))
    assert intents.request_cancel(Job.objects.get(), actor=alice)
    assert Job.objects.get().status == "cancelled"
    assert list(Adoption.objects.filter(gone_at=None)), "its object is still to be deleted"


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("tab", ["", "logs/", "workers/", "events/", "files/", "spec/", "metrics/"])
def test_its_pages_are_for_the_project_and_say_what_it_lacks(
    gpu: Any, vision: Any, alice: Any, bob: Any, dave: Any, tab: str
) -> None:
    look(gpu, made(vision))
    job = Job.objects.get()
    page = signed_in(bob).get(f"/jobs/{job.pk}/{tab}")
    assert page.status_code == 200
    text = page.content.decode()
    assert (
        f"?from={job.pk}" not in text and ">Files</a>" not in text.replace('aria-current="page"', "")
    ) or tab == "files/"
    if not tab:
        assert "Made with kubectl by alice, as p-vision/digits." in text and "What it lacks" in text
    if tab == "spec/":
        assert "kind: Job" in text and "python train.py" in text
    assert signed_in(dave).get(f"/jobs/{job.pk}/{tab}").status_code == 404


def test_rest_tells_what_it_is_and_refuses_a_clone(gpu: Any, vision: Any, alice: Any) -> None:
    look(gpu, made(vision))
    job = Job.objects.get()
    client = signed_in(alice)
    told = client.get(f"/api/v1/jobs/{job.pk}/").json()
    assert told["origin"] == "kubectl"
    assert told["adopted"] == {
        "object": f"{vision.kubernetes_name}/digits",
        "uid": "u-1",
        "created_by": ALICE,
        "is_known": True,
    }
    (row,) = client.get("/api/v1/jobs/").json()["results"]
    assert (row["origin"], row["user"]) == ("kubectl", "alice")
    answer = client.post(f"/api/v1/jobs/{job.pk}/clone/", {}, content_type="application/json")
    assert answer.status_code == 409 and "kubectl" in answer.content.decode()
    form = client.get(f"/jobs/new/?from={job.pk}")
    assert form.status_code == 200 and "made with kubectl" in form.content.decode()
