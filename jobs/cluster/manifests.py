"""What an attempt looks like on a cluster: a JobSpec becomes suspended Indexed Jobs, one for each role, a Service and a Secret.

Pure.
"""

from __future__ import annotations

import copy
import hashlib
import json

from jobs.cluster import mpi, podspec
from jobs.cluster.podspec import AGENT, GPU, GPU_PRODUCT, MAIN, SETUP
from jobs.cluster.port import Manifest, Objects
from jobs.cluster.rendering import INDEX_LABEL, Rendering, label_value
from jobs.exits import CHECKPOINTED, SAID_BY_PROGRAM
from jobs.gang import WORKER, PodGroup, object_name
from jobs.spec import spec_to_dict

__all__ = [
    "AGENT",
    "GPU",
    "GPU_PRODUCT",
    "INDEX_LABEL",
    "MAIN",
    "SETUP",
    "Rendering",
    "is_same",
    "label_value",
    "manifest_for_people",
    "object_name",
    "render",
]

ROLE = WORKER
SECONDS_AFTER_FINISH = 24 * 3600  # the watcher deletes earlier, once outcome and logs are stored
MASK = "********"

INSTANCE_LABEL = "trainhall.io/instance"
JOB_LABEL = "trainhall.io/job"
ATTEMPT_LABEL = "trainhall.io/attempt"
ROLE_LABEL = "trainhall.io/role"
LEADER_LABEL = "trainhall.io/leader"  # on the Jobs of the other roles: the name of the one whose end decides
DIGEST_ANNOTATION = "trainhall.io/spec-sha256"
IDENTITY_LABELS = (INSTANCE_LABEL, JOB_LABEL, ATTEMPT_LABEL)


def render(job: Rendering) -> Objects:
    """The manifests of one attempt, the leader's Job first, all of them suspended."""
    jobs = tuple(_job(job, group) for group in job.groups)
    return Objects(jobs=jobs, service=_service(job), config_map=None, secret=_secret(job))


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


def labels(job: Rendering, role: str = "") -> dict[str, str]:
    """For people and selectors only: users can forge labels, so objects are recognised by UID."""
    return {
        "app.kubernetes.io/managed-by": "trainhall",
        INSTANCE_LABEL: label_value(job.instance),
        JOB_LABEL: job.job_id,
        ATTEMPT_LABEL: str(job.attempt),
        "trainhall.io/user": label_value(job.username),
        ROLE_LABEL: role or job.groups[0].role,
        "trainhall.io/priority": label_value(job.spec.priority),
    }


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
    del spec["cluster"]  # it is this one
    if not spec["resources"]["parameter_servers"]:
        del spec["resources"]["parameter_servers"]  # attempts from before there were any
    asked = {"spec": spec, "argv": job.argv, "code": job.code_sha256}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


# Objects


def _job(job: Rendering, group: PodGroup) -> Manifest:
    leader = job.groups[0].role
    follows = {LEADER_LABEL: job.job_name(leader)} if group.role != leader else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job.job_name(group.role),
            "namespace": job.kubernetes_namespace,
            "labels": labels(job, group.role) | follows,
            "annotations": {
                "trainhall.io/submitted-by": job.username,
                "trainhall.io/name": job.spec.name,
                DIGEST_ANNOTATION: spec_digest(job),
            },
        },
        "spec": {
            "suspend": True,
            "completionMode": "Indexed",
            "completions": group.count,
            "parallelism": group.count,
            "backoffLimit": 0,  # one attempt, one object: a retry is attempt N+1
            "activeDeadlineSeconds": job.spec.time_limit,
            "ttlSecondsAfterFinished": SECONDS_AFTER_FINISH,
            "podReplacementPolicy": "Failed",  # never two pods on the same checkpoint directory
            "podFailurePolicy": _failure_policy(),
            "template": {"metadata": {"labels": labels(job, group.role)}, "spec": podspec.pod_of(job, group)},
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
            "ports": [{"name": name, "port": port, "targetPort": port} for name, port in podspec.ports_of(job)],
        },
    }


def _secret(job: Rendering) -> Manifest:
    values = {"token": job.token}
    if job.launcher == "mpi":
        values |= mpi.secret_values(job)
    if job.code_url:
        values["code-url"] = job.code_url
    for name, value in sorted((job.secret_env or {}).items()):
        values[f"env.{name}"] = value
    if job.pull_config:
        values[".dockerconfigjson"] = job.pull_config
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": job.name, "namespace": job.kubernetes_namespace, "labels": labels(job)},
        # of the kind that a kubelet takes an account from; it may hold more
        "type": "kubernetes.io/dockerconfigjson" if job.pull_config else "Opaque",
        "stringData": values,
    }
