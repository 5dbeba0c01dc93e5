"""What decides how one attempt looks on a cluster, and where things lie in its pods. Pure.

Kubernetes replaces `$(NAME)` and `$$` in values and commands. What a user typed goes through `literal`, so it arrives as written.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from jobs.gang import PodGroup, first_ranks, job_name, object_name, pod_groups
from jobs.spec import JobSpec

MASTER_PORT = 29500
JAX_PORT, TENSORFLOW_PORT, XGBOOST_PORT, SSH_PORT = 8476, 2222, 9091, 2222

# Where things lie in a pod. The local cluster puts folders of its own in their place.
SDK_FOLDER = "/opt/trainhall"
WORKSPACE = "/workspace"
RUNS = "/runs"
RUN_FOLDER = "/run/trainhall"
TOKEN_FOLDER = "/var/run/secrets/trainhall"  # noqa: S105 - a folder
SSH_FOLDER = "/var/run/secrets/trainhall-ssh"
HELPER_SDK = "/srv/trainhall/sdk"  # the package `trainhall` inside the helper image

INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Home:
    """A claim that each job of a namespace gets, and where this person is at home in it."""

    claim: str
    mount: str
    path: str  # what HOME says: the mount itself, or a folder in it


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
    secret_env: dict[str, str] | None = None  # values the user typed, and those of the namespace that the job names
    pull_config: str = ""  # a docker config for registries that ask who comes
    resume_from: str = ""
    identity: tuple[int, int, tuple[int, ...]] | None = None  # uid, gid, groups
    topology: tuple[str, ...] = ()  # labels of nodes by which its pods are kept close, the closest first
    close_to: tuple[str, str] = ("", "")  # the label and its value that all nodes chosen for it have in common
    tolerations: tuple[dict[str, Any], ...] = ()
    home: Home | None = None  # None: HOME is the workspace
    read_only_claims: frozenset[str] = frozenset()  # whatever the job was told when it was submitted
    ssh_key: tuple[str, str] = ("", "")  # of the launcher mpi: private and public, both in OpenSSH's form

    @property
    def name(self) -> str:
        """Of what all roles share: Service, Secret, and the Job where there is but one."""
        return object_name(self.job_id, self.attempt)

    @property
    def groups(self) -> tuple[PodGroup, ...]:
        """The roles, the leader's first."""
        return pod_groups(self.launcher, self.spec.resources)

    @property
    def first_ranks(self) -> dict[str, int]:
        return first_ranks(self.groups)

    def job_name(self, role: str) -> str:
        return job_name(self.name, role, self.groups)

    def pod_host(self, role: str, index: int | str) -> str:
        """The host name of a pod, which is not an address yet."""
        return f"{self.job_name(role)}-{index}"

    def address(self, role: str, index: int | str) -> str:
        """Where the other pods of the attempt find this one."""
        return f"{self.pod_host(role, index)}.{self.name}"


def literal(text: str) -> str:
    """The text, escaped so that Kubernetes' `$(NAME)` expansion gives it back unchanged."""
    return re.sub(r"\$(?=[$(])", "$$", text)


def label_value(text: str) -> str:
    """The text itself where it is a label value, else a readable part and a hash, so that two never meet."""
    if _LABEL_VALUE.fullmatch(text):
        return text
    readable = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"{readable}-x{digest}" if readable else f"x{digest}"
