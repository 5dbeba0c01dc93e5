"""What a Job made with kubectl asks for, and which worker each of its pods is: pure."""

from __future__ import annotations

import random
from typing import Any

import pytest

from jobs.cluster.adopted import created_by, is_waiting, kept, spec_of, workers_of
from jobs.cluster.observed import DELETED, observe_attempt
from jobs.cluster.places import numbered
from jobs.cluster.pods import GONE, place_of
from jobs.states import JobStatus, Reason


def job(*, metadata: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """As `kubectl create job digits --image=numpy -- python train.py` comes out of an API server with our policies."""
    container = {"name": "digits", "image": "numpy", "command": ["python", "train.py"], "resources": {}}
    template = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 30}
    usual = {"suspend": True, "parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed"}
    names = {"name": "digits", "namespace": "p-vision", "uid": "u-1"}
    names["annotations"] = {"trainhall.io/created-by": "ldap:alice"}
    return {
        "metadata": names | (metadata or {}),
        "spec": usual | {"template": {"metadata": {}, "spec": template | (pod or {})}} | spec,
    }


def read(found: dict[str, Any]) -> Any:
    return spec_of(found, namespace="vision", cluster="gpu", time_limit=86400)


def test_what_kubectl_makes_waits_for_the_portal() -> None:
    assert is_waiting(job())
    assert created_by(job()) == "ldap:alice"


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("ours", {"metadata": {"labels": {"trainhall.io/job": "4k2b9x7q1m"}}}),
        ("has a name that only we give", {"metadata": {"name": "j-4k2b9x7q1m-1"}}),
        ("Kueue's", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpu"}}}),
        ("of a JobSet", {"metadata": {"ownerReferences": [{"kind": "JobSet", "uid": "s"}]}}),
        ("being deleted", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ("not suspended", {"suspend": False}),
        ("of no pods", {"parallelism": 0}),
    ],
)
def test_others_are_left_alone(what: str, changed: dict[str, Any]) -> None:
    assert not is_waiting(job(**changed)), what


def test_a_job_of_a_cron_job_is_taken_in_since_nobody_else_starts_it() -> None:
    assert is_waiting(job(metadata={"ownerReferences": [{"kind": "CronJob", "uid": "c", "controller": True}]}))


@pytest.mark.parametrize(
    "status", [{"startTime": "2026-01-01T00:00:00Z"}, {"conditions": [{"type": "Complete", "status": "True"}]}]
)
def test_what_has_begun_or_ended_is_nobodys_to_start(status: dict[str, Any]) -> None:
    assert not is_waiting(job() | {"status": status})


def test_it_is_read_as_if_it_had_been_a_document() -> None:
    spec = read(job())
    assert (spec.name, spec.image, spec.command) == ("digits", "numpy", "python train.py")
    assert (spec.namespace, spec.cluster, spec.runtime) == ("vision", "gpu", "")
    assert (spec.priority, spec.preemptible, spec.retries) == ("normal", False, 0)
    assert (spec.time_limit, spec.stop_grace) == (86400, 30)


def test_its_own_limits_priority_and_words_with_blanks_are_kept() -> None:
    container = {"name": "a", "image": "b", "command": ["sh", "-c"], "args": ["echo 'a b'; exit"]}
    found = job(
        pod={"containers": [container], "priorityClassName": "trainhall-low", "terminationGracePeriodSeconds": 120},
        activeDeadlineSeconds=600,
    )
    spec = read(found)
    assert (spec.priority, spec.time_limit, spec.stop_grace) == ("low", 600, 120)
    assert spec.command == """sh -c 'echo '"'"'a b'"'"'; exit'"""
    assert read(job(pod={"priorityClassName": "trainhall-challenge"})).priority == "normal"


def test_what_asks_for_nothing_is_counted_with_what_its_pods_will_get() -> None:
    resources = read(job()).resources
    assert (resources.cpu_millis, resources.memory_bytes, resources.gpus) == (1000, 2 * 2**30, 0)


def test_a_limit_is_a_request_and_gpus_count_with_their_type() -> None:
    limits = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"}
    containers = [
        {"name": "a", "image": "b", "resources": {"limits": limits, "requests": {"cpu": "500m"}}},
        {"name": "helper", "image": "b", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}},
    ]
    found = job(
        pod={"containers": containers, "nodeSelector": {"nvidia.com/gpu.product": "V100"}}, parallelism=3, completions=3
    )
    resources = read(found).resources
    assert (resources.workers, resources.gpus, resources.gpu_type) == (3, 2, "V100")
    assert (resources.cpu_millis, resources.memory_bytes) == (600, 9 * 2**30)


@pytest.mark.parametrize(
    ("parallelism", "completions", "workers"), [(4, 2, 2), (2, 10, 2), (3, None, 3), (None, None, 1), (1, 1, 1)]
)
def test_its_workers_are_the_pods_it_has_at_one_time(parallelism: Any, completions: Any, workers: int) -> None:
    assert workers_of(job(parallelism=parallelism, completions=completions)) == workers


def test_what_no_database_can_hold_is_cut() -> None:
    huge = {"limits": {"cpu": "3M", "memory": "9E", "nvidia.com/gpu": "9E"}}
    container = {"name": "a", "image": "b\0", "env": [{"name": "A", "value": "x\0\ud800"}], "resources": huge}
    found = job(pod={"containers": [container, container]}, parallelism=2**31 - 1, completions=None)
    resources = read(found).resources
    assert resources.workers == 10_000
    assert resources.gpus == resources.cpu_millis == 2**31 - 1
    assert resources.memory_bytes == 2**63 - 1
    kept_container = kept(found)["spec"]["template"]["spec"]["containers"][0]
    assert kept_container["image"] == "b\ufffd"
    assert kept_container["env"][0]["value"] == "x\ufffd?"


def pod(
    name: str, created: int, *, phase: str = "Running", ended: int | None = None, **metadata: Any
) -> dict[str, Any]:
    at = "2026-01-01T00:{:02}:00Z".format
    status: dict[str, Any] = {"phase": phase}
    if ended is not None:
        code = 0 if phase == "Succeeded" else 1
        status["containerStatuses"] = [
            {"name": "digits", "state": {"terminated": {"exitCode": code, "finishedAt": at(ended)}}}
        ]
    names = {"name": name, "uid": name, "creationTimestamp": at(created)} | metadata
    return {"metadata": names, "spec": {"containers": [{"name": "digits"}]}, "status": status}


def places(found: dict[str, Any], pods: list[dict[str, Any]]) -> dict[str, int]:
    return {one["metadata"]["name"]: place_of(one)[1] for one in numbered(found, pods)}


def test_each_pod_takes_the_place_of_one_that_has_ended() -> None:
    found = job(parallelism=2, completions=5)
    pods = [pod("a", 0), pod("b", 0, phase="Failed", ended=3), pod("c", 3, phase="Succeeded", ended=7), pod("d", 7)]
    assert places(found, pods) == {"a": 0, "b": 1, "c": 1, "d": 1}


def test_a_place_stays_whatever_happens_later_and_in_whatever_order_pods_come() -> None:
    found = job(parallelism=2, completions=5)
    pods = [pod("a", 0, phase="Succeeded", ended=9), pod("b", 0, phase="Failed", ended=3), pod("c", 4), pod("d", 9)]
    for seed in range(10):
        random.Random(seed).shuffle(pods)
        assert places(found, pods) == {"a": 0, "b": 1, "c": 1, "d": 0}


def test_pods_with_an_index_keep_theirs() -> None:
    label = {"batch.kubernetes.io/job-completion-index": "7"}
    assert places(job(), [pod("a", 0, labels=label)]) == {"a": 7}


def test_a_pod_more_than_the_job_has_gets_a_place_of_nobody() -> None:
    assert places(job(), [pod("a", 0), pod("forged", 1)]) == {"a": 0, "forged": 1}


def seen(found: dict[str, Any], pods: list[dict[str, Any]], **more: Any) -> Any:
    return observe_attempt(found, numbered(found, pods), adopted=True, **more)


def test_that_its_first_pods_have_ended_is_not_its_end_while_there_is_more_to_do() -> None:
    found = job(suspend=False, parallelism=2, completions=4, backoffLimit=0)
    over = [pod("a", 0, phase="Succeeded", ended=1), pod("b", 0, phase="Succeeded", ended=1)]
    assert not seen(found, over).ended
    assert seen(found, [*over, pod("c", 1), pod("d", 1)]).status == JobStatus.RUNNING


def test_a_job_that_was_tried_again_by_itself_has_succeeded_with_the_first_failure_in_its_workers() -> None:
    found = job(suspend=False) | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    told = seen(found, [pod("a", 0, phase="Failed", ended=1), pod("b", 1, phase="Succeeded", ended=2)])
    assert told.status == JobStatus.SUCCEEDED
    assert told.text == "Finished: it ended with exit code 0."
    assert [worker.pod_name for worker in told.workers] == ["a", "b"]


def taken(one: dict[str, Any]) -> dict[str, Any]:
    """As the mirror keeps the last form of a pod that is gone."""
    names = one["metadata"] | {"annotations": {GONE: "true"}}
    return one | {"metadata": names}


def test_deleted_while_it_ran_it_is_cancelled() -> None:
    leaving = pod("a", 0, deletionTimestamp="2026-01-01T00:05:30Z", deletionGracePeriodSeconds=30)
    told = seen(job(), [taken(leaving)], deleted=True)
    assert (told.status, told.reason, told.text, told.ended) == (JobStatus.CANCELLED, Reason.STOPPED, DELETED, True)


def test_a_program_that_ends_well_since_it_was_told_to_has_not_succeeded() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:05:30Z", "deletionGracePeriodSeconds": 30}
    later = [taken(pod("a", 0, phase="Succeeded", ended=6, **leaving))]
    assert seen(job(), later, deleted=True).status == JobStatus.CANCELLED
    # in the same second nothing tells, but that it was seen to run when its Job was gone
    told = seen(job(), [taken(pod("a", 0, phase="Succeeded", ended=5, **leaving))], deleted=True, taken_away=True)
    assert told.status == JobStatus.CANCELLED
    before = seen(job(), [taken(pod("a", 0, phase="Succeeded", ended=4, **leaving))], deleted=True)
    assert before.status == JobStatus.SUCCEEDED


def test_deleted_while_it_tried_again_it_is_cancelled_whatever_had_failed_before() -> None:
    pods = [pod("a", 0, phase="Failed", ended=1), pod("b", 1)]
    assert seen(job(), [taken(one) for one in pods], deleted=True).status == JobStatus.CANCELLED


def test_deleted_after_it_had_ended_its_pods_tell_how() -> None:
    assert seen(job(), [taken(pod("a", 0, phase="Succeeded", ended=3))], deleted=True).status == JobStatus.SUCCEEDED
    told = seen(job(), [taken(pod("a", 0, phase="Failed", ended=3))], deleted=True)
    assert (told.status, told.exit_code) == (JobStatus.FAILED, 1)


def test_gone_without_a_trace_is_not_told_as_a_wish() -> None:
    told = seen(job(), [], deleted=True)
    assert (told.status, told.reason) == (JobStatus.FAILED, Reason.OUTCOME_UNKNOWN)
