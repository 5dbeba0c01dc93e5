"""The pod of one role of an attempt: its containers, what they may, and what they see of volumes. Pure."""

from __future__ import annotations

import copy
from typing import Any

from jobs.cluster import environment, launchers, mpi
from jobs.cluster.port import Manifest
from jobs.cluster.quantities import format_cpu, format_memory, parse_cpu, parse_memory
from jobs.cluster.rendering import (
    MASTER_PORT,
    RUN_FOLDER,
    RUNS,
    SDK_FOLDER,
    TOKEN_FOLDER,
    WORKSPACE,
    Home,
    Rendering,
    label_value,
    literal,
)
from jobs.gang import LAUNCHER, PodGroup
from jobs.spec import Volume

MAIN, SETUP, AGENT, WAIT = "main", "setup", "agent", "wait"
GPU = "nvidia.com/gpu"
GPU_PRODUCT = "nvidia.com/gpu.product"  # the node label that spec.resources.gpu_type is compared with

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_SMALL = {
    "requests": {"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
    "limits": {"cpu": "1", "memory": "128Mi", "ephemeral-storage": "64Mi"},
}

_AGENT = {
    "requests": {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "64Mi"},
    "limits": {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "1Gi"},
}


def pod_of(job: Rendering, group: PodGroup) -> Manifest:
    pod: Manifest = {
        "subdomain": job.name,
        "restartPolicy": "Never",  # podFailurePolicy requires it
        "terminationGracePeriodSeconds": job.spec.stop_grace,
        "priorityClassName": f"trainhall-{label_value(job.spec.priority)}",
        "serviceAccountName": "trainhall-job",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": _pod_security(job),
        "initContainers": [_setup_container(job), _agent_container(job, group)],
        "containers": [_main_container(job, group)],
        "volumes": _volumes(job, group),
    }
    if group.role == LAUNCHER:
        pod["initContainers"].append(_wait_container(job))
    if job.pull_config:
        pod["imagePullSecrets"] = [{"name": job.name}]
    if group.gpus and job.spec.resources.gpu_type:
        pod["nodeSelector"] = {GPU_PRODUCT: job.spec.resources.gpu_type}
    if job.tolerations:
        pod["tolerations"] = [dict(toleration) for toleration in job.tolerations]
    if affinity := _affinity(job):
        pod["affinity"] = affinity
    return pod


def _affinity(job: Rendering) -> Manifest:
    """As close together as there is room for, and never a reason to wait: where the queue saw room, then where the others are."""
    if sum(group.count for group in job.groups) < 2:
        return {}
    affinity: Manifest = {}
    weights = [100 >> step for step in range(len(job.topology))]
    if all(job.close_to):
        key, value = job.close_to
        wanted = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        affinity["nodeAffinity"] = {_PREFERRED: [{"weight": 100, "preference": wanted}]}
    others = {"matchLabels": {"trainhall.io/job": job.job_id, "trainhall.io/attempt": str(job.attempt)}}
    if job.topology:
        affinity["podAffinity"] = {
            _PREFERRED: [
                {"weight": max(1, weight), "podAffinityTerm": {"topologyKey": key, "labelSelector": others}}
                for weight, key in zip(weights, job.topology, strict=True)
            ]
        }
    return affinity


def ports_of(job: Rendering) -> list[tuple[str, int]]:
    own = launchers.PORTS.get(job.launcher)
    return [("rdzv", MASTER_PORT), *([own] if own else [])]


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


def _wait_container(job: Rendering) -> Manifest:
    """Until every worker answers: mpirun itself would give up at the first that does not."""
    return {
        "name": WAIT,
        "image": job.helper_image,
        "command": ["python3", "-m", "trainhall.agent", "--wait"],
        "env": environment.of_wait(job),
        "resources": copy.deepcopy(_SMALL),
        "securityContext": _container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_mount("tmp", "/tmp")],  # noqa: S108 - a volume of the pod's own
    }


def _agent_container(job: Rendering, group: PodGroup) -> Manifest:
    """A native sidecar: reads event files while `main` runs, and a last time when it has ended."""
    return {
        "name": AGENT,
        "image": job.helper_image,
        "restartPolicy": "Always",
        "command": ["python3", "-m", "trainhall.agent"],
        "env": environment.of_agent(job, group),
        "resources": copy.deepcopy(_AGENT),
        "securityContext": _container_security(read_only=True),
        "volumeMounts": [
            _mount("workspace", WORKSPACE, read_only=True),
            _mount("token", TOKEN_FOLDER, read_only=True),
            _mount("runs", RUNS, read_only=True),
            _mount("tmp", "/tmp"),  # noqa: S108 - a volume of the pod's own
        ],
    }


def _main_container(job: Rendering, group: PodGroup) -> Manifest:
    container: Manifest = {
        "name": MAIN,
        "image": job.spec.image,
        "command": [literal(word) for word in _command(job, group)],
        "workingDir": WORKSPACE,
        "env": environment.of_main(job, group),
        "ports": [{"name": name, "containerPort": port} for name, port in ports_of(job)],
        "resources": _resources(group),
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
    if job.launcher == "mpi":
        container["volumeMounts"].append(mpi.mount())
    if _has_shm(job, group):
        container["volumeMounts"].append(_mount("shm", "/dev/shm"))  # noqa: S108
    for volume in job.spec.volumes:
        container["volumeMounts"].append(_mount(f"v-{volume.name}", volume.path, read_only=_is_read_only(job, volume)))
    if job.home and not _is_named(job, job.home):
        container["volumeMounts"].append(_mount("home", job.home.mount))
    return container


def _is_read_only(job: Rendering, volume: Volume) -> bool:
    return volume.read_only is not False or volume.name in job.read_only_claims


def _is_named(job: Rendering, home: Home) -> bool:
    """Whether the job itself mounts its home, as it may to read it only."""
    return any((volume.name, volume.path) == (home.claim, home.mount) for volume in job.spec.volumes)


def _command(job: Rendering, group: PodGroup) -> list[str]:
    return mpi.command(group, job.argv) if job.launcher == "mpi" else job.argv


def _has_shm(job: Rendering, group: PodGroup) -> bool:
    """Data loaders need it, and an MPI launcher has none; it counts against the memory."""
    return bool(job.spec.resources.shm_bytes) and group.role != LAUNCHER


def _resources(wanted: PodGroup) -> Manifest:
    """What was asked for is the limit. The agent's share comes out of it, so that the pod as a whole holds no more."""
    limits = {"cpu": format_cpu(wanted.cpu_millis), "memory": format_memory(wanted.memory_bytes)}
    requests = {
        "cpu": format_cpu(max(1, wanted.cpu_millis - parse_cpu(_AGENT["requests"]["cpu"]))),
        "memory": format_memory(max(1, wanted.memory_bytes - parse_memory(_AGENT["requests"]["memory"]))),
    }
    gpus = {GPU: str(wanted.gpus)} if wanted.gpus else {}
    return {"requests": requests | gpus, "limits": limits | gpus}


def _volumes(job: Rendering, group: PodGroup) -> list[Manifest]:
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
    if job.launcher == "mpi":
        volumes.append(mpi.volume(job))
    if _has_shm(job, group):
        size = format_memory(job.spec.resources.shm_bytes)
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}})
    for volume in job.spec.volumes:
        claim = {"claimName": volume.name, "readOnly": _is_read_only(job, volume)}
        volumes.append({"name": f"v-{volume.name}", "persistentVolumeClaim": claim})
    if job.home and not _is_named(job, job.home):
        volumes.append({"name": "home", "persistentVolumeClaim": {"claimName": job.home.claim}})
    return volumes


def _mount(name: str, path: str, *, read_only: bool = False) -> dict[str, Any]:
    mount: dict[str, Any] = {"name": name, "mountPath": path}
    return mount | {"readOnly": True} if read_only else mount
