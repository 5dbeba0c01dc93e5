"""The two shell programs of an MPI job, run as they are; sshd is a stand-in that logs nobody in."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from jobs import credentials
from jobs.cluster.mpi import LAUNCHER_PROGRAM, WORKER_PROGRAM

HOSTS = "j-a-1-worker-0=j-a-1-worker-0.j-a-1:2222 j-a-1-worker-1=127.0.0.1:40001"


@pytest.fixture
def pod(tmp_path: Path) -> dict[str, str]:
    """The environment of a pod whose folders have a space in their names."""
    keys = tmp_path / "the keys"
    keys.mkdir()
    private, public = credentials.ssh_key_pair("abc", 1)
    (keys / "private").write_text(private)
    (keys / "public").write_text(public)
    (tmp_path / "bin").mkdir()
    return {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "TRAINHALL_MPI_DIR": str(tmp_path / "the folder"),
        "TRAINHALL_SSH_KEYS": str(keys),
        "TRAINHALL_MPI_HOSTS": HOSTS,
        "TRAINHALL_MPI_SLOTS": "4",
        "TRAINHALL_SSH_ADDRESS": "127.0.0.1:40001",
        "GREETING": "it's $HOME\nand more",
    }


def stand_in(tmp_path: Path, program: str) -> None:
    sshd = tmp_path / "bin" / "sshd"
    sshd.write_text(f"#!/bin/sh\n{program}\n")
    sshd.chmod(0o755)


def test_the_launcher_knows_its_hosts_before_the_users_command_runs(pod: dict[str, str]) -> None:
    shown = 'cat "$TRAINHALL_MPI_DIR/hostfile" "$TRAINHALL_MPI_DIR/hostfile.hydra"; command -v ssh; umask'
    words = ["/bin/sh", "-c", LAUNCHER_PROGRAM, "sh", "/bin/sh", "-c", shown]
    told = subprocess.run(words, env=pod, capture_output=True, text=True, check=True, timeout=20)
    folder = Path(pod["TRAINHALL_MPI_DIR"])
    assert told.stdout.splitlines() == [
        "j-a-1-worker-0 slots=4",
        "j-a-1-worker-1 slots=4",
        "j-a-1-worker-0:4",
        "j-a-1-worker-1:4",
        f"{folder}/bin/ssh",
        "0022",
    ]
    assert (folder / "key").stat().st_mode & 0o077 == 0, "OpenSSH takes no key that others can read"


def test_ssh_is_told_port_and_key_of_a_host(pod: dict[str, str]) -> None:
    words = ["/bin/sh", "-c", LAUNCHER_PROGRAM, "sh", "ssh", "-G", "j-a-1-worker-1"]
    told = subprocess.run(words, env=pod, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()
    assert {"hostname 127.0.0.1", "port 40001", "stricthostkeychecking true", "batchmode yes"} <= set(told)
    assert f"identityfile {pod['TRAINHALL_MPI_DIR']}/key" in told


def test_a_session_has_the_environment_of_the_pod_and_may_end_by_itself(pod: dict[str, str], tmp_path: Path) -> None:
    """What sshd would start for a command from outside, and a stop while it runs."""
    session = 'env -i SSH_ORIGINAL_COMMAND=\'echo "$GREETING"; sleep 1; echo saved\' sh "$TRAINHALL_MPI_DIR/session" &'
    stand_in(tmp_path, f'trap "exit 0" TERM; {session} echo ready; while :; do sleep 0.1; done')
    worker = subprocess.Popen(
        ["/bin/sh", "-c", WORKER_PROGRAM], env=pod, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert worker.stdout
    said = [worker.stdout.readline() for _line in range(3)]
    worker.send_signal(signal.SIGTERM)
    rest, _nothing = worker.communicate(timeout=20)
    assert sorted(said) == sorted(["ready\n", "it's $HOME\n", "and more\n"])
    assert (rest, worker.returncode) == ("saved\n", 0)


def test_a_worker_without_sessions_ends_at_once(pod: dict[str, str], tmp_path: Path) -> None:
    stand_in(tmp_path, 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done')
    worker = subprocess.Popen(["/bin/sh", "-c", WORKER_PROGRAM], env=pod, stdout=subprocess.PIPE, text=True)
    assert worker.stdout and worker.stdout.readline() == "ready\n"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=20) == 0


def test_a_server_that_cannot_begin_is_a_failure_of_the_worker(pod: dict[str, str], tmp_path: Path) -> None:
    stand_in(tmp_path, "echo 'Address already in use.' >&2; exit 255")
    worker = subprocess.run(["/bin/sh", "-c", WORKER_PROGRAM], env=pod, capture_output=True, text=True, timeout=20)
    assert (worker.returncode, worker.stderr) == (255, "Address already in use.\n")


@pytest.mark.skipif(os.path.exists("/usr/sbin/sshd"), reason="this machine has one")
def test_an_image_without_sshd_says_so(pod: dict[str, str]) -> None:
    worker = subprocess.run(["/bin/sh", "-c", WORKER_PROGRAM], env=pod, capture_output=True, text=True, timeout=20)
    assert (worker.returncode, worker.stderr) == (127, "An MPI worker needs sshd, of OpenSSH, in its image.\n")


class TestKeys:
    def test_an_attempts_pair_is_always_the_same_and_nobody_elses(self) -> None:
        public = credentials.ssh_key_pair("abc", 1)[1]
        assert public == credentials.ssh_key_pair("abc", 1)[1]
        assert public not in (credentials.ssh_key_pair("abc", 2)[1], credentials.ssh_key_pair("abd", 1)[1])

    def test_openssh_reads_it(self, tmp_path: Path) -> None:
        private, public = credentials.ssh_key_pair("abc", 1)
        file = tmp_path / "key"
        file.write_text(private)
        file.chmod(0o600)
        told = subprocess.run(["ssh-keygen", "-y", "-f", file], capture_output=True, text=True, check=True, timeout=20)
        assert told.stdout.split()[:2] == public.split()[:2]
