"""The environment of an attempt's containers (DESIGN 9, "In every pod"). Pure."""

from __future__ import annotations

from jobs.cluster import launchers
from jobs.cluster.port import Manifest
from jobs.cluster.rendering import (
    HELPER_SDK,
    INDEX_LABEL,
    RUN_FOLDER,
    RUNS,
    SDK_FOLDER,
    TOKEN_FOLDER,
    WORKSPACE,
    Rendering,
    literal,
)
from jobs.gang import PodGroup


def of_setup(job: Rendering) -> list[Manifest]:
    """For the init container that puts SDK and code in place."""
    env = [_value("PYTHONPATH", HELPER_SDK), *(_value(name, text) for name, text in _folders(job).items())]
    if job.code_url:
        env += [
            _value("TRAINHALL_CODE_SHA256", job.code_sha256),
            _from_secret("TRAINHALL_CODE_URL", job.name, "code-url"),
        ]
    return env


def of_agent(job: Rendering, group: PodGroup) -> list[Manifest]:
    """For the sidecar that reads what the program writes; its rank is the pod's place in the attempt."""
    return [
        _index(),
        _value("PYTHONPATH", HELPER_SDK),
        *(_value(name, text) for name, text in _identity(job, group).items()),
    ]


def of_wait(job: Rendering) -> list[Manifest]:
    """For the init container of an MPI launcher, which waits until its workers answer."""
    return [_value("PYTHONPATH", HELPER_SDK), _value(launchers.MPI_HOSTS, launchers.mpi_hosts(job))]


def of_main(job: Rendering, group: PodGroup) -> list[Manifest]:
    """Our defaults, then the user's values, then what tells the pod who it is; the index first, so that the rest may use it."""
    plain = _defaults(job) | launchers.environment(job, group)
    if job.spec.resources.gpus and not group.gpus:
        plain["NVIDIA_VISIBLE_DEVICES"] = "void"  # an image that asks for all GPUs of the machine gets none
    plain |= {name: literal(value) for name, value in job.spec.env.items()}
    plain["PYTHONPATH"] = _python_path(job.spec.env.get("PYTHONPATH", ""))
    plain |= _identity(job, group)
    from_secrets = _secret_environment(job)
    plain.pop("JOB_COMPLETION_INDEX", None)
    return [
        _index(),
        *(_value(name, text) for name, text in plain.items() if name not in from_secrets),
        *from_secrets.values(),
    ]


def _defaults(job: Rendering) -> dict[str, str]:
    return {
        "HOME": literal(job.home.path) if job.home else WORKSPACE,
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


def _identity(job: Rendering, group: PodGroup) -> dict[str, str]:
    first = job.first_ranks[group.role]
    return {
        "TRAINHALL_URL": job.internal_url,
        "TRAINHALL_JOB_ID": job.job_id,
        "TRAINHALL_ATTEMPT": str(job.attempt),
        "TRAINHALL_TOKEN_FILE": f"{TOKEN_FOLDER}/token",
        **_folders(job),
        "TRAINHALL_RESUME_FROM": literal(job.resume_from),
        "TRAINHALL_NOTICE_FILE": f"{RUN_FOLDER}/notice",
        "TRAINHALL_STOP_GRACE": str(job.spec.stop_grace),
        **({"TRAINHALL_FIRST_RANK": str(first)} if first else {}),
    }


def _secret_environment(job: Rendering) -> dict[str, Manifest]:
    found: dict[str, Manifest] = {}
    if (
        not {"MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN"} & job.spec.env.keys()
    ):  # our token is for our own address only
        found["MLFLOW_TRACKING_TOKEN"] = _from_secret("MLFLOW_TRACKING_TOKEN", job.name, "token")
    for secret in job.spec.secrets:
        # one of the namespace, too: its value lies in the portal and goes into the attempt's own Secret
        found[secret.name] = _from_secret(secret.name, job.name, f"env.{secret.name}")
    return {
        name: entry
        for name, entry in found.items()
        if not name.startswith("TRAINHALL_") and name != "JOB_COMPLETION_INDEX"
    }


def _index() -> Manifest:
    return {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX_LABEL}']"}},
    }


def _value(name: str, text: str) -> Manifest:
    return {"name": name, "value": text}


def _from_secret(name: str, secret: str, key: str) -> Manifest:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
