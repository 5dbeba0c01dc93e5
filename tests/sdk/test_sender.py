"""The promise of the SDK: points arrive, once; and whatever the portal does, the training does not notice."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Run, lines_of
from door import Door

TRAIN = """
import time, trainhall
for step in range({steps}):
    trainhall.log({{"train/loss": 1 / (step + 1), "lr": 0.1}}, step=step)
    time.sleep({pause})
print("trained")
"""


class TestEverythingIsWell:
    def test_every_point_arrives_with_its_step_group_rank_and_attempt(self, run_python: Run, door: Door) -> None:
        done = run_python(TRAIN.format(steps=50, pause=0.01), RANK="3", TRAINHALL_ATTEMPT="2")
        assert (done.returncode, done.stdout, lines_of(done)) == (0, "trained\n", [])
        assert door.series()[(3, "train/loss")] == {step: 1 / (step + 1) for step in range(50)}
        batch = next(iter(door.batches.values()))
        assert batch["attempt"] == 2
        assert {one["key"]: one["group"] for one in batch["series"]} == {"train/loss": "train", "lr": ""}
        assert door.requests[0]["headers"]["Authorization"] == "Bearer ta_job.1.secret"

    def test_the_first_point_leaves_at_once_and_the_next_when_the_portal_said(
        self, run_python: Run, door: Door
    ) -> None:
        door.interval_ms = 700
        run_python(TRAIN.format(steps=20, pause=0.1))
        assert len(door.batches[door.requests[0]["batch"]["batch"]]["series"][0]["step"]) == 1
        gaps = [later - earlier for earlier, later in zip(door.arrivals, door.arrivals[1:-1], strict=False)]
        assert len(gaps) >= 2
        assert all(gap >= 0.65 for gap in gaps)

    def test_numbers_that_are_not_finite_travel_as_words(self, run_python: Run, door: Door) -> None:
        done = run_python(
            "import trainhall\n"
            "for step, value in enumerate([float('nan'), float('inf'), -float('inf'), 10**400, True]):\n"
            "    trainhall.log(loss=value, step=step)"
        )
        assert lines_of(done) == []
        assert [one["value"] for request in door.requests for one in request["batch"]["series"]][-1][-2:] == [
            "Infinity",
            1.0,
        ]
        found = door.series()[(0, "loss")]
        assert math.isnan(found[0])
        assert [found[1], found[2], found[3], found[4]] == [math.inf, -math.inf, math.inf, 1.0]

    def test_steps_count_by_themselves_and_go_on_after_one_that_was_given(self, run_python: Run, door: Door) -> None:
        run_python("import trainhall\nfor step in (None, None, 7, None): trainhall.log({'a': 1}, step=step)")
        assert sorted(door.series()[(0, "a")]) == [0, 1, 7, 8]

    def test_epoch_progress_nested_values_and_summary(self, run_python: Run, door: Door) -> None:
        run_python(
            "import trainhall\n"
            "trainhall.log({'val': {'acc': 0.5}}, step=4, epoch=1.5, lr='0.25')\n"
            "trainhall.progress(4, 10, epoch=1.5)\n"
            "trainhall.summary['best'] = 0.75"
        )
        found = door.series()
        assert {key: points[4] for (_rank, key), points in found.items()} == {
            "val/acc": 0.5,
            "epoch": 1.5,
            "lr": 0.25,
            "summary/best": 0.75,
        }
        told = [request["batch"]["progress"] for request in door.requests if "progress" in request["batch"]]
        assert told[-1] == {"step": 4, "total": 10, "epoch": 1.5}

    def test_a_large_batch_is_compressed(self, run_python: Run, door: Door) -> None:
        run_python("import trainhall\nfor step in range(5000): trainhall.log({'a': step}, step=step)")
        assert any(request["headers"].get("Content-Encoding") == "gzip" for request in door.requests)
        assert len(door.series()[(0, "a")]) == 5000


class TestThePortalIsNot:
    @pytest.mark.parametrize("trouble", [500, 429, 404, 302, "garbage", "slow"])
    def test_the_training_goes_on_and_the_points_arrive_afterwards_once(
        self, trouble: str | int, job_env: dict[str, str], door: Door, tmp_path: Path
    ) -> None:
        door.answer = trouble
        program = (
            TRAIN.format(steps=60, pause=0.01) + "\nwhile not open('go').read(): time.sleep(0.05)\ntrainhall.finish(20)"
        )
        (tmp_path / "go").write_text("")
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            env=job_env,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout
        assert child.stdout.readline() == "trained\n"
        door.wait_for(1)
        door.answer = "ok"
        (tmp_path / "go").write_text("go")
        _out, said = child.communicate(timeout=60)
        assert (child.returncode, "Traceback" in said) == (0, False)
        assert door.series()[(0, "train/loss")] == {step: 1 / (step + 1) for step in range(60)}
        sent = [point for batch in door.batches.values() for one in batch["series"] for point in one["step"]]
        assert len(sent) == 120  # nothing in two batches of different ids
        assert len(door.requests) > len(door.batches)  # the first one was sent again

    def test_nobody_listens(self, run_python: Run, tmp_path: Path) -> None:
        began = time.monotonic()
        done = run_python(TRAIN.format(steps=30, pause=0.01), TRAINHALL_URL="http://127.0.0.1:9")
        assert (done.returncode, done.stdout) == (0, "trained\n")
        assert time.monotonic() - began < 20
        assert any("60 points could not be sent; they are kept in" in line for line in lines_of(done))
        assert list((tmp_path / "out" / ".trainhall-spool").rglob("*.batch"))

    @pytest.mark.parametrize("url", ["http://no-such-host.invalid", "ftp://portal", "nonsense", "http://[::1"])
    def test_an_address_that_leads_nowhere(self, url: str, run_python: Run) -> None:
        done = run_python(TRAIN.format(steps=5, pause=0), TRAINHALL_URL=url)
        assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (0, "trained\n", False)

    def test_a_token_that_cannot_be_read(self, run_python: Run) -> None:
        done = run_python(TRAIN.format(steps=5, pause=0), TRAINHALL_TOKEN_FILE="/no/such/file")
        assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (0, "trained\n", False)

    @pytest.mark.parametrize("status", [400, 401, 403, 413])
    def test_a_final_no_is_said_once_and_the_loss_is_counted(self, status: int, run_python: Run, door: Door) -> None:
        door.answer = status
        door.interval_ms = 50
        done = run_python(TRAIN.format(steps=80, pause=0.01))
        assert (done.returncode, done.stdout) == (0, "trained\n")
        first, last = lines_of(done)
        assert first == f"trainhall: the portal refused points for good: {status} The door says no."
        assert last == "trainhall: 160 points were lost and 0 refused."

    @pytest.mark.parametrize("token", ["“foreign”\x07".encode(), b"\xff\xfe", b""])
    def test_what_is_no_token_is_told_in_a_line_and_not_shown(
        self, token: bytes, run_python: Run, door: Door, tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_bytes(token)
        done = run_python(TRAIN.format(steps=300, pause=0.01))
        assert (done.returncode, done.stdout) == (0, "trained\n")
        lines = lines_of(done)
        assert f"trainhall: {tmp_path}/token holds no token of a job; points wait." in lines
        assert "foreign" not in done.stderr and "Traceback" not in done.stderr
        assert door.requests == []

    def test_memory_is_bounded_and_the_disk_takes_the_rest(
        self, job_env: dict[str, str], door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from trainhall import sender
        from trainhall.place import find_place

        monkeypatch.setattr(sender, "MEMORY_BOUND", 20_000)
        monkeypatch.setenv("TRAINHALL_OUTPUT_DIR", job_env["TRAINHALL_OUTPUT_DIR"])
        place = find_place(job_env)
        assert place is not None
        door.answer = 503
        one = sender.Sender(place)
        one.add((0.0, 0, [("a", 0.0)]))
        door.wait_for(1)
        for step in range(1, 20_001):
            one.add((float(step), step, [("a", step / 7)]))
        deadline = time.monotonic() + 20
        while len(one.records) >= sender.POINTS_PER_BATCH and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(tmp_path.rglob("*.batch"))
        door.answer = "ok"
        one.finish(20)
        assert len(door.series()[(0, "a")]) == 20_001
        assert not list(tmp_path.rglob("*.batch"))
        assert (one.lost, (tmp_path / "out" / ".trainhall-spool").exists()) == (0, False)


class TestProcesses:
    def test_a_forked_child_reports_its_own_points_and_not_its_parents(self, run_python: Run, door: Door) -> None:
        done = run_python(
            "import os, trainhall\n"
            "for step in range(100): trainhall.log({'parent': step}, step=step)\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    for step in range(100): trainhall.log({'child': step}, step=step)\n"
            "    trainhall.finish()\n"
            "    os._exit(0)\n"
            "print(os.waitpid(child, 0)[1])"
        )
        assert (done.stdout, lines_of(done)) == ("0\n", [])
        sent = [
            key for batch in door.batches.values() for one in batch["series"] for key in [one["key"]] * len(one["step"])
        ]
        assert (sent.count("parent"), sent.count("child")) == (100, 100)

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_children_of_multiprocessing_lose_nothing_at_their_end(
        self, method: str, tmp_path: Path, job_env: dict[str, str], door: Door
    ) -> None:
        (tmp_path / "program.py").write_text(
            "import multiprocessing, trainhall\n"
            "def work(number):\n"
            "    for step in range(50): trainhall.log({f'worker{number}': step}, step=step)\n"
            "if __name__ == '__main__':\n"
            "    trainhall.log({'main': 1})\n"
            f"    context = multiprocessing.get_context({method!r})\n"
            "    workers = [context.Process(target=work, args=(number,)) for number in range(2)]\n"
            "    [worker.start() for worker in workers]\n"
            "    [worker.join() for worker in workers]\n"
        )
        subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=job_env, timeout=60, check=True)
        assert {key: len(points) for (_rank, key), points in door.series().items()} == {
            "main": 1,
            "worker0": 50,
            "worker1": 50,
        }

    def test_many_threads_may_log(self, run_python: Run, door: Door) -> None:
        run_python(
            "import threading, trainhall\n"
            "def work(name):\n"
            "    for step in range(500): trainhall.log({name: step}, step=step)\n"
            "threads = [threading.Thread(target=work, args=('t%d' % number,)) for number in range(8)]\n"
            "[thread.start() for thread in threads]; [thread.join() for thread in threads]"
        )
        assert {len(points) for points in door.series().values()} == {500}
        assert len(door.series()) == 8

    def test_the_users_own_handler_of_sigterm_stays_and_its_last_words_arrive(
        self, job_env: dict[str, str], door: Door, tmp_path: Path
    ) -> None:
        program = (
            "import signal, sys, time, trainhall\n"
            "def stop(*_):\n"
            "    trainhall.log({'last': 1}, step=1)\n"
            "    sys.exit(75)\n"
            "signal.signal(signal.SIGTERM, stop)\n"
            "trainhall.init()\n"
            "trainhall.log({'first': 1}, step=0)\n"
            "assert signal.getsignal(signal.SIGTERM) is stop\n"
            "print('ready', flush=True)\n"
            "while True: trainhall.log({'busy': 1}, step=1)\n"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", program], env=job_env, cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=30)
        assert child.returncode == 75
        assert (0, "last") in door.series()

    def test_a_coming_stop_is_known_and_hurries_the_points(
        self, job_env: dict[str, str], door: Door, tmp_path: Path
    ) -> None:
        door.interval_ms = 10_000
        (tmp_path / "notice").write_text("1999999999.5")
        program = (
            "import time, trainhall\n"
            "for step in range(30): trainhall.log({'a': 1}, step=step); time.sleep(0.1)\n"
            "print(trainhall.notice(), flush=True)\n"
            "time.sleep(60)"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", program], env=job_env, cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout
        assert child.stdout.readline() == "1999999999.5\n"
        time.sleep(1)
        child.kill()  # nothing can be done at a SIGKILL: what has arrived was sent before
        child.communicate()
        assert len(door.series()[(0, "a")]) == 30


class TestOutsideAJob:
    def test_it_says_so_once_and_does_nothing(self, outside: dict[str, str], tmp_path: Path) -> None:
        code = (
            "import trainhall\nfor step in range(3): trainhall.log(a=1)\ntrainhall.progress(1, 2)\ntrainhall.finish()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env=outside, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stderr == "trainhall: not inside a job, nothing is reported.\n"
        assert not (tmp_path / "trainhall.jsonl").exists()

    def test_init_asks_for_lines_of_json(self, outside: dict[str, str], tmp_path: Path) -> None:
        code = (
            "import trainhall\ntrainhall.init({'lr': 0.1})\ntrainhall.log(a=float('nan'), step=3)\ntrainhall.log(b=2)"
        )
        subprocess.run([sys.executable, "-c", code], env=outside, cwd=tmp_path, check=True, capture_output=True)
        lines = (tmp_path / "trainhall.jsonl").read_text().splitlines()
        assert lines[0] == '{"config": {"lr": 0.1}}'
        assert '"a": "NaN"' in lines[1]
        assert '"step": 4' in lines[2]


@pytest.mark.parametrize(
    "call",
    [
        "trainhall.log({'a': object()})",
        "trainhall.log({'a': 'many'}, step=1)",
        "trainhall.log(7)",
        "trainhall.log({'a': 1}, step='x')",
        "trainhall.log({'a': 1}, step=float('nan'))",
        "trainhall.log({'\\ud800': 1}, step=1)",
        "trainhall.log({None: 1, 3: 2}, step=-5)",
        "trainhall.log({'a': Bad()})",
        "trainhall.progress('x', None)",
        "trainhall.watch(7); trainhall.log({'a': 1})",
        "trainhall.log_weights({'w': 'text', 'v': object()})",
        "trainhall.init(object())",
        "trainhall.summary['x'] = []",
    ],
)
def test_no_call_ever_raises_and_good_points_beside_it_arrive(call: str, run_python: Run, door: Door) -> None:
    done = run_python(
        "import trainhall\n"
        "class Bad:\n"
        "    def __float__(self): raise KeyError('bad')\n"
        f"{call}\ntrainhall.log({{'good': 1}}, step=9)\nprint('on')"
    )
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (0, "on\n", False)
    assert door.series()[(0, "good")] == {9: 1.0}
