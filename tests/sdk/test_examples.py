"""The examples run, learn, end badly where they say so, and their job documents carry the same code."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import ROOT, SDK
from door import Door

EXAMPLES = ROOT / "examples"
RUNTIMES = (
    "numpy",
    "shell",
    "jax",
    "mpi",
    "tensorflow",
    "torch",
    "xgboost",
)  # of the demo; some only where they can run


def start(name: str, *words: str, env: dict[str, str]) -> subprocess.Popen[str]:
    command = ["sh" if name.endswith(".sh") else sys.executable, str(EXAMPLES / name), *words]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_digits_are_learned_and_everything_is_reported(job_env: dict[str, str], door: Door) -> None:
    child = start("digits_numpy.py", "--seconds", "2", "--rate", "0", "--weights-every", "50", env=job_env)
    printed, said = child.communicate(timeout=120)
    assert (child.returncode, said) == (0, "")
    found = {key: points for (_rank, key), points in door.series().items()}
    accuracy = found["val/accuracy"]
    assert accuracy[max(accuracy)] > 0.95
    steps = len(found["train/loss"])
    assert sorted(found["train/loss"]) == list(range(1, steps + 1))
    assert len(found["lr"]) == steps
    assert list(found["epoch"].values()) == list(range(1, len(accuracy) + 1))
    assert len(found["weights/layer3.weight/norm"]) == steps // 50
    assert {one["key"] for one in door.distributions()} == {"layer1.weight", "layer2.weight", "layer3.weight"}
    assert re.search(r"^After epoch \d+ \(step \d+\) it is \d", printed, re.M)


def test_the_gradients_of_the_digits_network_are_right() -> None:
    """Against the slope of the loss itself, at a few weights of each layer."""
    code = f"""
import sys; sys.path[:0] = [{str(EXAMPLES)!r}, {str(SDK)!r}]
import numpy as np
from digits_numpy import Network, loss_of
rng = np.random.default_rng(0)
network, images, digits = Network([64, 7, 5, 10], rng), rng.random((9, 64)), rng.integers(0, 10, 9)
gradients = network.backward(network.forward(images), digits, 0.0)
for array, gradient in zip(network.weights + network.biases, gradients):
    for index in list(np.ndindex(array.shape))[:: max(1, array.size // 10)]:
        kept = array[index]
        slopes = []
        for nudge in (1e-6, -1e-6):
            array[index] = kept + nudge
            slopes.append(loss_of(network.forward(images)[-1], digits))
        array[index] = kept
        slope = (slopes[0] - slopes[1]) / 2e-6
        assert abs(slope - gradient[index]) < 1e-5, (slope, gradient[index])
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_stop_saves_a_checkpoint_and_the_next_attempt_goes_on(job_env: dict[str, str]) -> None:
    child = start("digits_numpy.py", "--seconds", "60", env=job_env)
    assert child.stdout
    assert "epoch" in child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    printed, _said = child.communicate(timeout=30)
    assert child.returncode == 75
    saved = re.search(r"saved at step (\d+)", printed)
    assert saved
    child = start("digits_numpy.py", "--seconds", "1", "--rate", "0", env=job_env)
    printed, _said = child.communicate(timeout=60)
    assert f"Going on from step {saved[1]}" in printed
    assert child.returncode == 0


def test_each_worker_reports_with_its_rank(job_env: dict[str, str], door: Door, tmp_path: Path) -> None:
    quick = tmp_path / "two_workers.py"
    quick.write_text((EXAMPLES / "two_workers.py").read_text().replace("time.sleep(0.1)", "time.sleep(0)"))
    for rank in ("0", "1"):
        subprocess.run(
            [sys.executable, quick], env={**job_env, "RANK": rank, "WORLD_SIZE": "2"}, check=True, timeout=60
        )
    assert {rank for rank, key in door.series() if key == "train/loss"} == {0, 1}


def test_a_shell_script_reports_by_itself(job_env: dict[str, str], door: Door) -> None:
    folder = os.path.dirname(sys.executable)
    child = start("metrics.sh", "2", env={**job_env, "PATH": f"{folder}:{job_env['PATH']}"})
    printed, said = child.communicate(timeout=60)
    assert (child.returncode, said) == (0, "")
    assert printed.splitlines() == ["step=1 loss=1.66667", "step=2 loss=1.42857"]
    assert door.series()[(0, "sent/loss")] == {1: 1.66667, 2: 1.42857}
    assert {"step": 2, "total": 2} in [request["batch"].get("progress") for request in door.requests]


def test_one_fails_with_a_traceback(job_env: dict[str, str], door: Door) -> None:
    child = start("fails.py", env=job_env)
    _printed, said = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "IndexError" in said
    assert max(door.series()[(0, "train/loss")]) == 3


def test_one_ignores_sigterm(job_env: dict[str, str]) -> None:
    child = start("ignores_sigterm.py", env=job_env)
    assert child.stdout
    assert child.stdout.readline() == "step 0\n"
    child.send_signal(signal.SIGTERM)
    assert any("will not" in child.stdout.readline() for _line in range(3))
    assert child.poll() is None
    child.kill()
    child.communicate()


def test_one_touches_the_memory_it_takes(job_env: dict[str, str]) -> None:
    child = start("eats_memory.py", env=job_env)
    assert child.stdout
    for _line in range(6):
        last = child.stdout.readline()
    status = Path(f"/proc/{child.pid}/status").read_text()
    child.kill()
    child.communicate()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident
    assert int(resident[1]) // 1024 > int(last.split()[1]) - 16


@pytest.mark.parametrize("path", sorted((EXAMPLES / "jobs").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_job_document_carries_the_code_as_it_is(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    assert (document["namespace"], document["runtime"] in RUNTIMES) == ("vision", True)
    files = document.get("code", {}).get("files", {})
    assert files == {name: (EXAMPLES / name).read_text() for name in files}
    words = document["command"].split()[1:]
    assert any(word in files or (EXAMPLES / word).is_file() for word in words)
