"""What only events tell of an attempt that does not start (RELIABILITY R32, R34)."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.cluster.observed import Observed, observe_attempt
from jobs.states import JobStatus, Reason
from tests.jobs.test_observed import condition, job, pod, waiting

Raw = dict[str, Any]
QUOTA = (
    'Error creating: pods "j-7f3k2p9m4x-1-0-{}" is forbidden: exceeded quota: trainhall, requested: '
    "requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=8"
)
MUST = 'Error creating: pods "j-7f3k2p9m4x-1-0-abcde" is forbidden: failed quota: q: must specify limits.cpu for: main'


def event(reason: str, message: str, *, kind: str = "Job", uid: str = "u1", at: int = 0, **more: Any) -> Raw:
    return {
        "type": "Warning",
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": kind, "uid": uid},
        "lastTimestamp": f"2026-01-01T00:00:{at:02}Z",
        **more,
    }


def of_pod(reason: str, message: str, index: int = 0, at: int = 0) -> Raw:
    return event(reason, message, kind="Pod", uid=f"p{index}", at=at)


def look(raw: Raw, pods: list[Raw], *events: Raw) -> Observed:
    return observe_attempt(raw, pods, events=events)


def test_a_job_without_pods_says_that_the_quota_is_used_up() -> None:
    seen = look(job(), [], event("FailedCreate", QUOTA.format("abcde")))
    assert (seen.status, seen.reason) == (JobStatus.STARTING, Reason.QUOTA_EXCEEDED)
    assert seen.text == "The namespace's quota is used up: GPUs 4 of 8, one more worker needs 8."


def test_the_newest_refusal_counts() -> None:
    first, second = event("FailedCreate", QUOTA.format("a"), at=1), event("FailedCreate", MUST, at=2)
    assert look(job(), [], second, first).reason == Reason.NOT_ALLOWED
    new = {"lastTimestamp": None, "eventTime": "2026-01-01T00:00:09.123456Z"}
    assert look(job(), [], second, {**first, **new}).reason == Reason.QUOTA_EXCEEDED


def test_a_refusal_is_over_as_soon_as_the_pod_is_there() -> None:
    seen = look(job(), [pod("Pending")], event("FailedCreate", QUOTA.format("a")))
    assert seen.reason == Reason.ADMITTED
    assert look(job(), [pod()], event("FailedCreate", QUOTA.format("a"))).status == JobStatus.RUNNING


def test_of_a_gang_the_missing_half_is_told_with_its_number() -> None:
    seen = look(job(workers=2), [pod(index=0)], event("FailedCreate", QUOTA.format("a")))
    assert (seen.reason, seen.text.endswith(" 1 of 2 workers run.")) == (Reason.QUOTA_EXCEEDED, True)


@pytest.mark.parametrize(
    ("reason", "message", "code", "words"),
    [
        (
            "FailedMount",
            'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32 mount.nfs: Connection timed out',
            Reason.VOLUME_UNAVAILABLE,
            "worker-0 cannot start on node1. The storage volume data could not be mounted.",
        ),
        (
            "FailedCreatePodSandBox",
            "Failed to create pod sandbox: rpc error: code = Unknown",
            Reason.MACHINE_FAULT,
            "worker-0 cannot start on node1. The machine could not set up the container",
        ),
    ],
)
def test_a_pod_that_waits_in_silence_is_told_by_its_event(reason: str, message: str, code: Reason, words: str) -> None:
    seen = look(job(), [waiting("ContainerCreating")], of_pod(reason, message))
    assert (seen.status, seen.reason) == (JobStatus.STARTING, code)
    assert seen.text.startswith(words)


def test_an_event_of_another_pod_and_one_that_is_overcome_tell_nothing() -> None:
    failed = of_pod("FailedMount", 'MountVolume.SetUp failed for volume "data" : mount failed', index=7)
    assert look(job(), [waiting("ContainerCreating")], failed).reason == Reason.ADMITTED
    setting_up = pod("Pending", setup={"running": {}}, main={"waiting": {"reason": "PodInitializing"}})
    overcome = of_pod("FailedMount", 'MountVolume.SetUp failed for volume "data" : mount failed')
    assert look(job(), [setting_up], overcome).reason == Reason.SETTING_UP


def test_a_back_off_is_explained_by_the_pull_before() -> None:
    pull = of_pod("Failed", 'Failed to pull image "ml/numpy:1": rpc error: toomanyrequests: pull rate limit')
    seen = look(job(), [waiting("ImagePullBackOff", 'Back-off pulling image "ml/numpy:1"')], pull)
    assert (seen.reason, "limit of downloads" in seen.text) == (Reason.REGISTRY_UNAVAILABLE, True)


def test_what_a_person_must_mend_is_told_before_what_passes() -> None:
    no_machine = pod("Pending", 0, conditions=[condition("PodScheduled", "Unschedulable", "0/4 nodes", "False")])
    seen = look(job(workers=2), [no_machine, waiting("ErrImagePull", "not found", index=1)])
    assert seen.reason == Reason.IMAGE_NOT_FOUND


@pytest.mark.parametrize("broken", [{}, {"involvedObject": None, "reason": "FailedCreate"}, {"lastTimestamp": 7}])
def test_an_event_may_lack_anything(broken: Raw) -> None:
    assert look(job(), [], broken).status == JobStatus.STARTING


def test_a_job_that_never_got_a_pod_is_over_once_it_is_suspended_again() -> None:
    """As 1.36 leaves it: without a start time, so that only what we stored tells it from one that was never released."""
    raw = job(condition("Suspended", "JobSuspended"), suspend=True, started=False)
    assert observe_attempt(raw, [], stopped=False).status == JobStatus.STARTING
    seen = observe_attempt(raw, [], stopped=True)
    assert (seen.ended, seen.reason) == (True, Reason.STOPPED)
    not_yet = job(condition("Suspended", "JobResumed", status="False"), suspend=True, started=False)
    assert not observe_attempt(not_yet, [], stopped=True).ended
    raw["status"]["terminating"] = 1
    assert not observe_attempt(raw, [], stopped=True).ended
