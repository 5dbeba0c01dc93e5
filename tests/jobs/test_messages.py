"""Texts as real API servers, schedulers and kubelets wrote them, and what people are told."""

from __future__ import annotations

import pytest

from jobs.cluster.messages.creation import of_creation, of_refusal
from jobs.cluster.messages.ending import of_eviction
from jobs.cluster.messages.scheduling import of_scheduling
from jobs.cluster.messages.starting import of_config, of_image, of_pod_event, of_start_error
from jobs.cluster.messages.words import without_names
from jobs.states import Reason

PREEMPTION = (
    "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)
NO_VICTIMS = (
    "no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
)
NO_ROOM = Reason.WAITING_FOR_CAPACITY
HOPELESS = " Even stopping other jobs would not help."

SCHEDULING: dict[str, tuple[str, Reason, str]] = {
    "no nodes": (
        "no nodes available to schedule pods",
        NO_ROOM,
        "The cluster has no ready machine at the moment.",
    ),
    "gpus": (
        f"0/2 nodes are available: 2 Insufficient nvidia.com/gpu. {NO_VICTIMS}",
        NO_ROOM,
        "Of 2 machines none can take it: 2 machines do not have enough free GPUs. "
        "All jobs on suitable machines have the same or a higher priority.",
    ),
    "more than any machine has": (
        f"0/2 nodes are available: 2 Insufficient nvidia.com/gpu. {PREEMPTION}",
        NO_ROOM,
        f"Of 2 machines none can take it: 2 machines do not have enough free GPUs.{HOPELESS}",
    ),
    "cpu and gpus": (
        f"0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient nvidia.com/gpu. {PREEMPTION}",
        NO_ROOM,
        f"Of 2 machines none can take it: 2 machines lack free CPU; 2 machines do not have enough free GPUs.{HOPELESS}",
    ),
    "selector": (
        f"0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. {PREEMPTION}",
        NO_ROOM,
        f"Of 2 machines none can take it: 2 machines are not of the kind you asked for.{HOPELESS}",
    ),
    "taint and cordon": (
        "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. " + PREEMPTION,
        NO_ROOM,
        f"Of 2 machines none can take it: 1 machine is reserved; 1 machine is under maintenance.{HOPELESS}",
    ),
    "older taints and memory": (
        "0/5 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint {nvidia.com/gpu: present}, "
        "2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }. "
        "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.",
        NO_ROOM,
        "Of 5 machines none can take it: 1 machine lacks free memory; 2 machines are reserved; "
        f"2 machines do not answer.{HOPELESS}",
    ),
    "scratch space": (
        "0/1 nodes are available: 1 Insufficient ephemeral-storage. preemption: not eligible due to "
        "preemptionPolicy=Never.",
        NO_ROOM,
        "The only machine cannot take it: 1 machine lacks free scratch space.",
    ),
    "no claim": (
        '0/2 nodes are available: persistentvolumeclaim "runs" not found. not found',
        Reason.VOLUME_MISSING,
        "The volume runs does not exist in this namespace.",
    ),
    "unbound claim": (
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
        Reason.VOLUME_UNAVAILABLE,
        "The storage volume is not available yet.",
    ),
    "full of pods": (
        "0/3 nodes are available: 3 Too many pods. preemption: not eligible due to preemptionPolicy=Never.",
        NO_ROOM,
        "Of 3 machines none can take it: 3 machines already run their maximum number of pods.",
    ),
    "gated": (
        "Scheduling is blocked due to non-empty scheduling gates",
        NO_ROOM,
        "Another program of the cluster has not released it yet (a scheduling gate).",
    ),
}


@pytest.mark.parametrize("name", SCHEDULING)
def test_no_machine_is_told_by_number(name: str) -> None:
    message, reason, text = SCHEDULING[name]
    told = of_scheduling(message)
    assert (told.reason, told.text, told.is_known) == (reason, text, True)


BEFORE = 'Error creating: pods "j-7f3k2p9m4x-1-0-xkq7z" is forbidden: '
CREATION: dict[str, tuple[str, Reason, str]] = {
    "quota": (
        "exceeded quota: trainhall, requested: requests.nvidia.com/gpu=16, used: requests.nvidia.com/gpu=0, "
        "limited: requests.nvidia.com/gpu=8",
        Reason.QUOTA_EXCEEDED,
        "The namespace's quota is used up: GPUs 0 of 8, one more worker needs 16.",
    ),
    "quota of two things": (
        "exceeded quota: trainhall, requested: limits.memory=2Gi,requests.cpu=5, used: limits.memory=7Gi,requests.cpu=0, "
        "limited: limits.memory=8Gi,requests.cpu=4",
        Reason.QUOTA_EXCEEDED,
        "The namespace's quota is used up: memory (limit) 7Gi of 8Gi, one more worker needs 2Gi; "
        "CPU 0 of 4, one more worker needs 5.",
    ),
    "must specify": (
        "failed quota: trainhall: must specify requests.cpu for: main",
        Reason.NOT_ALLOWED,
        "The request must state requests.cpu for: main: the quota trainhall counts it.",
    ),
    "limit range": (
        "maximum memory usage per Container is 4Gi, but limit is 8Gi",
        Reason.NOT_ALLOWED,
        "One container may use at most 4Gi memory; 8Gi were requested.",
    ),
    "limit range of GPUs": (
        "maximum nvidia.com/gpu usage per Pod is 4, but limit is 8",
        Reason.NOT_ALLOWED,
        "One worker may use at most 4 GPUs; 8 were requested.",
    ),
    "pod security": (
        'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set '
        "securityContext.allowPrivilegeEscalation=false)",
        Reason.NOT_ALLOWED,
        "The pod settings are not allowed here (Pod Security restricted:latest): allowPrivilegeEscalation != false "
        '(container "main" must set securityContext.allowPrivilegeEscalation=false).',
    ),
    "policy": (
        "ValidatingAdmissionPolicy 'trainhall-ids' with binding 'trainhall-ids' denied request: runAsUser must be the "
        "user's own number.",
        Reason.NOT_ALLOWED,
        "runAsUser must be the user's own number. (A rule of the cluster: trainhall-ids.)",
    ),
    "priority": (
        "no PriorityClass with name trainhall-none was found",
        Reason.CLUSTER_NOT_SET_UP,
        "Priority trainhall-none does not exist on this cluster.",
    ),
    "account": (
        'error looking up service account sched/trainhall-job: serviceaccount "trainhall-job" not found',
        Reason.CLUSTER_NOT_SET_UP,
        "The account trainhall-job, with which its pods run, does not exist in this namespace.",
    ),
}


@pytest.mark.parametrize("name", CREATION)
def test_why_pods_cannot_be_made(name: str) -> None:
    message, reason, text = CREATION[name]
    told = of_creation(BEFORE + message)
    assert (told.reason, told.text, told.is_known) == (reason, text, True)


def test_a_person_who_may_not_is_told_what_and_whom_to_ask() -> None:
    told = of_refusal(
        'jobs.batch is forbidden: User "ldap:bob" cannot create resource "jobs" in API group "batch" in the namespace '
        '"p-vision"'
    )
    assert told.text == "The cluster does not let you create jobs in p-vision. Ask a lead of the namespace."
    told = of_refusal(
        'users "ldap:bob" is forbidden: User "trainhall" cannot impersonate-on:user-info:jobs resource "users"'
    )
    assert told.text.startswith("The portal may not act for people")
    told = of_refusal('users "ldap:bob" is forbidden: User "trainhall" cannot impersonate resource "users"')
    assert told.text.startswith("The portal may not act for people")


PULL = 'failed to pull and unpack image "docker.io/ml/numpy:1": failed to resolve reference "docker.io/ml/numpy:1": '
IMAGES: dict[str, tuple[str, str, Reason, str]] = {
    "registry unknown": (
        "ErrImagePull",
        f'{PULL}failed to do request: Head "https://reg.invalid/v2/ml/numpy/manifests/1": dial tcp: lookup '
        "reg.invalid on 10.96.0.10:53: no such host",
        Reason.IMAGE_NOT_FOUND,
        "its registry is not known",
    ),
    "no such tag": (
        "ErrImagePull",
        f"rpc error: code = NotFound desc = {PULL}docker.io/ml/numpy:1: not found",
        Reason.IMAGE_NOT_FOUND,
        "there is no such image or tag",
    ),
    "back-off says why": (
        "ImagePullBackOff",
        f'Back-off pulling image "ml/numpy:1": ErrImagePull: {PULL}docker.io/ml/numpy:1: not found',
        Reason.IMAGE_NOT_FOUND,
        "there is no such image or tag",
    ),
    "back-off says nothing": (
        "ImagePullBackOff",
        'Back-off pulling image "ml/numpy:1"',
        Reason.IMAGE_NOT_FOUND,
        "it is tried again by itself",
    ),
    "unauthorized": (
        "ErrImagePull",
        f"{PULL}failed to authorize: failed to fetch oauth token: unexpected status from GET request: 401 Unauthorized",
        Reason.IMAGE_NOT_FOUND,
        "does not let us",
    ),
    "limit": (
        "ErrImagePull",
        f"{PULL}unexpected status code: 429 Too Many Requests - Server message: toomanyrequests: You have reached your "
        "pull rate limit.",
        Reason.REGISTRY_UNAVAILABLE,
        "limit of downloads",
    ),
    "silent": (
        "ErrImagePull",
        f"{PULL}failed to do request: Head: dial tcp 10.0.0.9:443: i/o timeout",
        Reason.REGISTRY_UNAVAILABLE,
        "does not answer",
    ),
    "never pulled": (
        "ErrImageNeverPull",
        'Container image "ml/numpy:1" is not present with pull policy of Never',
        Reason.IMAGE_NOT_FOUND,
        "not present on the machine",
    ),
    "no name": (
        "InvalidImageName",
        'Failed to apply default image tag "ml/numpy:1": couldn\'t parse image name',
        Reason.IMAGE_NOT_FOUND,
        "is not a valid image name",
    ),
}


@pytest.mark.parametrize("name", IMAGES)
def test_why_an_image_is_not_there(name: str) -> None:
    said, message, reason, part = IMAGES[name]
    told = of_image(said, message, "ml/numpy:1")
    assert (told.reason, told.is_known) == (reason, True)
    assert part in told.text and "ml/numpy:1" in told.text


CONFIG: dict[str, tuple[str, Reason, str]] = {
    "secret": ('secret "wandb" not found', Reason.SECRET_MISSING, "The secret wandb is missing."),
    "config map": ('configmap "files" not found', Reason.SECRET_MISSING, "The config map files is missing."),
    "key": (
        "couldn't find key token in Secret p-vision/wandb",
        Reason.SECRET_MISSING,
        "The secret wandb has no key token.",
    ),
    "root": (
        'container has runAsNonRoot and image will run as root (pod: "j-1_p(1)", container: main)',
        Reason.NOT_ALLOWED,
        "The image runs as root, which is not allowed here; set a user id.",
    ),
}


@pytest.mark.parametrize("name", CONFIG)
def test_why_a_container_cannot_be_made(name: str) -> None:
    message, reason, text = CONFIG[name]
    told = of_config(message)
    assert (told.reason, told.text, told.is_known) == (reason, text, True)


EVENTS: dict[str, tuple[str, str, Reason, str]] = {
    "file": (
        "FailedMount",
        'MountVolume.SetUp failed for volume "token" : secret "j-7f3k2p9m4x-1" not found',
        Reason.SECRET_MISSING,
        "A file the job needs (j-7f3k2p9m4x-1) is missing.",
    ),
    "nfs": (
        "FailedMount",
        'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32 Mounting command: mount Output: '
        "mount.nfs: access denied by server while mounting nas:/data",
        Reason.VOLUME_UNAVAILABLE,
        "The storage volume data could not be mounted (access denied by server).",
    ),
    "time-out": (
        "FailedMount",
        "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[data], failed to process "
        "volumes=[]: timed out waiting for the condition",
        Reason.VOLUME_UNAVAILABLE,
        "The storage volume data could not be mounted.",
    ),
    "sandbox": (
        "FailedCreatePodSandBox",
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox",
        Reason.MACHINE_FAULT,
        "The machine could not set up the container, which is a fault of the machine.",
    ),
    "old machine": (
        "FailedCreatePodSandBox",
        "SupplementalGroupsPolicyNotSupported: the runtime handler does not support it",
        Reason.MACHINE_FAULT,
        "The machine is too old for this pod setting.",
    ),
    "image, once more": (
        "Failed",
        f'Failed to pull image "ml/numpy:1": {PULL}docker.io/ml/numpy:1: not found',
        Reason.IMAGE_NOT_FOUND,
        "The image ml/numpy:1 cannot be fetched: there is no such image or tag.",
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_what_an_event_of_a_pod_tells(name: str) -> None:
    said, message, reason, text = EVENTS[name]
    told = of_pod_event(said, message)
    assert told is not None
    assert (told.reason, told.text, told.is_known) == (reason, text, True)


def test_what_every_start_may_say_for_a_moment_is_not_told() -> None:
    assert of_pod_event("FailedMount", 'failed for volume "kube-api-access" : object "ns"/"x" not registered') is None
    assert of_pod_event("FailedMount", "failed to sync secret cache: timed out waiting for the condition") is None
    assert of_pod_event("Unhealthy", "Readiness probe failed") is None


EVICTIONS: dict[str, tuple[str, Reason, str]] = {
    "memory": (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 40Mi. Container main was using "
        "3Gi, request is 1Gi, has larger consumption of memory.",
        Reason.DISRUPTION,
        "Its machine ran short of memory.",
    ),
    "disk": (
        "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 90Mi.",
        Reason.DISRUPTION,
        "Its machine ran short of scratch space on its disk.",
    ),
    "an older list": (
        "The node was low on resource: [MemoryPressure].",
        Reason.DISRUPTION,
        "Its machine ran short of memory.",
    ),
    "its own volume": (
        'Usage of EmptyDir volume "workspace" exceeds the limit "2Gi". ',
        Reason.OUT_OF_DISK,
        "It wrote more than 2Gi into /workspace.",
    ),
    "shared memory": (
        'Usage of EmptyDir volume "shm" exceeds the limit "64Mi".',
        Reason.OUT_OF_DISK,
        "It wrote more than 64Mi into shared memory (/dev/shm).",
    ),
    "its own scratch space": (
        "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
        Reason.OUT_OF_DISK,
        "It wrote more than 1Gi of scratch space.",
    ),
}


@pytest.mark.parametrize("name", EVICTIONS)
def test_whose_an_eviction_is(name: str) -> None:
    message, reason, text = EVICTIONS[name]
    told = of_eviction(message)
    assert (told.reason, told.text, told.is_known) == (reason, text, True)


def test_a_command_that_cannot_start_is_named() -> None:
    words = (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    )
    missing = 'unable to start container process: exec: "pyhton": executable file not found in $PATH: unknown'
    assert of_start_error(words + missing) == 'The command "pyhton" does not exist in the image.'
    denied = 'unable to start container process: exec: "/workspace/run.sh": permission denied: unknown'
    assert of_start_error(words + denied) == 'The command "/workspace/run.sh" cannot be executed.'
    assert of_start_error("something else") == ""


@pytest.mark.parametrize("tell", [of_scheduling, of_creation, of_config, of_eviction, of_refusal])
def test_what_nobody_has_translated_is_shown_as_it_is(tell: object) -> None:
    assert callable(tell)
    told = tell("a flux capacitor is missing")
    assert not told.is_known
    assert told.text.endswith("Technical reason: a flux capacitor is missing")
    assert len(tell("x" * 100_000).text) < 1000


def test_the_same_refusal_of_another_pod_is_the_same_text() -> None:
    other = BEFORE.replace("xkq7z", "w2b8d")
    assert other != BEFORE
    assert without_names(BEFORE) == without_names(other) == "Error creating: pods is forbidden: "
