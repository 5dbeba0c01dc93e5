"""What an attempt looks like on a cluster: a JobSpec becomes a suspended Indexed Job, a Service and a Secret. Pure."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from typing import Any

from jobs.cluster import environment
from jobs.cluster.port import Manifest, Objects
from jobs.cluster.quantities import format_cpu, format_memory, parse_cpu, parse_memory
from jobs.cluster.rendering import (
    INDEX_LABEL,
    MASTER_PORT,
    RUN_FOLDER,
    RUNS,
    SDK_FOLDER,
    TOKEN_FOLDER,
    WORKSPACE,
    Rendering,
    literal,
    object_name,
)
from jobs.exits import CHECKPOINTED, SAID_BY_PROGRAM
from jobs.spec import Resources, spec_to_dict

__all__ = ["INDEX_LABEL", "Rendering", "is_same", "label_value", "manifest_for_people", "object_name", "render"]

ROLE = "worker"
MAIN, SETUP, AGENT = "main", "setup", "agent"
GPU = "nvidia.com/gpu"
GPU_PRODUCT = "nvidia.com/gpu.product"  # the node label that spec.resources.gpu_type is compared with
SECONDS_AFTER_FINISH = 24 * 3600  # the watcher deletes earlier, once outcome and logs are stored
MASK = "********"

INSTANCE_LABEL = "trainhall.io/instance"
JOB_LABEL = "trainhall.io/job"
ATTEMPT_LABEL = "trainhall.io/attempt"
ROLE_LABEL = "trainhall.io/role"
DIGEST_ANNOTATION = "trainhall.io/spec-sha256"
IDENTITY_LABELS = (INSTANCE_LABEL, JOB_LABEL, ATTEMPT_LABEL)

_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_SMALL = {
    "requests": {"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
    "limits": {"cpu": "1", "memory": "128Mi", "ephemeral-storage": "64Mi"},
}

_AGENT = {
    "requests": {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "64Mi"},
    "limits": {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "1Gi"},
}


def render(job: Rendering) -> Objects:
    """The manifests of one attempt, the leader Job suspended."""
    return Objects(jobs=(_job(job),), service=_service(job), config_map=None, secret=_secret(job))


def manifest_for_people(objects: Objects) -> list[Manifest]:
    """The same manifests, every secret value masked."""
    shown = [copy.deepcopy(job) for job in objects.jobs]
    shown += [copy.deepcopy(child) for child in (objects.service, objects.config_map) if child is not None]
    if objects.secret is not None:
        secret = copy.deepcopy(objects.secret)
        for field in ("data", "stringData"):
            if field in secret:
                secret[field] = dict.fromkeys(secret[field], MASK)
        shown.append(secret)
    return shown


def labels(job: Rendering) -> dict[str, str]:
    """For people and selectors only: users can forge labels, so objects are recognised by UID."""
    return {
        "app.kubernetes.io/managed-by": "trainhall",
        INSTANCE_LABEL: label_value(job.instance),
        JOB_LABEL: job.job_id,
        ATTEMPT_LABEL: str(job.attempt),
        "trainhall.io/user": label_value(job.username),
        ROLE_LABEL: ROLE,
        "trainhall.io/priority": label_value(job.spec.priority),
    }


def label_value(text: str) -> str:
    """The text itself where it is a label value, else a readable part and a hash, so that two never meet."""
    if _LABEL_VALUE.fullmatch(text):
        return text
    readable = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"{readable}-x{digest}" if readable else f"x{digest}"


def is_same(found: Manifest, wanted: Manifest) -> bool:
    """Whether an object that was there already is the one we would have created."""
    ours, theirs = wanted["metadata"], found.get("metadata") or {}
    their_labels = theirs.get("labels") or {}
    their_notes = theirs.get("annotations") or {}
    return (
        all(their_labels.get(key) == ours["labels"][key] for key in IDENTITY_LABELS)
        and their_notes.get(DIGEST_ANNOTATION) == ours["annotations"][DIGEST_ANNOTATION]
    )


def spec_digest(job: Rendering) -> str:
    """What was asked of the cluster, as a hash: equal for every repetition of a launch, also by a newer portal."""
    spec = spec_to_dict(job.spec)
    del spec["charts"]  # how its pages look is nothing to a cluster
    asked = {"spec": spec, "argv": job.argv, "code": job.code_sha256}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


# Objects


def _job(job: Rendering) -> Manifest:
    workers = job.spec.resources.workers
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job.name,
            "namespace": job.kubernetes_namespace,
            "labels": labels(job),
            "annotations": {
                "trainhall.io/submitted-by": job.username,
                "trainhall.io/name": job.spec.name,
                DIGEST_ANNOTATION: spec_digest(job),
            },
        },
        "spec": {
            "suspend": True,
            "completionMode": "Indexed",
            "completions": workers,
            "parallelism": workers,
            "backoffLimit": 0,  # one attempt, one object: a retry is attempt N+1
            "activeDeadlineSeconds": job.spec.time_limit,
            "ttlSecondsAfterFinished": SECONDS_AFTER_FINISH,
            "podReplacementPolicy": "Failed",  # never two pods on the same checkpoint directory
            "podFailurePolicy": _failure_policy(),
            "template": {"metadata": {"labels": labels(job)}, "spec": _pod(job)},
        },
    }


def _failure_policy() -> Manifest:
    """The index of the rule that matched is in the Job's message; `observed` reads it."""
    return {
        "rules": [
            {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"containerName": SETUP, "operator": "NotIn", "values": [0]}},
            _fail_with(CHECKPOINTED),
            _fail_with(*SAID_BY_PROGRAM),
        ]
    }


def _fail_with(*codes: int) -> Manifest:
    return {"action": "FailJob", "onExitCodes": {"containerName": MAIN, "operator": "In", "values": sorted(codes)}}


def _service(job: Rendering) -> Manifest:
    """Headless: gives each rank the stable name `<job>-<index>.<job>`."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": job.name, "namespace": job.kubernetes_namespace, "labels": labels(job)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,  # ranks must resolve each other before they are ready
            "selector": {JOB_LABEL: job.job_id, ATTEMPT_LABEL: str(job.attempt)},
            "ports": [{"name": "rdzv", "port": MASTER_PORT, "targetPort": MASTER_PORT}],
        },
    }


def _secret(job: Rendering) -> Manifest:
    values = {"token": job.token}
    if job.code_url:
        values["code-url"] = job.code_url
    for name, value in sorted((job.secret_env or {}).items()):
        values[f"env.{name}"] = value
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": job.name, "namespace": job.kubernetes_namespace, "labels": labels(job)},
        "type": "Opaque",
        "stringData": values,
    }


# The pod


def _pod(job: Rendering) -> Manifest:
    pod: Manifest = {
        "subdomain": job.name,
        "restartPolicy": "Never",  # podFailurePolicy requires it
        "terminationGracePeriodSeconds": job.spec.stop_grace,
        "priorityClassName": f"trainhall-{label_value(job.spec.priority)}",
        "serviceAccountName": "trainhall-job",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": _pod_security(job),
        "initContainers": [_setup_container(job), _agent_container(job)],
        "containers": [_main_container(job)],
        "volumes": _volumes(job),
    }
    if job.spec.resources.gpus and job.spec.resources.gpu_type:
        pod["nodeSelector"] = {GPU_PRODUCT: job.spec.resources.gpu_type}
    return pod


def _pod_security(job: Rendering) -> Manifest:
    context: Manifest = {"seccompProfile": {"type": "RuntimeDefault"}}
    if job.identity is not None:
        uid, gid, groups = job.identity
        context |= {
            "runAsUser": uid,
            "runAsGroup": gid,
            "supplementalGroups": sorted(groups),
            "runAsNonRoot": uid != 0,
        }
    return context


def _container_security(*, read_only: bool = False) -> Manifest:
    context: Manifest = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return context | {"readOnlyRootFilesystem": True} if read_only else context


def _setup_container(job: Rendering) -> Manifest:
    """Copies the SDK, fetches and checks the code, makes the run's folders; then it is gone."""
    return {
        "name": SETUP,
        "image": job.helper_image,
        "command": ["python3", "-m", "trainhall.agent", "--setup"],
        "env": environment.of_setup(job),
        "resources": copy.deepcopy(_SMALL),  # always: a LimitRange default would add gigabytes
        "securityContext": _container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            _mount("trainhall", SDK_FOLDER),
            _mount("workspace", WORKSPACE),
            _mount("runs", RUNS),
            _mount("tmp", "/tmp"),  # noqa: S108 - a volume of the pod's own
        ],
    }


def _agent_container(job: Rendering) -> Manifest:
    """A native sidecar: reads event files while `main` runs, and a last time when it has ended."""
    return {
        "name": AGENT,
        "image": job.helper_image,
        "restartPolicy": "Always",
        "command": ["python3", "-m", "trainhall.agent"],
        "env": environment.of_agent(job),
        "resources": copy.deepcopy(_AGENT),
        "securityContext": _container_security(read_only=True),
        "volumeMounts": [
            _mount("workspace", WORKSPACE, read_only=True),
            _mount("token", TOKEN_FOLDER, read_only=True),
            _mount("runs", RUNS, read_only=True),
            _mount("tmp", "/tmp"),  # noqa: S108 - a volume of the pod's own
        ],
    }


def _main_container(job: Rendering) -> Manifest:
    container: Manifest = {
        "name": MAIN,
        "image": job.spec.image,
        "command": [literal(word) for word in job.argv],
        "workingDir": WORKSPACE,
        "env": environment.of_main(job),
        "ports": [{"name": "rdzv", "containerPort": MASTER_PORT}],
        "resources": _resources(job.spec.resources),
        "securityContext": _container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            _mount("trainhall", SDK_FOLDER, read_only=True),
            _mount("workspace", WORKSPACE),
            _mount("run", RUN_FOLDER),
            _mount("token", TOKEN_FOLDER, read_only=True),
            _mount("tmp", "/tmp"),  # noqa: S108 - a volume of the pod's own
            _mount("runs", RUNS),
        ],
    }
    if job.spec.resources.shm_bytes:
        container["volumeMounts"].append(_mount("shm", "/dev/shm"))  # noqa: S108
    for volume in job.spec.volumes:
        container["volumeMounts"].append(_mount(f"v-{volume.name}", volume.path, read_only=volume.read_only))
    return container


def _resources(wanted: Resources) -> Manifest:
    """What was asked for is the limit. The agent's share comes out of it, so that the pod as a whole holds no more."""
    limits = {"cpu": format_cpu(wanted.cpu_millis), "memory": format_memory(wanted.memory_bytes)}
    requests = {
        "cpu": format_cpu(max(1, wanted.cpu_millis - parse_cpu(_AGENT["requests"]["cpu"]))),
        "memory": format_memory(max(1, wanted.memory_bytes - parse_memory(_AGENT["requests"]["memory"]))),
    }
    gpus = {GPU: str(wanted.gpus)} if wanted.gpus else {}
    return {"requests": requests | gpus, "limits": limits | gpus}


def _volumes(job: Rendering) -> list[Manifest]:
    volumes: list[Manifest] = [
        {"name": "trainhall", "emptyDir": {"sizeLimit": "64Mi"}},
        {"name": "workspace", "emptyDir": {"sizeLimit": "2Gi"}},
        {"name": "run", "emptyDir": {"sizeLimit": "1Mi"}},
        {
            "name": "token",
            # 0444: without an fsGroup a tighter mode cannot be read by the user's own uid
            "secret": {
                "secretName": job.name,
                "defaultMode": 0o444,
                "items": [{"key": "token", "path": "token"}],
            },
        },
        {"name": "tmp", "emptyDir": {"sizeLimit": "20Gi"}},
        {"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}},
    ]
    if job.spec.resources.shm_bytes:
        size = format_memory(job.spec.resources.shm_bytes)
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}})
    for volume in job.spec.volumes:
        claim = {"claimName": volume.name, "readOnly": volume.read_only}
        volumes.append({"name": f"v-{volume.name}", "persistentVolumeClaim": claim})
    return volumes


def _mount(name: str, path: str, *, read_only: bool = False) -> dict[str, Any]:
    mount: dict[str, Any] = {"name": name, "mountPath": path}
    return mount | {"readOnly": True} if read_only else mount
