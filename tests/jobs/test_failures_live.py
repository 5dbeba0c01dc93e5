"""Jobs that really fail, on the real local cluster: each is told by its cause, whose it is, its line and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from jobs.causes.scene import at_home
from jobs.logs.lines import read_lines
from jobs.models import Attempt, Job
from tests.jobs.test_journey import Hall

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hall(world: None, local_cluster: Any) -> Hall:
    return Hall(local_cluster)


@dataclass(frozen=True)
class Planted:
    """A failure, and what its panel must say: `line` is a part of the evidence line, "" where there is none."""

    kind: str
    owner: str
    command: str = "python train.py"
    script: str = ""
    line: str = ""
    says: str = ""
    step: str = ""
    more: tuple[tuple[str, Any], ...] = ()


PLANTED = (
    Planted("nonzero_exit", "you", "echo before; exit 3", line="before", says="exit code 3", step="last lines"),
    Planted(
        "python_exception",
        "you",
        script=(
            "def train(rows):\n"
            "    return rows[4]\n"
            "\n"
            "try:\n"
            "    train([])\n"
            "except IndexError as error:\n"
            "    raise RuntimeError('no rows') from error\n"
        ),
        line="RuntimeError: no rows",
        says="RuntimeError at train.py:7: no rows",
        step="train.py:7",
    ),
    Planted(
        "assertion",
        "you",
        script="assert 1 == 2, 'labels and images differ'\n",
        line="AssertionError",
        says="labels and images differ",
    ),
    Planted(
        "module_missing",
        "you",
        script="import flash_attn.layers\n",
        line="No module named 'flash_attn'",
        says="flash_attn",
        step="pip install flash_attn",
    ),
    Planted(
        "name_missing",
        "you",
        script="from json import nothing\n",
        line="cannot import name",
        says="json has no nothing",
    ),
    Planted("syntax_error", "you", script="x = (\n", line="SyntaxError", says="train.py:1"),
    Planted("script_missing", "you", "python trian.py", script="print(1)\n", line="can't open file", says="trian.py"),
    Planted(
        "file_missing",
        "you",
        script="open('/data/train.csv')\n",
        line="FileNotFoundError",
        says="/data/train.csv",
        step="volume",
    ),
    Planted("file_missing", "you", "cat /data/labels.txt", line="No such file", says="/data/labels.txt"),
    Planted(
        "permission_denied",
        "you",
        script="raise PermissionError(13, 'Permission denied', '/data/out.pt')\n",  # the test may run as root
        line="PermissionError",
        says="/data/out.pt",
        step="TRAINHALL_OUTPUT_DIR",
    ),
    Planted(
        "variable_missing",
        "you",
        script="import os\nprint(os.environ['WANDB_API_KEY'])\n",
        line="WANDB_API_KEY",
        says="WANDB_API_KEY",
        step="secret",
    ),
    Planted("variable_missing", "you", "set -u; echo $DATA_ROOT", line="DATA_ROOT", says="DATA_ROOT"),
    Planted("command_not_found", "you", "nvidia-smii --list", line="nvidia-smii", says="nvidia-smii", step="spelling"),
    Planted(
        "not_executable",
        "you",
        "./train.py",
        script="print(1)\n",
        line="train.py",
        says="may not be executed",
        step="interpreter",
    ),
    Planted(
        "wrong_arguments",
        "you",
        "python train.py --epoch 3",
        script="import argparse\np = argparse.ArgumentParser()\np.add_argument('--steps')\np.parse_args()\n",
        line="unrecognized arguments",
        says="--epoch 3",
        step="--help",
    ),
    Planted(
        "connection_refused",
        "unknown",
        script="import socket\nsocket.create_connection(('127.0.0.1', 9))\n",
        line="Connection refused",
        step="port",
    ),
    Planted(
        "host_not_found",
        "unknown",
        script="import urllib.request\nurllib.request.urlopen('http://no-such-host.invalid/data')\n",
        line="urlopen error",
        step="typing error",
    ),
    Planted(
        "address_in_use",
        "you",
        script=(
            "import socket\n"
            "a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()\n"
            "b = socket.socket(); b.bind(a.getsockname())\n"
        ),
        line="Address already in use",
    ),
    Planted(
        "segfault",
        "you",
        script="import os, signal\nprint('going', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)\n",
        line="Segmentation fault",
        says="SIGSEGV",
        step="PYTHONFAULTHANDLER",
    ),
    Planted("aborted", "you", script="import os\nos.abort()\n", says="SIGABRT"),
    Planted(
        "killed",
        "unknown",
        script="import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
        says="by whom is not known",
    ),
    Planted(
        "terminated", "unknown", script="import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n", says="SIGTERM"
    ),
    Planted(
        "disk_full",
        "you",
        script="with open('/dev/full', 'w') as file:\n    file.write('x' * 100)\n",
        line="No space left on device",
        says="No space left",
        step="checkpoints",
    ),
    Planted(
        "cuda_out_of_memory",
        "you",
        "python train.py --bs {batch_size}",
        script=(
            "raise RuntimeError('CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of "
            "79.15 GiB of which 1.10 GiB is free.')\n"
        ),
        line="Tried to allocate 2.50 GiB",
        says="1.10 GiB of 79.15 GiB",
        step="batch_size (now 1024), for example to 512",
        more=(("parameters", {"batch_size": 1024}),),
    ),
    Planted(
        "nan_loss",
        "you",
        script="import sys\nprint('Loss is nan, stopping training')\nsys.exit(1)\n",
        line="Loss is nan",
        step="learning rate",
    ),
    Planted(
        "time_limit",
        "you",
        "echo started; sleep 60",
        line="Terminated",
        says="1 s",
        step="2 s",
        more=(("time_limit", "1s"),),
    ),
    Planted(
        "host_out_of_memory",
        "you",
        script="import time\nheld = []\nwhile True:\n    held.append(b'x' * 2**24)\n    time.sleep(0.02)\n",
        says="64 MiB",
        step="128 MiB",
        more=(("resources", {"memory": "64Mi"}),),
    ),
)


def with_script(command: str, script: str) -> str:
    """The command after the script is written: no portal runs here that would serve the code."""
    return f"cat > train.py <<'END'\n{script}END\n{command}" if script else command


@pytest.mark.parametrize("planted", PLANTED, ids=[f"{one.kind}-{place}" for place, one in enumerate(PLANTED)])
def test_a_planted_failure_is_named(hall: Hall, alice: Any, planted: Planted) -> None:
    job = hall.submit(alice, with_script(planted.command, planted.script), name=planted.kind, **dict(planted.more))
    hall.go()
    job = hall.over(job)
    assert job.status == "failed"
    cause = Attempt.objects.get(job=job).cause
    assert (cause["kind"], cause["owner"]) == (planted.kind, planted.owner), cause
    assert planted.says in cause["text"], cause["text"]
    assert planted.step in " ".join(cause["steps"]), cause["steps"]
    assert 1 <= len(cause["steps"]) <= 3
    if planted.line:
        evidence = cause["evidence"]
        assert planted.line in evidence["text"]
        (there,) = read_lines(job.pk, after=evidence["seq"] - 1, limit=1)
        assert (there["seq"], at_home(there["text"])) == (evidence["seq"], evidence["text"])


def test_of_two_workers_the_first_to_fail_is_named_and_the_other_told_as_its_follow_up(hall: Hall, alice: Any) -> None:
    script = (
        "import os, time\n"
        "print('up', flush=True)\n"
        "if os.environ['JOB_COMPLETION_INDEX'] == '1':\n"
        "    raise ValueError('a broken sample')\n"
        "time.sleep(60)\n"
    )
    job = hall.submit(
        alice,
        with_script("python train.py", script),
        name="two",
        resources={"workers": 2, "memory": "128Mi"},
    )
    hall.go()
    job = hall.over(job)
    cause = Attempt.objects.get(job=job).cause
    assert (cause["kind"], cause["worker"]) == ("python_exception", "worker-1")
    assert [other["worker"] for other in cause["others"]] == ["worker-0"]


def test_a_success_without_a_trace_is_asked_about(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "true", name="nothing")
    hall.go()
    job = hall.over(job)
    assert job.status == "succeeded"
    assert Attempt.objects.get(job=job).cause["kind"] == "did_nothing"


def test_a_success_that_says_something_has_no_cause(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "echo done", name="something")
    hall.go()
    assert hall.over(job).status == "succeeded"
    assert Attempt.objects.get(job=job).cause == {}


def test_a_wanted_stop_has_no_cause(hall: Hall, alice: Any) -> None:
    from jobs import dispatch, submission

    job = hall.submit(alice, "echo up; sleep 60", name="stopped")
    hall.go()
    job = hall.until(job, lambda found: found.status == "running")
    submission.cancel(Job.objects.for_rows().get(pk=job.pk), user=alice, request=None)
    dispatch.stop(Attempt.objects.get(job=job).pk)
    assert hall.over(job).status == "cancelled"
    assert Attempt.objects.get(job=job).cause == {}


def test_every_attempt_keeps_its_own_cause(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, "echo first; exit 7", name="again", retries=1)
    hall.go()
    hall.until(job, lambda found: found.status == "queued" and found.attempt_number == 1)
    Job.objects.filter(pk=job.pk).update(not_before=None)
    hall.go()
    job = hall.over(job)
    assert [attempt.cause["values"]["exit"] for attempt in Attempt.objects.filter(job=job).order_by("number")] == [
        "7",
        "7",
    ]
    seqs = [attempt.cause["evidence"]["seq"] for attempt in Attempt.objects.filter(job=job).order_by("number")]
    assert seqs == [1, 2]
