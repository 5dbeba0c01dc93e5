"""Pods of several roles: each has a rank of its own, and an MPI launcher waits until its workers answer."""

from __future__ import annotations

import socket
import subprocess
import sys

from trainhall.place import rank


def test_the_ranks_of_a_role_come_after_those_before_it() -> None:
    assert rank({"JOB_COMPLETION_INDEX": "1"}) == 1
    assert rank({"JOB_COMPLETION_INDEX": "1", "TRAINHALL_FIRST_RANK": "3"}) == 4
    assert rank({"JOB_COMPLETION_INDEX": "1", "TRAINHALL_FIRST_RANK": "3", "RANK": "0"}) == 0
    assert rank({"JOB_COMPLETION_INDEX": "1", "TRAINHALL_FIRST_RANK": "2", "OMPI_COMM_WORLD_RANK": "7"}) == 7
    assert rank({"TRAINHALL_FIRST_RANK": "x"}) == 0


def test_a_launcher_begins_when_every_worker_answers(job_env: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.socket() as second:
        second.bind(("127.0.0.1", 0))  # taken, but nobody listens yet
        hosts = " ".join(f"w-{place}=127.0.0.1:{one.getsockname()[1]}" for place, one in enumerate((first, second)))
        waiting = subprocess.Popen(
            [sys.executable, "-m", "trainhall.agent", "--wait"],
            env={**job_env, "TRAINHALL_MPI_HOSTS": hosts},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert waiting.stderr
        assert waiting.stderr.readline().startswith("w-1 does not answer yet: ")
        assert waiting.poll() is None
        second.listen()
        waiting.communicate(timeout=20)
        assert waiting.returncode == 0
