"""What an attempt looks like on a cluster: a JobSpec becomes a suspended Indexed Job, a Service and a Secret. Pure.

Kubernetes replaces `$(NAME)` and `$$` in values and commands. What a user typed is escaped, so it arrives as written.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from jobs.cluster.port import Manifest, Objects
from jobs.cluster.quantities import format_cpu, format_memory
from jobs.spec import JobSpec, Resources, spec_to_dict

ROLE = "worker"
MAIN, SETUP = "main", "setup"
GPU = "nvidia.com/gpu"
GPU_PRODUCT = "nvidia.com/gpu.product"  # the node label that spec.resources.gpu_type is compared with
MASTER_PORT = 29500
SECONDS_AFTER_FINISH = 24 * 3600  # the watcher deletes earlier, once outcome and logs are stored
MASK = "********"

# Where things lie in a pod. The local cluster puts folders of its own in their place.
SDK_FOLDER = "/opt/trainhall"
WORKSPACE = "/workspace"
RUNS = "/runs"
RUN_FOLDER = "/run/trainhall"
TOKEN_FOLDER = "/var/run/secrets/trainhall"  # noqa: S105 - a folder
HELPER_SDK = "/srv/trainhall/sdk"  # the package `trainhall` inside the helper image

INSTANCE_LABEL = "trainhall.io/instance"
JOB_LABEL = "trainhall.io/job"
ATTEMPT_LABEL = "trainhall.io/attempt"
ROLE_LABEL = "trainhall.io/role"
DIGEST_ANNOTATION = "trainhall.io/spec-sha256"
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
IDENTITY_LABELS = (INSTANCE_LABEL, JOB_LABEL, ATTEMPT_LABEL)

_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_SMALL = {
    "requests": {"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
    "limits": {"cpu": "1", "memory": "128Mi", "ephemeral-storage": "64Mi"},
}


@dataclass(frozen=True, slots=True)
class Rendering:
    """Everything that decides how one attempt looks on a cluster."""

    spec: JobSpec
    job_id: str
    attempt: int
    instance: str  # which portal: two may share a cluster
    kubernetes_namespace: str
    username: str
    internal_url: str  # the portal, as pods reach it
    token: str
    argv: list[str]  # the command with its parameters filled in
    helper_image: str
    launcher: str = "plain"
    code_url: str = ""  # "" means no code to fetch
    code_sha256: str = ""
    secret_env: dict[str, str] | None = None  # values the user typed
    resume_from: str = ""
    identity: tuple[int, int, tuple[int, ...]] | None = None  # uid, gid, groups

    @property
    def name(self) -> str:
        return object_name(self.job_id, self.attempt)


def object_name(job_id: str, attempt: int) -> str:
    """One name per attempt, never used again."""
    return f"j-{job_id}-{attempt}"


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
    """What was asked for, as a hash: equal for every repetition of a launch, also by a newer portal."""
    asked = {"spec": spec_to_dict(job.spec), "argv": job.argv, "code": job.code_sha256}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def literal(text: str) -> str:
    """The text, escaped so that Kubernetes' `$(NAME)` expansion gives it back unchanged."""
    return re.sub(r"\$(?=[$(])", "$$", text)


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
            {"action": "FailJob", "onExitCodes": {"containerName": MAIN, "operator": "In", "values": [75]}},
            {
                "action": "FailJob",
                "onExitCodes": {"containerName": MAIN, "operator": "In", "values": [2, 64, 65, 66, 78]},
            },
        ]
    }


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
        "initContainers": [_setup_container(job)],
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
    env = [_value("PYTHONPATH", HELPER_SDK), *(_value(name, text) for name, text in _folders(job).items())]
    if job.code_url:
        env += [
            _value("TRAINHALL_CODE_SHA256", job.code_sha256),
            _from_secret("TRAINHALL_CODE_URL", job.name, "code-url"),
        ]
    return {
        "name": SETUP,
        "image": job.helper_image,
        "command": ["python3", "-m", "trainhall.agent", "--setup"],
        "env": env,
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


def _main_container(job: Rendering) -> Manifest:
    container: Manifest = {
        "name": MAIN,
        "image": job.spec.image,
        "command": [literal(word) for word in job.argv],
        "workingDir": WORKSPACE,
        "env": _environment(job),
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
    amounts = {"cpu": format_cpu(wanted.cpu_millis), "memory": format_memory(wanted.memory_bytes)}
    if wanted.gpus:
        amounts[GPU] = str(wanted.gpus)
    return {"requests": dict(amounts), "limits": dict(amounts)}


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


# The environment


def _environment(job: Rendering) -> list[Manifest]:
    """Our defaults, then the user's values, then what tells the pod who it is; the index first, so that the rest may use it."""
    plain = _defaults(job) | _launcher_environment(job)
    plain |= {name: literal(value) for name, value in job.spec.env.items()}
    plain["PYTHONPATH"] = _python_path(job.spec.env.get("PYTHONPATH", ""))
    plain |= _identity(job)
    from_secrets = _secret_environment(job)
    plain.pop("JOB_COMPLETION_INDEX", None)
    return [
        {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX_LABEL}']"}}},
        *(_value(name, text) for name, text in plain.items() if name not in from_secrets),
        *from_secrets.values(),
    ]


def _defaults(job: Rendering) -> dict[str, str]:
    return {
        "HOME": WORKSPACE,
        "USER": literal(job.username),
        "PYTHONUNBUFFERED": "1",
        "KUBEFLOW_TRAINER_SERVER_URL": f"{job.internal_url}/kf/{job.job_id}",
        "MLFLOW_TRACKING_URI": f"{job.internal_url}/mlflow",
    }


def _python_path(users: str) -> str:
    """The SDK last, so that a user's own module of that name wins."""
    sdk = f"{SDK_FOLDER}/trainhall.zip"
    return f"{literal(users)}:{sdk}" if users else sdk


def _folders(job: Rendering) -> dict[str, str]:
    run = f"{RUNS}/{job.job_id}"
    return {
        "TRAINHALL_SDK_DIR": SDK_FOLDER,
        "TRAINHALL_WORKSPACE": WORKSPACE,
        "TRAINHALL_OUTPUT_DIR": f"{run}/out",
        "TRAINHALL_CHECKPOINT_DIR": f"{run}/ckpt",  # the same for all attempts
        "TRAINHALL_TB_DIR": f"{run}/tb",
    }


def _identity(job: Rendering) -> dict[str, str]:
    return {
        "TRAINHALL_URL": job.internal_url,
        "TRAINHALL_JOB_ID": job.job_id,
        "TRAINHALL_ATTEMPT": str(job.attempt),
        "TRAINHALL_TOKEN_FILE": f"{TOKEN_FOLDER}/token",
        **_folders(job),
        "TRAINHALL_RESUME_FROM": literal(job.resume_from),
        "TRAINHALL_NOTICE_FILE": f"{RUN_FOLDER}/notice",
    }


def _secret_environment(job: Rendering) -> dict[str, Manifest]:
    found: dict[str, Manifest] = {}
    if (
        not {"MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN"} & job.spec.env.keys()
    ):  # our token is for our own address only
        found["MLFLOW_TRACKING_TOKEN"] = _from_secret("MLFLOW_TRACKING_TOKEN", job.name, "token")
    for secret in job.spec.secrets:
        if secret.from_secret:
            found[secret.name] = _from_secret(secret.name, secret.from_secret, secret.key or secret.name)
        else:
            found[secret.name] = _from_secret(secret.name, job.name, f"env.{secret.name}")
    own = _identity(job)
    return {name: entry for name, entry in found.items() if name not in own and name != "JOB_COMPLETION_INDEX"}


def _launcher_environment(job: Rendering) -> dict[str, str]:
    try:
        words = LAUNCHERS[job.launcher]
    except KeyError:
        raise ValueError(f"No manifest is known for the launcher {job.launcher!r}.") from None
    return words(job)


def _plain(job: Rendering) -> dict[str, str]:
    """One process per pod."""
    return {
        "RANK": "$(JOB_COMPLETION_INDEX)",
        "WORLD_SIZE": str(job.spec.resources.workers),
        "MASTER_ADDR": _first_host(job),
        "MASTER_PORT": str(MASTER_PORT),
    }


def _torchrun(job: Rendering) -> dict[str, str]:
    """torchrun takes every option from PET_*; RANK and WORLD_SIZE serve scripts started without it."""
    per_node = job.spec.resources.gpus or 1
    return {
        "MASTER_ADDR": _first_host(job),
        "MASTER_PORT": str(MASTER_PORT),
        "PET_NNODES": str(job.spec.resources.workers),
        "PET_NPROC_PER_NODE": str(per_node),
        "PET_NODE_RANK": "$(JOB_COMPLETION_INDEX)",
        "PET_MASTER_ADDR": "$(MASTER_ADDR)",
        "PET_MASTER_PORT": "$(MASTER_PORT)",
        "PET_RDZV_ID": f"{job.job_id}-{job.attempt}",
        "RANK": "$(JOB_COMPLETION_INDEX)",
        "WORLD_SIZE": str(job.spec.resources.workers * per_node),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    }


LAUNCHERS = {"plain": _plain, "torchrun": _torchrun}


def _first_host(job: Rendering) -> str:
    return f"{job.name}-0.{job.name}"


def _value(name: str, text: str) -> Manifest:
    return {"name": name, "value": text}


def _from_secret(name: str, secret: str, key: str) -> Manifest:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def _mount(name: str, path: str, *, read_only: bool = False) -> dict[str, Any]:
    mount: dict[str, Any] = {"name": name, "mountPath": path}
    return mount | {"readOnly": True} if read_only else mount
