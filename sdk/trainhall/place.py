"""Where this process runs: what the environment says about the job, the rank, and a coming stop."""

from __future__ import annotations

import os
import time
from typing import Mapping, NamedTuple, Optional

# The launchers' words for the same thing, the most specific first.
RANK_NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
WORLD_NAMES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


class Place(NamedTuple):
    """One process of one attempt of a job."""

    url: str
    job: str
    attempt: int
    rank: int
    token_file: str

    def read_token(self) -> str:
        """Read each time: a mounted secret may be renewed under our feet."""
        with open(self.token_file, encoding="utf-8", errors="replace") as file:
            return file.read().strip()


def find_place(env: Optional[Mapping[str, str]] = None) -> Optional[Place]:
    """This process's place in a job, or None outside one."""
    env = os.environ if env is None else env
    url, job, token_file = (env.get("TRAINHALL_" + name, "") for name in ("URL", "JOB_ID", "TOKEN_FILE"))
    if not (url and job and token_file):
        return None
    return Place(url.rstrip("/"), job, _first_number(env, ("TRAINHALL_ATTEMPT",), 1), rank(env), token_file)


def rank(env: Optional[Mapping[str, str]] = None) -> int:
    """The number of this process among those that train together; 0 when it is alone."""
    env = os.environ if env is None else env
    # where pods have roles, each role's indexes begin anew, and its ranks after those of the role before
    place = _first_number(env, ("TRAINHALL_FIRST_RANK",), 0) + _first_number(env, ("JOB_COMPLETION_INDEX",), 0)
    return _first_number(env, RANK_NAMES, place)


def world_size(env: Optional[Mapping[str, str]] = None) -> int:
    """How many processes train together."""
    return _first_number(os.environ if env is None else env, WORLD_NAMES, 1)


def notice() -> Optional[float]:
    """The Unix time at which this job will be stopped, or None while no stop is known."""
    path = os.environ.get("TRAINHALL_NOTICE_FILE")
    if not path:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(100).strip()
    except (OSError, ValueError):
        return None
    try:
        return float(text)
    except ValueError:
        return _iso_time(text)


def spool_folder() -> str:
    """Where points wait while the portal is away: beside the job's output, where they outlive the pod."""
    output = os.environ.get("TRAINHALL_OUTPUT_DIR")
    if output and os.path.isdir(output) and os.access(output, os.W_OK):
        return os.path.join(output, ".trainhall-spool")
    import tempfile

    return os.path.join(tempfile.gettempdir(), "trainhall-spool-{}".format(os.getuid() if hasattr(os, "getuid") else 0))


def _first_number(env: Mapping[str, str], names: "tuple[str, ...]", otherwise: int) -> int:
    for name in names:
        text = env.get(name, "")
        if text.isdigit():
            return int(text)
    return otherwise


def _iso_time(text: str) -> float:
    """The file is there, so a stop is coming even if its time cannot be read: then it is now."""
    import datetime

    try:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return time.time()
