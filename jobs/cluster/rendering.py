"""What decides how one attempt looks on a cluster, and where things lie in its pods. Pure.

Kubernetes replaces `$(NAME)` and `$$` in values and commands. What a user typed goes through `literal`, so it arrives as written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jobs.spec import JobSpec

MASTER_PORT = 29500

# Where things lie in a pod. The local cluster puts folders of its own in their place.
SDK_FOLDER = "/opt/trainhall"
WORKSPACE = "/workspace"
RUNS = "/runs"
RUN_FOLDER = "/run/trainhall"
TOKEN_FOLDER = "/var/run/secrets/trainhall"  # noqa: S105 - a folder
HELPER_SDK = "/srv/trainhall/sdk"  # the package `trainhall` inside the helper image

INDEX_LABEL = "batch.kubernetes.io/job-completion-index"


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


def literal(text: str) -> str:
    """The text, escaped so that Kubernetes' `$(NAME)` expansion gives it back unchanged."""
    return re.sub(r"\$(?=[$(])", "$$", text)
