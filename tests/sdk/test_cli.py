"""The command `trainhall`, run as people run it, against a portal on loopback."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from conftest import SDK
from portal_stub import TOKEN, Portal

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def portal() -> Iterator[Portal]:
    with Portal() as opened:
        yield opened


@pytest.fixture
def env(portal: Portal, tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SDK),
        "HOME": str(tmp_path),
        "TRAINHALL_URL": portal.url,
        "TRAINHALL_API_TOKEN": TOKEN,
    }


@pytest.fixture
def trainhall(env: dict[str, str], tmp_path: Path) -> Run:
    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        given = more.pop("stdin", None)
        return subprocess.run(
            [sys.executable, "-m", "trainhall", *words],
            env={**env, **more},
            cwd=tmp_path,
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def sent(portal: Portal) -> dict[str, object]:
    return json.loads(portal.requests[-1]["body"])


class TestLogin:
    def test_a_token_is_checked_and_kept_for_its_owner(self, trainhall: Run, portal: Portal, tmp_path: Path) -> None:
        done = trainhall(
            "login", portal.url, "--token-stdin", stdin=TOKEN + "\n", TRAINHALL_URL="", TRAINHALL_API_TOKEN=""
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert f"Logged in to {portal.url} as alice (scope submit)." in done.stdout
        kept = tmp_path / ".config/trainhall/config.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert trainhall("ps", TRAINHALL_URL="", TRAINHALL_API_TOKEN="").returncode == 0

    def test_a_wrong_token_is_not_kept(self, trainhall: Run, portal: Portal, tmp_path: Path) -> None:
        done = trainhall("login", portal.url, "--token-stdin", stdin="th_wrong\n")
        hint = f"Make another on {portal.url}/me/tokens/ and run `trainhall login {portal.url}`."
        assert (done.returncode, done.stderr) == (3, f"trainhall: This token is not known. {hint}\n")
        assert not (tmp_path / ".config").exists()

    def test_without_it_one_is_told_how(self, trainhall: Run) -> None:
        done = trainhall("ps", TRAINHALL_URL="", TRAINHALL_API_TOKEN="")
        assert (done.returncode, done.stderr) == (3, "trainhall: Not logged in. Run `trainhall login URL` first.\n")


class TestSubmit:
    def test_from_options_and_a_command(self, trainhall: Run, portal: Portal) -> None:
        done = trainhall(
            *"submit -n vision --name x --runtime numpy --gpus 2 --workers 3 --gpu-type A100 --time-limit 4h".split(),
            *"--env A=b=c --param lr=0.1 --param run=007 --secret HF_TOKEN --tag t".split(),
            *("--", "python", "train.py", "--lr", "{{lr}}", "two words"),
            HF_TOKEN="hf_1",
        )
        assert (done.returncode, done.stdout) == (0, "b2c3d4f5g0\n")
        assert done.stderr == f"{portal.url}/jobs/b2c3d4f5g0/\nqueued: Waits for 2 GPUs; 1 is free.\n"
        assert sent(portal) == {
            "namespace": "vision",
            "name": "x",
            "runtime": "numpy",
            "time_limit": "4h",
            "resources": {"workers": 3, "gpus": 2, "gpu_type": "A100"},
            "env": {"A": "b=c"},
            "parameters": {"lr": 0.1, "run": "007"},
            "secrets": {"HF_TOKEN": {"value": "hf_1"}},
            "tags": ["t"],
            "command": "python train.py --lr {{lr}} 'two words'",
        }
        assert portal.requests[-1]["headers"]["User-Agent"].startswith("trainhall-cli/")

    def test_volumes_by_name_and_place(self, trainhall: Run, portal: Portal) -> None:
        words = "submit -n vision --volume a --volume b:/b --volume c:ro --volume d:/d:rw -- ls".split()
        assert trainhall(*words).returncode == 0
        assert sent(portal)["volumes"] == [
            {"name": "a"},
            {"name": "b", "path": "/b"},
            {"name": "c", "read_only": True},
            {"name": "d", "path": "/d", "read_only": False},
        ]
        done = trainhall("submit", "-n", "vision", "--volume", "a:/b:/c", "--", "ls")
        assert (done.returncode, "--volume takes NAME" in done.stderr) == (2, True)

    def test_options_change_a_json_document(self, trainhall: Run, portal: Portal, tmp_path: Path) -> None:
        document = {"namespace": "vision", "command": "a", "resources": {"gpus": 1, "workers": 2}}
        (tmp_path / "job.json").write_text(json.dumps(document))
        assert trainhall("submit", "job.json", "--gpus", "4", "--", "b").returncode == 0
        assert sent(portal) == {"namespace": "vision", "command": "b", "resources": {"gpus": 4, "workers": 2}}

    def test_yaml_goes_as_it_is_and_options_beside_it_are_an_error(
        self, trainhall: Run, portal: Portal, tmp_path: Path
    ) -> None:
        (tmp_path / "job.yaml").write_text("namespace: vision\ncommand: python a.py\n")
        assert trainhall("submit", "job.yaml").returncode == 0
        assert portal.requests[-1]["body"] == b"namespace: vision\ncommand: python a.py\n"
        done = trainhall("submit", "job.yaml", "--gpus", "4")
        assert done.returncode == 2
        assert "job.yaml is YAML, which is sent as it is" in done.stderr
        assert len(portal.jobs) == 1

    def test_a_folder_is_packed_without_what_does_not_belong(
        self, trainhall: Run, portal: Portal, tmp_path: Path
    ) -> None:
        code = tmp_path / "code"
        for path in (
            "a.py",
            "lib/b.py",
            ".git/config",
            "env/pyvenv.cfg",
            "env/x.py",
            "__pycache__/a.pyc",
            "data/big.bin",
        ):
            (code / path).parent.mkdir(parents=True, exist_ok=True)
            (code / path).write_text("x")
        for path in ("out/run.log", "keep.log", "sub/out/c.py"):
            (code / path).parent.mkdir(parents=True, exist_ok=True)
            (code / path).write_text("x")
        (code / ".gitignore").write_text("*.log\n/out/\n# a word\n")
        (code / ".trainhallignore").write_text("data/\n!keep.log\n")
        (code / "passwd").symlink_to("/etc/passwd")
        (code / "same.py").symlink_to("a.py")
        done = trainhall("submit", "-n", "vision", "--code", "code", "--", "python a.py")
        assert done.returncode == 0
        assert "code: 7 files" in done.stderr
        assert "left out: passwd is a link" in done.stderr
        ((digest, body),) = portal.uploads.items()
        assert sent(portal)["code"] == {"upload": digest}
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            names = tar.getnames()
        assert names == [".gitignore", ".trainhallignore", "a.py", "keep.log", "lib/b.py", "same.py", "sub/out/c.py"]
        trainhall("submit", "-n", "vision", "--code", "code", "--", "python a.py")
        assert len(portal.uploads) == 1  # equal code is equal bytes

    def test_a_script_goes_inline(self, trainhall: Run, portal: Portal, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("print(1)\n")
        (tmp_path / "job.yaml").write_text("namespace: vision\ncommand: python train.py")
        assert trainhall("submit", "job.yaml", "--code", "train.py").returncode == 0
        assert portal.requests[-1]["body"].decode().endswith('\ncode: {"files": {"train.py": "print(1)\\n"}}\n')
        (tmp_path / "data.bin").write_bytes(b"\xff\xfe")
        done = trainhall("submit", "job.yaml", "--code", "data.bin")
        assert (done.returncode, "not a text file; send its folder" in done.stderr) == (2, True)

    def test_explain_submits_nothing(self, trainhall: Run, portal: Portal) -> None:
        done = trainhall("submit", "-n", "vision", "--explain", "--", "python", "a.py")
        assert done.returncode == 0
        assert done.stdout.startswith("Queued behind 3 jobs.\nWhat would fit: 1 worker × 1 GPU.\n")
        assert not portal.jobs

    def test_what_is_wrong_is_named(self, trainhall: Run) -> None:
        done = trainhall("submit", "-n", "vision")
        assert done.returncode == 3
        assert done.stderr == (
            "trainhall: One field is wrong.\n  command: is required: what to run, such as `python train.py`\n"
        )

    @pytest.mark.parametrize(
        ("end", "code"),
        [
            ({"status": "succeeded"}, 0),
            ({"status": "failed", "exit_code": 7}, 7),
            ({"status": "failed", "workers": [{"exit_code": 0}, {"exit_code": 9}]}, 9),
            ({"status": "failed"}, 1),
            ({"status": "cancelled", "exit_code": 0}, 1),
        ],
    )
    def test_waiting_shows_the_log_and_ends_as_the_job_did(
        self, end: dict[str, object], code: int, trainhall: Run, portal: Portal
    ) -> None:
        portal.script = [
            {"status": "running", "lines": ["first"]},
            {"lines": ["2", "3", "4"]},
            {**end, "lines": ["last"]},
        ]
        done = trainhall("submit", "-n", "vision", "--wait", "--", "x")
        assert done.returncode == code
        assert done.stdout.splitlines() == ["b2c3d4f5g0", "first", "2", "3", "4", "last"]
        assert f"trainhall: b2c3d4f5g0 is {end['status']}" in done.stderr


class TestLooking:
    def test_ps_lists_what_is_going_on(self, trainhall: Run, portal: Portal) -> None:
        portal.add_job(progress={"step": 1, "total": 4})
        portal.add_job(status="succeeded")
        done = trainhall("ps")
        head, row = done.stdout.splitlines()
        assert head.split() == ["ID", "NAME", "STATUS", "NAMESPACE", "USER", "GPUS", "DONE", "AGE", "REASON"]
        assert row.split()[:8] == ["b2c3d4f5g0", "digits", "queued", "vision", "alice", "2", "25", "%"]
        assert row.endswith("Waits for 2 GPUs; 1 is free.")
        assert len(trainhall("ps", "-a").stdout.splitlines()) == 3
        assert [job["id"] for job in json.loads(trainhall("ps", "--mine", "--json").stdout)["results"]] == [
            "b2c3d4f5g0"
        ]

    def test_ps_tells_the_place_of_what_waits(self, trainhall: Run, portal: Portal) -> None:
        portal.add_job(queue_position=3, queue_length=12)
        assert trainhall("ps").stdout.splitlines()[1].endswith("#3 of 12: Waits for 2 GPUs; 1 is free.")

    def test_show_why_gpus_quota(self, trainhall: Run, portal: Portal) -> None:
        job = portal.add_job(workers=[{"name": "worker-0", "phase": "running", "node": "n1", "exit_code": None}])
        assert "status     queued: Waits for 2 GPUs" in trainhall("show", job["id"]).stdout
        assert json.loads(trainhall("show", job["id"], "--json").stdout) == job
        assert trainhall("why", job["id"]).stdout == "queued, number 4 in the queue\nWaits for 2 GPUs; 1 is free.\n"
        assert trainhall("gpus").stdout.splitlines()[1].split()[:4] == ["local", "3", "8", "virtual"]
        assert trainhall("quota", "-n", "vision").stdout.splitlines()[1].split() == ["vision", "8", "no", "limit"]

    def test_why_of_a_failed_job_tells_its_cause_its_line_and_what_to_try(self, trainhall: Run, portal: Portal) -> None:
        evidence = {"seq": 12, "worker": "worker-1", "attempt": 1, "text": "KeyError: 'A'", "shows_it": True}
        cause = {
            "text": "The environment variable A is not set.",
            "owner": "you",
            "owner_text": "yours to fix",
            "evidence": evidence,
            "steps": ["Set A."],
            "others": [{"worker": "worker-0"}],
            "more_others": 2,
        }
        job = portal.add_job(status="failed", cause=cause)
        assert trainhall("why", job["id"]).stdout.splitlines()[1:] == [
            "The environment variable A is not set. (yours to fix)",
            "  line 12 of worker-1: KeyError: 'A'",
            "  - Set A.",
            "  ended after it: worker-0 and 2 more",
        ]

    def test_logs_of_all_of_one_and_of_some(self, trainhall: Run, portal: Portal) -> None:
        job = portal.add_job(workers=[{"name": "worker-0"}, {"name": "worker-1"}])
        portal.say(job, "a", "loss 1", "b", "c", "loss 2")
        portal.say(job, "other", worker="worker-1")
        assert trainhall("logs", job["id"]).stdout.splitlines()[-2:] == ["[worker-0] loss 2", "[worker-1] other"]
        assert trainhall("logs", job["id"], "--worker", "worker-0").stdout.splitlines() == [
            "a",
            "loss 1",
            "b",
            "c",
            "loss 2",
        ]
        assert trainhall("logs", job["id"], "--grep", "^loss", "--worker", "worker-0").stdout == "loss 1\nloss 2\n"
        assert trainhall("logs", job["id"], "--grep", "LOSS [2]", "-i").stdout == "[worker-0] loss 2\n"
        assert trainhall("logs", job["id"], "--grep", "loss [2]", "-F").stdout == ""
        refused = trainhall("logs", job["id"], "--grep", "(")
        assert (refused.returncode, "no regular expression" in refused.stderr) == (3, True)

    def test_a_search_goes_on_where_an_answer_has_no_line(self, trainhall: Run, portal: Portal) -> None:
        job = portal.add_job(workers=[{"name": "worker-0"}])
        portal.say(job, *(f"step {number}" for number in range(20)), "found at last")
        assert trainhall("logs", job["id"], "--grep", "last$").stdout == "found at last\n"

    def test_ctrl_c_detaches_and_says_how_to_stop(self, env: dict[str, str], portal: Portal) -> None:
        job = portal.add_job(status="running")
        portal.say(job, "alive")
        command = [sys.executable, "-m", "trainhall", "logs", "-f", job["id"]]
        child = subprocess.Popen(
            command,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # as a terminal leaves it: what a script starts in the background ignores Ctrl-C
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        assert child.stdout
        assert child.stdout.readline() == "alive\n"
        child.send_signal(signal.SIGINT)
        _out, said = child.communicate(timeout=20)
        assert child.returncode == 130
        assert f"trainhall stop {job['id']}" in said
        assert "cancel_requested_at" not in job


class TestActing:
    def test_stop_hold_release(self, trainhall: Run, portal: Portal) -> None:
        one, two = portal.add_job(), portal.add_job()
        done = trainhall("stop", one["id"], two["id"], "--reason", "wrong data")
        assert done.stdout == f"{one['id']} queued, asked to stop\n{two['id']} queued, asked to stop\n"
        assert one["asked"] == {"reason": "wrong data"}
        assert trainhall("hold", two["id"]).stdout.endswith(", held\n")
        assert "held" not in trainhall("release", two["id"]).stdout

    def test_ux_b14_archive_and_unarchive(self, trainhall: Run, portal: Portal) -> None:
        one, two = portal.add_job(status="succeeded"), portal.add_job(status="failed")
        done = trainhall("archive", one["id"], two["id"])
        assert done.stdout == f"{one['id']} succeeded, archived\n{two['id']} failed, archived\n"
        assert trainhall("unarchive", one["id"]).stdout == f"{one['id']} succeeded\n"
        assert (one["archived_at"], bool(two["archived_at"])) == (None, True)

    def test_a_clone_sets_fields_by_dotted_name_and_says_what_is_different(
        self, trainhall: Run, portal: Portal
    ) -> None:
        words = ["--set", "parameters.lr=1e-4", "--gpus", "4", "--unset", "tags", "--secret", "HF_TOKEN", "--latest"]
        done = trainhall("clone", portal.add_job()["id"], *words, HF_TOKEN="hf_1")
        assert (done.returncode, done.stdout) == (0, "a1b2c3d4f5\n"), done.stderr
        assert done.stderr.startswith("lr: 0.001 -> 0.0001\n")
        changes = {"parameters.lr": 1e-4, "resources.gpus": 4, "tags": None, "secrets.HF_TOKEN": {"value": "hf_1"}}
        assert sent(portal) == {"set": changes, "code": "latest"}
        assert trainhall("clone", "x", "--set", "lr").returncode == 2

    def test_what_the_portal_cannot_do_yet_is_said_in_its_words(self, trainhall: Run, portal: Portal) -> None:
        done = trainhall("usage", "-n", "vision")
        assert (done.returncode, done.stderr) == (3, "trainhall: There is nothing here for you.\n")

    def test_a_portal_that_is_away(self, trainhall: Run) -> None:
        done = trainhall("stop", "x", TRAINHALL_URL="http://127.0.0.1:9")
        assert done.returncode == 3
        assert done.stderr.startswith("trainhall: http://127.0.0.1:9 cannot be reached: ")

    @pytest.mark.parametrize("words", [["fly"], ["logs"], ["ps", "--", "x"], ["log", "a"], ["log", "a=1"], ["stop"]])
    def test_wrong_words_end_with_2(self, words: list[str], trainhall: Run) -> None:
        done = trainhall(*words)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
