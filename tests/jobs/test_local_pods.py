"""What happens to a pod of the local cluster: real programs that succeed, fail, hang, eat memory and write logs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cluster.local.layout import read_json
from jobs.cluster.manifests import render
from jobs.cluster.port import ObjectRef
from jobs.exceptions import ObjectGone
from jobs.states import JobStatus, Reason
from tests.jobs.yard import Yard, rendering

SAVES_ON_SIGTERM = """
import os, signal, sys, time
def save(number, frame):
    deadline = float(open(os.environ["TRAINHALL_NOTICE_FILE"]).read())
    print("notice", 0 < deadline - time.time() <= 20)
    time.sleep(0.3)
    open(os.environ["TRAINHALL_CHECKPOINT_DIR"] + "/last", "w").write("step 7")
    print("saved")
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
print("ready")
while True:
    time.sleep(0.05)
"""
IGNORES_SIGTERM = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path)
    yield yard
    yard.close()


def python(program: str) -> list[str]:
    return ["python", "-c", program]


class TestEnds:
    def test_exit_0_is_success(self, yard: Yard) -> None:
        ended = yard.run("echo hello")

        assert (ended.status, ended.reason, ended.exit_code) == (JobStatus.SUCCEEDED, Reason.COMPLETED, 0)
        assert ended.workers[0].started_at and ended.workers[0].finished_at
        assert ended.pods_gone

    def test_another_exit_code_is_a_failure_with_the_last_words(self, yard: Yard) -> None:
        ended = yard.run("echo working; echo 'ValueError: loss is NaN' >&2; exit 3")

        assert (ended.status, ended.reason, ended.exit_code) == (JobStatus.FAILED, Reason.NON_ZERO_EXIT, 3)
        assert ended.text == "worker-0 ended with exit code 3. ValueError: loss is NaN"
        assert ended.workers[0].message.endswith("ValueError: loss is NaN")

    @pytest.mark.parametrize("code", [2, 75])
    def test_codes_with_a_rule_of_their_own_are_told(self, yard: Yard, code: int) -> None:
        ref = yard.start(f"exit {code}")
        assert yard.end_of(ref).exit_code == code

        job, _pods = yard.raw(ref)
        assert job is not None
        [_target, failed] = job["status"]["conditions"]
        assert failed["reason"] == "PodFailurePolicy"
        assert (
            f"failed with exit code {code} matching FailJob rule at index {3 if code == 2 else 2}" in failed["message"]
        )

    def test_a_signal_is_named(self, yard: Yard) -> None:
        ended = yard.run("kill -SEGV $$")

        assert (ended.reason, ended.exit_code, ended.workers[0].signal) == (Reason.KILLED_BY_SIGNAL, 139, 11)
        assert "SIGSEGV" in ended.text

    def test_a_command_that_does_not_exist(self, yard: Yard) -> None:
        assert yard.run("trian.py").reason == Reason.COMMAND_NOT_FOUND
        assert yard.run("", argv=["trian.py"]).reason == Reason.COMMAND_NOT_FOUND

    def test_a_variable_that_no_process_can_have(self, yard: Yard) -> None:
        ended = yard.run("true", env={"BROKEN": "a\0b"})

        assert (ended.status, ended.reason) == (JobStatus.FAILED, Reason.COMMAND_NOT_FOUND)
        assert "Invalid argument" in ended.text

    def test_setup_that_fails_ends_the_job_before_main(self, yard: Yard) -> None:
        ref = yard.create("echo main")
        (yard.folder(ref).pod("worker-0").path / "refuse-setup").touch()
        yard.cluster.release(ref)

        ended = yard.end_of(ref)

        assert (ended.status, ended.reason, ended.exit_code) == (JobStatus.FAILED, Reason.SETUP_FAILED, 1)
        assert "the archive is broken" in ended.text
        assert "main" not in yard.text(ref).split()

    def test_a_secret_of_the_namespace_comes_like_one_that_was_typed(self, yard: Yard) -> None:
        from jobs.spec import SecretRef

        named = (SecretRef("WANDB_API_KEY", from_secret="team-keys", key="wandb"),)
        script = 'test "$WANDB_API_KEY" = cadmium'
        ended = yard.run(script, secrets=named, secret_env={"WANDB_API_KEY": "cadmium"}, pull_config='{"auths": {}}')

        assert ended.status == JobStatus.SUCCEEDED

    def test_what_it_leaves_running_is_ended(self, yard: Yard) -> None:
        ref = yard.start("sleep 61 & setsid sleep 62 & (setsid sh -c 'sleep 63 & sleep 64' &) ; sleep 0.3; echo done")

        assert yard.end_of(ref).status == JobStatus.SUCCEEDED
        assert yard.processes_of(ref) == []


class TestMemory:
    def test_over_the_limit_is_out_of_memory(self, yard: Yard) -> None:
        eat = "import time\nkept = []\nwhile True:\n    kept.append(bytearray(8 << 20)); time.sleep(0.02)"
        ended = yard.run("", argv=python(eat), memory_bytes=64 << 20)

        assert (ended.status, ended.reason, ended.exit_code) == (JobStatus.FAILED, Reason.OUT_OF_MEMORY, 137)
        assert "64Mi" in ended.text

    def test_processes_count_together(self, yard: Yard) -> None:
        part = "python -c 'import time; kept = bytearray(48 << 20); time.sleep(20)'"
        ended = yard.run(f"{part} & setsid {part} & wait", memory_bytes=80 << 20)

        assert ended.reason == Reason.OUT_OF_MEMORY

    def test_within_the_limit_is_fine(self, yard: Yard) -> None:
        ended = yard.run(
            "", argv=python("import time; kept = bytearray(32 << 20); time.sleep(0.4)"), memory_bytes=128 << 20
        )

        assert ended.status == JobStatus.SUCCEEDED


class TestTimeLimit:
    def test_it_ends_the_job(self, yard: Yard) -> None:
        ended = yard.run("sleep 60", time_limit=1, workers=2)

        assert (ended.status, ended.reason) == (JobStatus.FAILED, Reason.TIME_LIMIT)
        assert "1 s" in ended.text

    def test_a_program_that_ignores_it_gets_its_grace_and_no_more(self, yard: Yard) -> None:
        ended = yard.run(IGNORES_SIGTERM, time_limit=1, stop_grace=1)

        assert ended.reason == Reason.TIME_LIMIT
        assert ended.workers[0].signal == 9


class TestStops:
    def test_a_program_saves_in_its_grace(self, yard: Yard) -> None:
        ref = yard.start("", argv=python(SAVES_ON_SIGTERM), stop_grace=20)
        yard.wait_for_line(ref, "ready")

        yard.cluster.suspend(ref)
        ended = yard.end_of(ref)

        assert yard.text(ref).splitlines() == ["ready", "notice True", "saved"]
        assert (ended.status, ended.reason, ended.exit_code) == (None, Reason.STOPPED, 75)
        job, _pods = yard.raw(ref)
        assert job is not None
        assert [condition["type"] for condition in job["status"]["conditions"]] == ["Suspended"]

    def test_one_that_ignores_it_is_killed_at_the_deadline(self, yard: Yard) -> None:
        ref = yard.start(IGNORES_SIGTERM, stop_grace=1)
        yard.wait_for_line(ref, "ready")

        yard.cluster.suspend(ref)
        assert not yard.look(ref).pods_gone
        ended = yard.end_of(ref)

        assert ended.workers[0].signal == 9
        asked, killed = (read_json(path) for path in (yard.folder(ref).stop, yard.folder(ref).pod("worker-0").exit))
        assert 1 <= killed["finished_at"] - asked["at"] < 10

    def test_stop_now_does_not_wait_for_the_grace(self, yard: Yard) -> None:
        ref = yard.start(IGNORES_SIGTERM, stop_grace=300)
        yard.wait_for_line(ref, "ready")
        yard.cluster.suspend(ref)

        yard.cluster.kill(ref, person=None)

        assert yard.end_of(ref).workers[0].signal == 9
        assert yard.processes_of(ref) == []

    def test_one_that_finished_before_the_stop_has_succeeded(self, yard: Yard) -> None:
        ref = yard.start("true")
        yard.end_of(ref)

        yard.cluster.suspend(ref)

        assert yard.look(ref).status == JobStatus.SUCCEEDED

    def test_stopping_twice_keeps_the_first_deadline(self, yard: Yard) -> None:
        ref = yard.start(IGNORES_SIGTERM, stop_grace=1)
        yard.cluster.suspend(ref)
        deadline = read_json(yard.folder(ref).stop)["deadline"]
        time.sleep(0.05)

        yard.another().suspend(ref)

        assert read_json(yard.folder(ref).stop)["deadline"] == deadline
        assert yard.events(ref).count("stop") == 1
        yard.end_of(ref)


class TestGangs:
    def test_a_rank_that_fails_ends_the_others_and_is_to_blame(self, yard: Yard) -> None:
        ref = yard.start('echo ready; if [ "$RANK" = 1 ]; then sleep 0.3; exit 7; fi; sleep 60', workers=3)

        ended = yard.end_of(ref)

        assert (ended.status, ended.reason, ended.exit_code) == (JobStatus.FAILED, Reason.NON_ZERO_EXIT, 7)
        assert ended.text.startswith("worker-1 ")
        assert [worker.signal for worker in ended.workers] == [15, None, 15]

    def test_it_runs_when_all_run_and_succeeds_when_all_have(self, yard: Yard) -> None:
        ref = yard.start('[ "$RANK" = 0 ] || sleep 0.5', workers=2)

        seen = []
        while not seen or not seen[-1].ended:
            seen.append(yard.look(ref))
            time.sleep(0.02)

        assert list(dict.fromkeys(look.status for look in seen)) == [
            JobStatus.STARTING,
            JobStatus.RUNNING,
            JobStatus.SUCCEEDED,
        ]

    def test_ranks_know_each_other(self, yard: Yard) -> None:
        ref = yard.start("echo $RANK/$WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT", workers=2)
        yard.end_of(ref)

        port = read_json(yard.folder(ref).released)["ports"][f"{ref.name}-0"]["29500"]
        assert yard.text(ref, "worker-0") == f"0/2 at 127.0.0.1:{port}"
        assert yard.text(ref, "worker-1") == f"1/2 at 127.0.0.1:{port}"

    def test_torchrun_finds_its_variables(self, yard: Yard) -> None:
        ref = yard.start(
            "echo $PET_NNODES $PET_NODE_RANK $PET_MASTER_ADDR:$PET_MASTER_PORT", workers=2, launcher="torchrun"
        )
        yard.end_of(ref)

        port = read_json(yard.folder(ref).released)["ports"][f"{ref.name}-0"]["29500"]
        assert yard.text(ref, "worker-1") == f"2 1 127.0.0.1:{port}"


class TestSurroundings:
    def test_the_environment_is_the_manifests_and_nothing_of_ours(
        self, yard: Yard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TRAINHALL_SECRET_KEY", "canary")
        dump = "import json, os; print(json.dumps(dict(os.environ)))"
        ref = yard.start("", argv=python(dump), env={"GREETING": "100 $(USER) $$", "TRAINHALL_JOB_ID": "forged"})
        yard.end_of(ref)

        environment = json.loads(yard.text(ref))
        assert "TRAINHALL_SECRET_KEY" not in environment
        assert environment["GREETING"] == "100 $(USER) $$"
        assert environment["TRAINHALL_JOB_ID"] != "forged"
        own = f"{environment['HOME']}/.packages"  # what the job installs stays with it
        assert environment["PATH"].split(":")[:2] == [f"{own}/bin", str(Path(sys.executable).parent)]
        assert environment["PIP_TARGET"] == own and environment["PYTHONPATH"].split(":")[-1] == own
        assert environment["HOME"] == environment["TRAINHALL_WORKSPACE"]
        assert environment["LANG"] == "C.UTF-8"

    def test_paths_are_real_and_the_token_is_there(self, yard: Yard) -> None:
        ref = yard.start(
            'cat "$TRAINHALL_TOKEN_FILE"; echo; pwd; '
            'for dir in "$TRAINHALL_OUTPUT_DIR" "$TMPDIR" "$HOME"; do test -d "$dir" && echo yes; done'
        )
        yard.end_of(ref)

        token, here, *rest = yard.text(ref).splitlines()
        assert token == "ta_canary-token"
        assert here == str(yard.folder(ref).pod("worker-0").volumes / "workspace")
        assert rest == ["yes"] * 3

    def test_a_socket_has_room_in_tmp(self, yard: Yard) -> None:
        bind = "socket.socket(socket.AF_UNIX).bind(tmp + '/' + 'x' * 40)"
        ref = yard.start("", argv=python(f"import os, socket; tmp = os.environ['TMPDIR']; print(tmp); {bind}"))
        yard.end_of(ref)

        assert len(yard.text(ref)) <= 60
        assert (yard.folder(ref).pod("worker-0").volumes / "tmp" / ("x" * 40)).is_socket()
        assert not os.path.lexists(yard.text(ref)), "the short link goes with the pod"

    def test_what_a_shell_would_expand_arrives_as_written(self, yard: Yard) -> None:
        ref = yard.start("""x=$(echo a$((1+2))); echo "$x" '$(RANK)' "$$" | sed 's/[0-9]\\{2,\\}/pid/'""")
        yard.end_of(ref)

        assert yard.text(ref) == "a3 $(RANK) pid"

    def test_the_next_attempt_finds_the_checkpoints(self, yard: Yard) -> None:
        first = yard.start('echo 7 > "$TRAINHALL_CHECKPOINT_DIR/step"', job_id="7f3k2p9m4x", attempt=1)
        yard.end_of(first)
        yard.cluster.delete(first, person=None)

        second = yard.start('cat "$TRAINHALL_CHECKPOINT_DIR/step"', job_id="7f3k2p9m4x", attempt=2)
        yard.end_of(second)
        assert yard.text(second) == "7"

    def test_typed_secrets_arrive_as_variables(self, yard: Yard) -> None:
        from jobs.spec import SecretRef

        job = rendering("echo $HF_TOKEN", secret_env={"HF_TOKEN": "hf_$(USER)$$"}, secrets=(SecretRef("HF_TOKEN"),))
        ref = yard.create_objects(render(job))
        yard.cluster.release(ref)
        yard.end_of(ref)

        assert yard.text(ref) == "hf_$(USER)$$"

    def test_virtual_gpus_are_counted_out(self, tmp_path: Path) -> None:
        yard = Yard(tmp_path, gpus=8)
        ref = yard.start("echo $TRAINHALL_VIRTUAL_GPUS [$CUDA_VISIBLE_DEVICES]", gpus=2)
        yard.end_of(ref)

        assert yard.text(ref) == "2 []"


class TestLogs:
    def test_any_bytes_become_text(self, yard: Yard) -> None:
        program = r"import sys; sys.stdout.buffer.write(b'caf\xe9 \x00 \xed\xa0\x80\nnext\n\xe2\x82')"
        ref = yard.start("", argv=python(program))
        yard.end_of(ref)

        assert [line.text for line in yard.lines(ref)] == ["caf� ␀ ���", "next", "�"]
        "".join(line.text for line in yard.lines(ref)).encode()

    def test_a_glyph_cut_by_the_pipe_survives(self, yard: Yard) -> None:
        program = r"import os, time" "\nfor byte in '€ok\\n'.encode(): os.write(1, bytes([byte])); time.sleep(0.02)"
        ref = yard.start("", argv=python(program))
        yard.end_of(ref)

        assert yard.text(ref) == "€ok"

    def test_stdout_and_stderr_keep_their_order(self, yard: Yard) -> None:
        ref = yard.start("echo 1; echo 2 >&2; echo 3")
        yard.end_of(ref)

        assert [(line.number, line.text) for line in yard.lines(ref)] == [(1, "1"), (2, "2"), (3, "3")]

    def test_a_line_of_a_megabyte_is_cut_with_a_mark(self, yard: Yard) -> None:
        ref = yard.start("", argv=python("print('x' * 2**20); print('after')"))
        yard.end_of(ref)

        long, after = yard.lines(ref)
        assert after.text == "after"
        assert long.text == "x" * 65536 + f" … [{2**20 - 65536} more bytes of this line were cut]"

    def test_a_progress_bar_does_not_grow_without_bound(self, yard: Yard) -> None:
        bar = (
            "import time\nfor step in range(100): print(f'\\r{step}%', end='', flush=True); time.sleep(0.01)\n"
            "print('\\r100%')"
        )
        ref = yard.start("", argv=python(bar))
        yard.end_of(ref)

        lines = yard.lines(ref)
        assert 2 <= len(lines) <= 20, "one state each 200 ms, for a second or a bit more"
        assert (lines[-1].text, lines[-1].overwritten) == ("100%", False)
        assert all(line.overwritten for line in lines[:-1])

    def test_a_reader_goes_on_where_it_was(self, yard: Yard) -> None:
        ref = yard.start("", argv=python("for n in range(1, 2001): print(n)"))
        yard.end_of(ref)
        other = yard.another()  # has read nothing yet

        numbers: list[int] = []
        while chunk := list(yard.cluster.logs(ref, "worker-0", after=len(numbers), limit=300)):
            assert [line.number for line in chunk] == [int(line.text) for line in chunk]
            numbers += [line.number for line in chunk]
        assert numbers == list(range(1, 2001))
        for after in (0, 255, 256, 257, 1999):
            assert next(other.logs(ref, "worker-0", after=after, limit=1)).number == after + 1
        assert list(other.logs(ref, "worker-0", after=2000, limit=1)) == []

    def test_a_flood_is_capped_and_its_last_words_are_kept(self, yard: Yard) -> None:
        ref = yard.start("", argv=python("for n in range(60000): print('flood', n)\nprint('the reason')"))
        yard.end_of(ref)

        lines = yard.lines(ref)
        assert lines[-1].text == "the reason"
        assert [line.number for line in lines] == list(range(1, len(lines) + 1))
        dropped = sum(int(line.text[1:].split()[0]) for line in lines if line.text.startswith("["))
        kept = sum(line.text.startswith("flood") for line in lines)
        assert dropped > 0 and kept + dropped == 60000

    def test_a_log_that_is_gone_is_said_to_be(self, yard: Yard) -> None:
        ref = yard.start("echo hello")
        yard.end_of(ref)
        yard.cluster.delete(ref, person=None)

        with pytest.raises(ObjectGone):
            yard.lines(ref)

    def test_a_pod_that_has_not_begun_has_no_lines(self, yard: Yard) -> None:
        assert yard.lines(yard.create()) == []


def test_real_devices_are_never_shared() -> None:
    from jobs.cluster.local.devices import Devices, assign

    machine = Devices(count=4, product="V100", is_virtual=False)
    first = assign(machine, asked={"chief-0": 0, "worker-0": 1, "worker-1": 2}, others=())

    assert {name: env["CUDA_VISIBLE_DEVICES"] for name, env in (first or {}).items()} == {
        "chief-0": "",
        "worker-0": "0",
        "worker-1": "1,2",
    }
    assert assign(machine, asked={"worker-0": 0}, others=()) == {"worker-0": {"CUDA_VISIBLE_DEVICES": ""}}


def test_real_devices_of_a_running_pod_are_taken(yard: Yard) -> None:
    from jobs.cluster.local.devices import Devices

    yard.cluster._devices = Devices(count=3, product="V100", is_virtual=False)  # this machine may have none
    first, second = (yard.create("echo $CUDA_VISIBLE_DEVICES; sleep 60", gpus=gpus) for gpus in (2, 1))
    for ref in (first, second):
        yard.cluster.release(ref)
        yard.wait(lambda ref=ref: yard.text(ref))

    assert (yard.text(first), yard.text(second)) == ("0,1", "2")
    _no_room_for_a_third(yard)


def _no_room_for_a_third(yard: Yard) -> None:
    from jobs.exceptions import ClusterUnavailable

    third: ObjectRef = yard.create("true", gpus=1)
    with pytest.raises(ClusterUnavailable):
        yard.cluster.release(third)
    assert "release" not in yard.events(third)
