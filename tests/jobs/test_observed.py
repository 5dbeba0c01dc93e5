"""Raw Jobs and Pods, as real clusters were seen to write them, and what they mean for a person (RELIABILITY F10)."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from jobs.cluster.observed import NodeCapacity, Observed, free_capacity, observe_attempt
from jobs.states import JobStatus, Reason

Raw = dict[str, Any]

STARTING, RUNNING, SUCCEEDED, FAILED = JobStatus.STARTING, JobStatus.RUNNING, JobStatus.SUCCEEDED, JobStatus.FAILED


def job(*conditions: Raw, workers: int = 1, suspend: bool = False, started: bool = True, **spec: Any) -> Raw:
    status: Raw = {"conditions": list(conditions)}
    if started:
        status["startTime"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": {"name": "j-7f3k2p9m4x-1", "uid": "u1"},
        "spec": {"suspend": suspend, "parallelism": workers, "completions": workers, "backoffLimit": 0, **spec},
        "status": status,
    }


def condition(kind: str, reason: str = "", message: str = "", status: str = "True") -> Raw:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def pod(
    phase: str = "Running", index: int = 0, *, main: Raw | None = None, setup: Raw | None = None, **more: Any
) -> Raw:
    conditions = list(more.pop("conditions", ()))
    if phase == "Running" and not any(entry["type"] == "Ready" for entry in conditions):
        conditions.append(condition("Ready"))
    status: Raw = {"phase": phase, "conditions": conditions, **more.pop("status", {})}
    if main is not None:
        status["containerStatuses"] = [{"name": "main", "image": "ml/numpy:1", "state": main}]
    if setup is not None:
        status["initContainerStatuses"] = [{"name": "setup", "image": "trainhall:1", "state": setup}]
    return {
        "metadata": {
            "name": f"j-7f3k2p9m4x-1-{index}-abcde",
            "uid": f"p{index}",
            "labels": {"batch.kubernetes.io/job-completion-index": str(index), "trainhall.io/role": "worker"},
            **more.pop("metadata", {}),
        },
        "spec": {
            "nodeName": "node1",
            "containers": [{"name": "main", "resources": {"limits": {"memory": "16Gi"}}}],
        },
        "status": status,
    }


def terminated(code: int, reason: str = "", message: str = "", at: str = "2026-01-01T00:10:00Z", **more: Any) -> Raw:
    reason = reason or ("Completed" if code == 0 else "Error")
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "startedAt": "2026-01-01T00:00:01Z",
            "finishedAt": at,
            **more,
        }
    }


def failed(code: int, reason: str = "", message: str = "", index: int = 0, **more: Any) -> Raw:
    return pod("Failed", index, main=terminated(code, reason, message), **more)


def done(index: int = 0) -> Raw:
    return pod("Succeeded", index, main=terminated(0))


def waiting(reason: str, message: str = "", index: int = 0) -> Raw:
    return pod("Pending", index, main={"waiting": {"reason": reason, "message": message}})


def disrupted(reason: str, phase: str = "Failed", message: str = "", index: int = 0) -> Raw:
    return pod(phase, index, main=terminated(143), conditions=[condition("DisruptionTarget", reason, message)])


DELETING = {"deletionTimestamp": "2026-01-01T00:09:00Z"}
BACKOFF = condition("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
COMPLETE = condition("Complete", "CompletionsReached")
DEADLINE = condition("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")


def by_rule(message: str) -> Raw:
    return condition("Failed", "PodFailurePolicy", message)


NAMES_0 = "Pod u-alice/j-7f3k2p9m4x-1-0-abcde has condition DisruptionTarget matching FailJob rule at index 0"
NAMES_1_EXIT = (
    "Container main for pod u-alice/j-7f3k2p9m4x-1-1-abcde failed with exit code 2 matching FailJob rule at index 3"
)

# name: (job, pods, status, reason, ended, a part of the sentence)
TABLE: dict[str, tuple[Raw | None, list[Raw], JobStatus | None, Reason | None, bool, str]] = {
    # before it runs
    "not seen yet": (None, [], None, None, False, ""),
    "created, not released": (job(suspend=True, started=False), [], STARTING, Reason.ADMITTED, False, "released"),
    "released, no pods yet": (job(), [], STARTING, Reason.ADMITTED, False, "not there yet"),
    "pod pending": (job(), [pod("Pending")], STARTING, Reason.ADMITTED, False, "worker-0 is starting"),
    "container creating": (job(), [waiting("ContainerCreating")], STARTING, Reason.ADMITTED, False, "starting"),
    "setup runs": (
        job(),
        [pod("Pending", setup={"running": {}}, main={"waiting": {"reason": "PodInitializing"}})],
        STARTING,
        Reason.SETTING_UP,
        False,
        "setup fetches",
    ),
    "no machine": (
        job(),
        [pod("Pending", conditions=[condition("PodScheduled", "Unschedulable", "0/4 nodes are available", "False")])],
        STARTING,
        Reason.WAITING_FOR_CAPACITY,
        False,
        "0/4 nodes",
    ),
    "image cannot be pulled": (
        job(),
        [waiting("ErrImagePull", "not found")],
        STARTING,
        Reason.IMAGE_NOT_FOUND,
        False,
        "ml/numpy:1",
    ),
    "image back-off": (job(), [waiting("ImagePullBackOff")], STARTING, Reason.IMAGE_NOT_FOUND, False, "ml/numpy:1"),
    "invalid image name": (job(), [waiting("InvalidImageName")], STARTING, Reason.IMAGE_NOT_FOUND, False, "image"),
    "secret missing": (
        job(),
        [waiting("CreateContainerConfigError", 'secret "x" not found')],
        STARTING,
        Reason.SECRET_MISSING,
        False,
        "The secret x is missing.",
    ),
    "one of two runs": (
        job(workers=2),
        [pod(), pod("Pending", 1)],
        STARTING,
        Reason.ADMITTED,
        False,
        "1 of 2 workers run",
    ),
    "the gravest word wins": (
        job(workers=2),
        [pod("Pending"), waiting("ErrImagePull", index=1)],
        STARTING,
        Reason.IMAGE_NOT_FOUND,
        False,
        "worker-1",
    ),
    "one of two exists": (job(workers=2), [pod()], STARTING, Reason.ADMITTED, False, ""),
    # running
    "runs": (job(), [pod()], RUNNING, None, False, ""),
    "all of two run": (job(workers=2), [pod(), pod(index=1)], RUNNING, None, False, ""),
    "one is done, one runs": (job(workers=2), [done(), pod(index=1)], RUNNING, None, False, ""),
    "not ready": (
        job(),
        [pod(conditions=[condition("Ready", status="False")])],
        STARTING,
        Reason.ADMITTED,
        False,
        "",
    ),
    # success
    "complete": (job(COMPLETE), [done()], SUCCEEDED, Reason.COMPLETED, True, "exit code 0"),
    "complete, pods gone": (job(COMPLETE), [], SUCCEEDED, Reason.COMPLETED, True, "exit code 0"),
    "pods done, the Job not yet": (job(), [done()], SUCCEEDED, Reason.COMPLETED, True, "exit code 0"),
    "one of two done, other unseen": (job(workers=2), [done()], STARTING, Reason.ADMITTED, False, ""),
    "success criteria met, pods run": (
        job(condition("SuccessCriteriaMet")),
        [pod()],
        None,
        Reason.COMPLETED,
        False,
        "ending",
    ),
    "R23: out of memory with exit code 0": (
        job(COMPLETE),
        [pod("Succeeded", main=terminated(0, "OOMKilled"))],
        SUCCEEDED,
        Reason.OUT_OF_MEMORY,
        True,
        "Finished, memory limit hit",
    ),
    "R26: an eviction, then success, by the Job's own retries": (
        job(COMPLETE, backoffLimit=3),
        [pod("Failed", status={"reason": "Evicted"}), done()],
        SUCCEEDED,
        Reason.COMPLETED,
        True,
        "exit code 0",
    ),
    "R26: before the retry has succeeded": (
        job(backoffLimit=3),
        [pod("Failed", status={"reason": "Evicted"}), pod(index=1)],
        RUNNING,
        None,
        False,
        "",
    ),
    # failures of the program
    "exit 1": (
        job(BACKOFF),
        [failed(1, message="Traceback\nKeyError: 'x'")],
        FAILED,
        Reason.NON_ZERO_EXIT,
        True,
        "exit code 1. KeyError",
    ),
    "exit 2": (
        job(by_rule("Container main for pod u-alice/x failed with exit code 2 matching FailJob rule at index 3")),
        [failed(2)],
        FAILED,
        Reason.NON_ZERO_EXIT,
        True,
        "exit code 2",
    ),
    "exit 75": (job(BACKOFF), [failed(75)], FAILED, Reason.NON_ZERO_EXIT, True, "exit code 75"),
    "exit 255": (job(BACKOFF), [failed(255)], FAILED, Reason.NON_ZERO_EXIT, True, "exit code 255"),
    "segmentation fault": (job(BACKOFF), [failed(139)], FAILED, Reason.KILLED_BY_SIGNAL, True, "SIGSEGV"),
    "aborted": (job(BACKOFF), [failed(134)], FAILED, Reason.KILLED_BY_SIGNAL, True, "SIGABRT"),
    "killed, not for memory": (job(BACKOFF), [failed(137)], FAILED, Reason.KILLED_BY_SIGNAL, True, "SIGKILL"),
    "a signal told as such": (
        job(BACKOFF),
        [pod("Failed", main=terminated(0, "Error", signal=15))],
        FAILED,
        Reason.KILLED_BY_SIGNAL,
        True,
        "SIGTERM",
    ),
    "out of memory": (job(BACKOFF), [failed(137, "OOMKilled")], FAILED, Reason.OUT_OF_MEMORY, True, "limit of 16Gi"),
    "out of memory, exit 1": (job(BACKOFF), [failed(1, "OOMKilled")], FAILED, Reason.OUT_OF_MEMORY, True, "memory"),
    "command not in the image": (
        job(BACKOFF),
        [failed(128, "StartError", 'exec: "trian": executable file not found in $PATH')],
        FAILED,
        Reason.COMMAND_NOT_FOUND,
        True,
        "trian",
    ),
    "container cannot run": (
        job(BACKOFF),
        [failed(127, "ContainerCannotRun")],
        FAILED,
        Reason.COMMAND_NOT_FOUND,
        True,
        "",
    ),
    "a shell finds no command": (job(BACKOFF), [failed(127)], FAILED, Reason.COMMAND_NOT_FOUND, True, "not found"),
    "a shell may not execute it": (
        job(BACKOFF),
        [failed(126)],
        FAILED,
        Reason.COMMAND_NOT_FOUND,
        True,
        "cannot be executed",
    ),
    "setup failed": (
        job(
            by_rule(
                "Container setup for pod u-alice/j-7f3k2p9m4x-1-0-abcde failed with exit code 3 matching FailJob rule at index 1"
            )
        ),
        [pod("Failed", setup=terminated(3, message="digest differs"), main={"waiting": {"reason": "PodInitializing"}})],
        FAILED,
        Reason.SETUP_FAILED,
        True,
        "exit code 3). digest differs",
    ),
    "failed, pods gone": (job(BACKOFF), [], FAILED, Reason.OUTCOME_UNKNOWN, True, "no pod is left"),
    "a pod failed, the Job not yet": (job(), [failed(1)], FAILED, Reason.NON_ZERO_EXIT, True, "exit code 1"),
    "a rank failed, another still runs": (
        job(workers=2),
        [failed(1), pod(index=1)],
        None,
        Reason.NON_ZERO_EXIT,
        False,
        "worker-0",
    ),
    "failure is certain, pods end": (
        job(condition("FailureTarget", "BackoffLimitExceeded"), workers=2),
        [failed(1), pod(index=1, metadata=DELETING)],
        None,
        Reason.NON_ZERO_EXIT,
        False,
        "worker-0",
    ),
    "failure is certain, and a suspension keeps the Job from ever saying so": (
        job(
            condition("Suspended", "JobSuspended"),
            condition("FailureTarget", "BackoffLimitExceeded"),
            suspend=True,
            started=False,
        ),
        [],
        FAILED,
        Reason.OUTCOME_UNKNOWN,
        True,
        "no pod is left that tells why",
    ),
    "failure is certain, it is suspended, and its pods end": (
        job(
            condition("Suspended", "JobSuspended"),
            condition("FailureTarget", "BackoffLimitExceeded"),
            suspend=True,
            started=False,
        ),
        [failed(7), pod(index=1, metadata=DELETING)],
        None,
        Reason.NON_ZERO_EXIT,
        False,
        "worker-0",
    ),
    "the rank that failed is to blame, not those that were ended": (
        job(BACKOFF, workers=3),
        [
            failed(143, index=0, metadata=DELETING),
            failed(7, index=1),
            pod("Failed", 2, main=terminated(137, at="2026-01-01T00:05:00Z"), metadata=DELETING),
        ],
        FAILED,
        Reason.NON_ZERO_EXIT,
        True,
        "worker-1 ended with exit code 7",
    ),
    "the first of two that failed": (
        job(BACKOFF, workers=2),
        [failed(1), pod("Failed", 1, main=terminated(9, at="2026-01-01T00:05:00Z"))],
        FAILED,
        Reason.NON_ZERO_EXIT,
        True,
        "exit code 9",
    ),
    "the pod that the Job names": (
        job(by_rule(NAMES_1_EXIT), workers=2),
        [pod("Failed", 0, main=terminated(1, at="2026-01-01T00:05:00Z")), failed(2, index=1)],
        FAILED,
        Reason.NON_ZERO_EXIT,
        True,
        "worker-1 ended with exit code 2",
    ),
    # the time limit
    "time limit": (
        job(DEADLINE, activeDeadlineSeconds=14400),
        [failed(143)],
        FAILED,
        Reason.TIME_LIMIT,
        True,
        "limit of 4 h",
    ),
    "time limit, pods gone": (job(DEADLINE, activeDeadlineSeconds=90), [], FAILED, Reason.TIME_LIMIT, True, "90 s"),
    "time limit, ending": (
        job(condition("FailureTarget", "DeadlineExceeded"), activeDeadlineSeconds=14400),
        [pod(metadata=DELETING)],
        None,
        Reason.TIME_LIMIT,
        False,
        "4 h",
    ),
    "the pod's own deadline": (
        job(BACKOFF),
        [pod("Failed", status={"reason": "DeadlineExceeded"})],
        FAILED,
        Reason.TIME_LIMIT,
        True,
        "",
    ),
    # the platform's doing
    "preempted": (
        job(by_rule(NAMES_0)),
        [disrupted("PreemptionByScheduler", message="preempting to accommodate a higher priority pod")],
        FAILED,
        Reason.PREEMPTED,
        True,
        "higher priority",
    ),
    "drained": (
        job(by_rule(NAMES_0)),
        [disrupted("EvictionByEvictionAPI")],
        FAILED,
        Reason.DISRUPTION,
        True,
        "maintenance",
    ),
    "node taken away": (
        job(by_rule(NAMES_0)),
        [disrupted("DeletionByPodGC")],
        FAILED,
        Reason.NODE_LOST,
        True,
        "machine",
    ),
    "tainted": (
        job(by_rule(NAMES_0)),
        [disrupted("DeletionByTaintManager")],
        FAILED,
        Reason.NODE_LOST,
        True,
        "machine",
    ),
    "node shuts down": (
        job(by_rule(NAMES_0)),
        [disrupted("TerminationByKubelet")],
        FAILED,
        Reason.DISRUPTION,
        True,
        "machine",
    ),
    "a disruption of a kind we do not know": (
        job(by_rule(NAMES_0)),
        [disrupted("Whim")],
        FAILED,
        Reason.DISRUPTION,
        True,
        "Whim",
    ),
    "disrupted, its program ended well": (
        job(by_rule(NAMES_0)),
        [disrupted("TerminationByKubelet", phase="Succeeded")],
        FAILED,
        Reason.DISRUPTION,
        True,
        "",
    ),
    "disrupted, pods gone": (job(by_rule(NAMES_0)), [], FAILED, Reason.DISRUPTION, True, "taken away"),
    "R27: disrupted, peers end": (
        job(condition("FailureTarget", "PodFailurePolicy", NAMES_0), workers=2),
        [disrupted("PreemptionByScheduler"), pod(index=1, metadata=DELETING)],
        None,
        Reason.PREEMPTED,
        False,
        "worker-0",
    ),
    "evicted": (
        job(BACKOFF),
        [pod("Failed", status={"reason": "Evicted", "message": "The node was low on resource: memory."})],
        FAILED,
        Reason.DISRUPTION,
        True,
        "ran short of memory",
    ),
    "not admitted by the kubelet": (
        job(BACKOFF),
        [pod("Failed", status={"reason": "OutOfcpu"})],
        FAILED,
        Reason.DISRUPTION,
        True,
        "OutOfcpu",
    ),
    "R28: node lost, the phase is an old one": (
        job(),
        [pod(conditions=[condition("Ready", "NodeLost", status="False")], metadata=DELETING)],
        FAILED,
        Reason.NODE_LOST,
        True,
        "node1",
    ),
    "R28: node lost by the pod's reason": (
        job(),
        [pod(status={"reason": "NodeLost"}, metadata=DELETING)],
        FAILED,
        Reason.NODE_LOST,
        True,
        "node1",
    ),
    "node not ready, but not given up": (
        job(),
        [pod(conditions=[condition("Ready", "NodeNotReady", status="False")])],
        STARTING,
        Reason.ADMITTED,
        False,
        "",
    ),
    "phase unknown, being deleted": (job(), [pod("Unknown", metadata=DELETING)], FAILED, Reason.NODE_LOST, True, ""),
    # not to be known
    "status unknown": (
        job(BACKOFF),
        [failed(137, "ContainerStatusUnknown", "The container could not be located")],
        FAILED,
        Reason.OUTCOME_UNKNOWN,
        True,
        "could not be located",
    ),
    "status unknown during setup": (
        job(BACKOFF),
        [
            pod(
                "Failed",
                setup=terminated(137, "ContainerStatusUnknown"),
                main={"waiting": {"reason": "PodInitializing"}},
                status={"message": "its watcher was killed"},
            )
        ],
        FAILED,
        Reason.OUTCOME_UNKNOWN,
        True,
        "its watcher was killed",
    ),
    "failed, without any container": (job(BACKOFF), [pod("Failed")], FAILED, Reason.OUTCOME_UNKNOWN, True, "not known"),
    # being ended by us
    "stopping": (job(suspend=True), [pod(metadata=DELETING)], None, Reason.STOPPED, False, "ending"),
    "stopped, pods gone": (job(suspend=True), [], None, Reason.STOPPED, True, "Stopped"),
    "stopped, with its exit": (
        job(suspend=True),
        [failed(143, metadata=DELETING)],
        None,
        Reason.STOPPED,
        True,
        "exit code 143",
    ),
    "stopped, ended well": (job(suspend=True), [done()], None, Reason.STOPPED, True, "exit code 0"),
    "it had failed before the stop": (job(BACKOFF, suspend=True), [failed(1)], FAILED, Reason.NON_ZERO_EXIT, True, ""),
    "it had finished before the stop": (job(COMPLETE, suspend=True), [done()], SUCCEEDED, Reason.COMPLETED, True, ""),
}


@pytest.mark.parametrize("name", TABLE)
def test_truth(name: str) -> None:
    raw_job, pods, status, reason, ended, words = TABLE[name]

    seen = observe_attempt(raw_job, pods)

    assert (seen.status, seen.reason, seen.ended) == (status, reason, ended)
    assert words in seen.text
    if ended:
        assert seen.pods_gone


# Deleted objects: job, pods in their last form
DELETED: dict[str, tuple[list[Raw], JobStatus | None, Reason | None, bool]] = {
    "R19: the last event says Succeeded": ([done()], SUCCEEDED, Reason.COMPLETED, True),
    "the last event says Failed": ([failed(3)], FAILED, Reason.NON_ZERO_EXIT, True),
    "R30: nothing tells how it ended": ([], FAILED, Reason.OUTCOME_UNKNOWN, True),
    "a pod still ends": ([pod(metadata=DELETING)], None, None, False),
}


@pytest.mark.parametrize("name", DELETED)
def test_truth_about_what_is_deleted(name: str) -> None:
    pods, status, reason, ended = DELETED[name]

    seen = observe_attempt(None, pods, deleted=True)

    assert (seen.status, seen.reason, seen.ended) == (status, reason, ended)


def test_half_a_gang_that_succeeded_is_no_success() -> None:
    seen = observe_attempt(job(workers=2), [done()], deleted=True)
    assert (seen.status, seen.reason) == (FAILED, Reason.OUTCOME_UNKNOWN)


class TestMissingFields:
    """R35: whatever is missing, null or of another type, nothing raises, and what cannot be known is never success."""

    @pytest.mark.parametrize(
        "status", [None, {}, {"phase": None}, {"containerStatuses": None}, {"conditions": "x"}, [], 7]
    )
    def test_a_pod_without_a_usable_status(self, status: object) -> None:
        seen = observe_attempt(job(), [{"metadata": {}, "status": status}])
        assert (seen.status, seen.ended) == (STARTING, False)

    @pytest.mark.parametrize("raw", [{}, {"metadata": None}, {"status": None, "spec": None}, {"spec": []}])
    def test_a_job_without_fields(self, raw: Raw) -> None:
        assert observe_attempt(raw, []).status == STARTING

    def test_every_field_of_every_row_taken_away_in_turn(self) -> None:
        for name, (raw_job, pods, *_rest) in TABLE.items():
            if raw_job is None:
                continue
            for broken_job in without_each(raw_job):
                assert isinstance(observe_attempt(broken_job, pods), Observed), name
            for position, whole in enumerate(pods):
                for broken in without_each(whole):
                    changed = [*pods[:position], broken, *pods[position + 1 :]]
                    seen = observe_attempt(raw_job, changed)
                    if TABLE[name][2] == FAILED:
                        assert seen.status != SUCCEEDED, name


def without_each(value: Any) -> list[Any]:
    """Copies of a structure, each with one field missing or null."""
    copies: list[Any] = []
    if isinstance(value, dict):
        for key in value:
            rest = {other: value[other] for other in value if other != key}
            copies += [rest, rest | {key: None}]
            copies += [rest | {key: changed} for changed in without_each(value[key])]
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            copies += [[*value[:position], changed, *value[position + 1 :]] for changed in without_each(entry)]
    return copies


def test_the_order_of_pods_and_conditions_says_nothing() -> None:
    order = random.Random(3)
    for raw_job, pods, *_rest in TABLE.values():
        if raw_job is None:
            continue
        seen = observe_attempt(raw_job, pods)
        for shuffled in itertools.islice(itertools.permutations(pods), 6):
            conditions = list(raw_job["status"]["conditions"])
            order.shuffle(conditions)
            again = raw_job | {"status": raw_job["status"] | {"conditions": conditions}}
            assert observe_attempt(again, shuffled) == seen


def test_a_worker_shows_where_it_ran_and_how_it_ended() -> None:
    [worker] = observe_attempt(job(BACKOFF), [failed(139, message="core dumped")]).workers

    assert (worker.role, worker.index, worker.phase, worker.node) == ("worker", 0, "Failed", "node1")
    assert (worker.pod_name, worker.pod_uid) == ("j-7f3k2p9m4x-1-0-abcde", "p0")
    assert (worker.exit_code, worker.signal, worker.reason, worker.message) == (139, 11, "Error", "core dumped")
    assert worker.started_at and worker.finished_at
    assert (worker.finished_at - worker.started_at).total_seconds() == 599


class TestCapacity:
    NODE: Raw = {
        "metadata": {"name": "gpu-1", "labels": {"nvidia.com/gpu.product": "V100"}},
        "status": {
            "allocatable": {"cpu": "63500m", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"},
            "conditions": [condition("Ready")],
        },
    }

    def using(self, phase: str = "Running", node: str = "gpu-1", **requests: str) -> Raw:
        amounts = {name.replace("gpu", "nvidia.com/gpu"): amount for name, amount in requests.items()}
        return {
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": amounts}}]},
            "status": {"phase": phase},
        }

    def test_pods_of_anybody_count_until_they_have_ended(self) -> None:
        pods = [
            self.using(cpu="500m", memory="2Gi", gpu="2"),
            self.using("Pending", cpu="1"),
            self.using("Succeeded", gpu="4"),
            self.using(node="gpu-2", gpu="4"),
            self.using("Pending", node="", gpu="4"),
        ]

        assert free_capacity([self.NODE], pods) == [
            NodeCapacity("gpu-1", True, 63500, 512 * 2**30, 8, "V100", False, 62000, 510 * 2**30, 6)
        ]

    def test_the_largest_init_container_counts_if_it_is_larger(self) -> None:
        pod = self.using(cpu="1")
        pod["spec"]["initContainers"] = [
            {"resources": {"requests": {"cpu": "3"}}},
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        ]
        assert free_capacity([self.NODE], [pod])[0].free_cpu_millis == 60500

    def test_a_node_that_is_cordoned_or_not_ready_takes_nothing(self) -> None:
        cordoned = self.NODE | {"spec": {"unschedulable": True}}
        silent = self.NODE | {"status": {"conditions": [condition("Ready", status="Unknown")]}}
        assert [node.ready for node in free_capacity([cordoned, silent], [])] == [False, False]

    def test_what_cannot_be_read_does_not_blind_us(self) -> None:
        pods = [self.using(cpu="a lot", gpu="1"), {"spec": None}, {}]
        [node] = free_capacity([self.NODE], pods)
        assert (node.free_cpu_millis, node.free_gpus) == (63500, 7)
