"""Failures planted on a cluster: raw objects, events and lines in; the cause, whose it is, and what to do next out (D12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from jobs.causes.scene import Line, Scene, WorkerEnd, clean
from jobs.cluster.observed import Observed, observe_attempt
from jobs.explain import Cause, explain
from jobs.states import NOT_CHARGED, JobStatus, Reason
from tests.jobs.test_observed import (
    BACKOFF,
    COMPLETE,
    DEADLINE,
    DELETING,
    condition,
    disrupted,
    failed,
    job,
    pod,
    terminated,
    waiting,
)
from tests.jobs.test_observed_events import QUOTA, Raw, event, of_pod

YOU, PLATFORM, HARDWARE = "you", "platform", "hardware"
GIB = 2**30


@dataclass(frozen=True)
class Planted:
    """`says` and `step` are parts of the panel; `line` of the evidence, "" where the cluster alone tells it."""

    kind: str
    owner: str
    says: str
    step: str
    raw: Raw
    pods: list[Raw]
    events: tuple[Raw, ...] = ()
    lines: dict[int, list[str]] = field(default_factory=dict)  # by the worker
    line: str = ""
    code: Reason | None = None


def no_command(words: str) -> Raw:
    message = f"failed to create containerd task: OCI runtime create failed: runc create failed: {words}: unknown"
    return failed(128, "StartError", message)


def evicted(message: str, **more: Any) -> Raw:
    return pod("Failed", status={"reason": "Evicted", "message": message}, **more)


CUDA = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. "
    "GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free."
)
NCCL = (
    "[rank1]:[E1130 10:00:00.000000000 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=42, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before "
    "timing out."
)
PLANTED: dict[str, Planted] = {
    "out of memory": Planted(
        "host_out_of_memory", YOU, "memory", "Ask for more memory", job(BACKOFF), [failed(137, "OOMKilled")]
    ),
    "out of memory, yet exit code 0": Planted(
        "memory_limit_hit",
        YOU,
        "finished, but one of its processes was killed at the memory limit of 16 GiB",
        "Do not trust its results",
        job(COMPLETE),
        [pod("Succeeded", main=terminated(0, "OOMKilled"))],
    ),
    "CUDA out of memory": Planted(
        "cuda_out_of_memory",
        YOU,
        "Out of GPU memory: tried to get 2.50 GiB",
        "batch size",
        job(BACKOFF),
        [failed(1)],
        lines={0: ["Traceback (most recent call last):", CUDA]},
        line="CUDA out of memory",
    ),
    "NCCL time-out": Planted(
        "nccl_timeout",
        "unknown",
        "waited",
        "rank",
        job(BACKOFF, workers=2),
        [failed(1), failed(1, index=1)],
        lines={0: ["step 1"], 1: [NCCL]},
        line="Watchdog caught collective operation timeout",
    ),
    "no such image": Planted(
        "image_not_found",
        YOU,
        "there is no such image or tag",
        "Check the name and the tag",
        job(),
        [waiting("ErrImagePull", "rpc error: code = NotFound desc = docker.io/ml/numpy:1: not found")],
    ),
    "an image that is private": Planted(
        "image_not_found",
        YOU,
        "does not let us",
        "private",
        job(),
        [waiting("ErrImagePull", "failed to authorize: 401 Unauthorized")],
    ),
    "a registry that has had enough": Planted(
        "registry_unavailable",
        PLATFORM,
        "limit of downloads",
        "again later",
        job(),
        [waiting("ErrImagePull", "429 Too Many Requests - toomanyrequests: pull rate limit")],
    ),
    "bad command": Planted(
        "command_not_found",
        YOU,
        "pyhton",
        "",
        job(BACKOFF),
        [no_command('unable to start container process: exec: "pyhton": executable file not found in $PATH')],
    ),
    "a module that is missing": Planted(
        "module_missing",
        YOU,
        "cv2",
        "pip install",
        job(BACKOFF),
        [failed(1)],
        lines={0: ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'cv2'"]},
        line="No module named 'cv2'",
    ),
    "a secret that is missing": Planted(
        "secret_missing",
        YOU,
        "The secret wandb is missing.",
        "Ask a lead",
        job(),
        [waiting("CreateContainerConfigError", 'secret "wandb" not found')],
    ),
    "a volume that is missing": Planted(
        "volume_missing",
        YOU,
        "The volume data does not exist in this namespace.",
        "names of the volumes",
        job(),
        [
            pod(
                "Pending",
                conditions=[
                    condition(
                        "PodScheduled",
                        "Unschedulable",
                        '0/2 nodes are available: persistentvolumeclaim "data" not found. not found',
                        "False",
                    )
                ],
            )
        ],
    ),
    "storage that does not answer": Planted(
        "volume_not_mounted",
        PLATFORM,
        "The storage volume data could not be mounted.",
        "another machine",
        job(),
        [waiting("ContainerCreating")],
        (
            of_pod(
                "FailedMount",
                'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32 mount.nfs: Connection timed out',
            ),
        ),
    ),
    "a machine that makes no container": Planted(
        "machine_fault",
        HARDWARE,
        "a fault of the machine",
        "node1",
        job(),
        [waiting("ContainerCreating")],
        (of_pod("FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error: code = Unknown"),),
    ),
    "quota at pod creation": Planted(
        "quota_exceeded", YOU, "GPUs 4 of 8", "Ask for less", job(), [], (event("FailedCreate", QUOTA.format("a")),)
    ),
    "a rule of the cluster": Planted(
        "not_allowed",
        YOU,
        "Pod Security restricted:latest",
        "Change what its words name",
        job(),
        [],
        (
            event(
                "FailedCreate",
                'Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged '
                '(container "main" must not set securityContext.privileged=true)',
            ),
        ),
    ),
    "no such priority": Planted(
        "cluster_not_set_up",
        PLATFORM,
        "Priority trainhall-high does not exist",
        "administrators",
        job(),
        [],
        (
            event(
                "FailedCreate",
                'Error creating: pods "x-" is forbidden: no PriorityClass with name trainhall-high was found',
            ),
        ),
    ),
    "evicted from a machine that is short": Planted(
        "machine_pressure",
        PLATFORM,
        "Its machine ran short of memory.",
        "not counted against you",
        job(BACKOFF),
        [evicted("The node was low on resource: memory. Threshold quantity: 100Mi, available: 40Mi.")],
        code=Reason.DISRUPTION,
    ),
    "evicted for its own disk": Planted(
        "scratch_full",
        YOU,
        "more than 1Gi of scratch space",
        "volume",
        job(BACKOFF),
        [evicted("Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ")],
        code=Reason.OUT_OF_DISK,
    ),
    "evicted for its shared memory": Planted(
        "shm_over_limit",
        YOU,
        "its shared memory of 1 GiB was too small",
        "2 GiB",
        job(BACKOFF),
        [evicted('Usage of EmptyDir volume "shm" exceeds the limit "1Gi". ')],
        code=Reason.OUT_OF_DISK,
    ),
    "preempted": Planted(
        "preempted",
        PLATFORM,
        "higher priority",
        "not counted against you",
        job(BACKOFF),
        [disrupted("PreemptionByScheduler")],
    ),
    "drained": Planted(
        "disruption", PLATFORM, "maintenance", "queued again", job(BACKOFF), [disrupted("EvictionByEvictionAPI")]
    ),
    "node lost": Planted(
        "node_lost",
        HARDWARE,
        "node1 does not answer",
        "queued again",
        job(BACKOFF),
        [pod(metadata=DELETING, conditions=[condition("Ready", "NodeLost", status="False")])],
    ),
    "deadline": Planted(
        "time_limit",
        YOU,
        "1 h",
        "2 h",
        job(DEADLINE, activeDeadlineSeconds=3600),
        [failed(143)],
        code=Reason.TIME_LIMIT,
    ),
    "setup failed": Planted(
        "setup_failed",
        "unknown",
        "never ran",
        "Check that the code unpacks",
        job(BACKOFF),
        [
            pod(
                "Failed",
                setup=terminated(1, message="no such archive"),
                main={"waiting": {"reason": "PodInitializing"}},
            )
        ],
    ),
    "crashed": Planted(
        "segfault", YOU, "crashed", "", job(BACKOFF), [failed(139)], lines={0: ["step 7"]}, code=Reason.KILLED_BY_SIGNAL
    ),
}


def told(planted: Planted) -> tuple[Observed, Cause]:
    seen = observe_attempt(planted.raw, planted.pods, events=planted.events)
    numbers = iter(range(1, 100))
    workers = tuple(
        WorkerEnd(
            name=worker.name,
            node=worker.node,
            exit_code=worker.exit_code,
            signal=worker.signal,
            reason=worker.reason,
            message=worker.message,
            finished_at=worker.finished_at.timestamp() if worker.finished_at else None,
            lines=tuple(Line(next(numbers), clean(line)) for line in planted.lines.get(worker.index, ())),
        )
        for worker in seen.workers
    )
    assert seen.reason is not None
    cause = explain(
        Scene(
            code=seen.reason,
            text=seen.text,
            succeeded=seen.status == JobStatus.SUCCEEDED,
            exit_code=seen.exit_code,
            workers=workers,
            image="ml/numpy:1",
            gpus=1,
            memory_bytes=16 * GIB,
            shm_bytes=GIB,
            time_limit=3600,
        )
    )
    assert cause is not None
    return seen, cause


@pytest.mark.parametrize("name", PLANTED)
def test_a_failure_on_a_cluster_is_told(name: str) -> None:
    planted = PLANTED[name]
    seen, cause = told(planted)
    stored = cause.as_dict()
    assert (stored["kind"], stored["owner"]) == (planted.kind, planted.owner)
    assert planted.says in stored["text"]
    assert 1 <= len(stored["steps"]) <= 3
    assert planted.step in " ".join(stored["steps"])
    if planted.line:
        assert stored["evidence"]["shows_it"]
        assert planted.line in stored["evidence"]["text"]
    if planted.code:
        assert seen.reason == planted.code


def test_there_are_enough_and_every_owner_is_among_them() -> None:
    assert len(PLANTED) >= 20
    assert {planted.owner for planted in PLANTED.values()} >= {YOU, PLATFORM, HARDWARE}


def test_the_platforms_own_doings_are_tried_again_and_ones_own_are_not() -> None:
    again = {name for name, planted in PLANTED.items() if told(planted)[0].reason in NOT_CHARGED}
    assert again == {"evicted from a machine that is short", "preempted", "drained", "node lost"}
