"""The local cluster's objects: created once, released once, deleted for good, whoever dies in between."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.cluster.local import journal, spawn
from jobs.cluster.local.layout import ObjectFolder, read_json, write_atomically
from jobs.cluster.manifests import render
from jobs.cluster.observed import free_capacity
from jobs.cluster.port import ObjectRef
from jobs.exceptions import ClusterRefuses, ObjectDiffers, ObjectGone
from jobs.states import JobStatus, Reason
from tests.jobs.yard import NAMESPACE, Yard, rendering

REPOSITORY = Path(__file__).resolve().parents[2]
SLEEP = "echo ready; sleep 60"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path)
    yield yard
    yard.close()


class TestCreation:
    def test_nothing_runs_before_the_release(self, yard: Yard) -> None:
        ref = yard.create()

        job, pods = yard.raw(ref)
        assert job is not None
        assert job["spec"]["suspend"] is True
        assert pods == []
        assert yard.look(ref).status == JobStatus.STARTING
        assert not yard.look(ref).ended

    def test_a_repeated_creation_finds_the_first(self, yard: Yard) -> None:
        objects = render(rendering())

        first = yard.cluster.create(objects, person=None)

        assert yard.another().create(objects, person=None) == first
        assert yard.events(ObjectRef(NAMESPACE, objects.leader["metadata"]["name"])) == ["create"]

    def test_a_repeated_launch_renews_the_signed_url(self, yard: Yard) -> None:
        ref = yard.create_objects(render(rendering(code_url="http://portal/?expires=1", code_sha256="ab")))

        yard.create_objects(render(rendering(code_url="http://portal/?expires=2", code_sha256="ab")))

        assert read_json(yard.folder(ref).secret)["stringData"]["code-url"] == "http://portal/?expires=2"

    def test_another_job_of_that_name_is_refused(self, yard: Yard) -> None:
        yard.create("echo one", job_id="7f3k2p9m4x")

        with pytest.raises(ObjectDiffers):
            yard.create("echo two", job_id="7f3k2p9m4x")

    def test_eight_processes_create_exactly_one(self, yard: Yard) -> None:
        objects = render(rendering())
        with multiprocessing.get_context("fork").Pool(8) as pool:
            uids = pool.starmap(_create, [(yard.another(), objects)] * 16)

        assert len(set(uids)) == 1
        assert yard.events(ObjectRef(NAMESPACE, objects.leader["metadata"]["name"])) == ["create"]

    def test_a_name_that_climbs_out_is_refused(self, yard: Yard) -> None:
        with pytest.raises(ClusterRefuses):
            yard.cluster.create(render(rendering(kubernetes_namespace="../up")), person=None)

    @pytest.mark.parametrize("place", ["local.create.before_rename", "local.create.after_rename"])
    def test_a_crash_while_creating_is_repaired_by_trying_again(self, yard: Yard, tmp_path: Path, place: str) -> None:
        objects = render(rendering())

        assert _dies_at(place, tmp_path, lambda: yard.cluster.create(objects, person=None))
        ref = yard.create_objects(objects)

        assert yard.events(ref) == ["create"]
        assert not [name for name in os.listdir(yard.root / NAMESPACE) if name.startswith(".new")], (
            "no secret lies about"
        )


class TestSecrets:
    def test_they_are_in_no_file_that_others_can_read(self, yard: Yard) -> None:
        job = rendering("sleep 60", secret_env={"HF_TOKEN": "canary-value"})
        ref = yard.create_objects(render(job))
        yard.cluster.release(ref)
        yard.wait(lambda: yard.look(ref).status == JobStatus.RUNNING)

        holding = _files_holding(yard.root, b"canary")
        assert {path.name for path in holding} == {"secret.json", "token"}
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holding)
        assert stat.S_IMODE(yard.folder(ref).path.stat().st_mode) == 0o700

    def test_they_go_with_the_object(self, yard: Yard) -> None:
        ref = yard.start(secret_env={"HF_TOKEN": "canary-value"})
        yard.end_of(ref)

        yard.cluster.delete(ref, person=None)

        assert _files_holding(yard.root, b"canary") == []


class TestRelease:
    def test_twice_starts_each_pod_once(self, yard: Yard) -> None:
        ref = yard.create("echo once; sleep 0.3", workers=2)

        yard.cluster.release(ref)
        yard.another().release(ref)
        yard.end_of(ref)

        assert yard.events(ref).count("release") == 1
        assert yard.events(ref).count("start") == 2
        assert yard.text(ref) == "once"

    @pytest.mark.parametrize("place", ["local.release.after_marker", "local.release.after_first_runner"])
    def test_a_crash_while_releasing_is_repaired_by_trying_again(self, yard: Yard, tmp_path: Path, place: str) -> None:
        ref = yard.create("true", workers=2)

        assert _dies_at(place, tmp_path, lambda: yard.cluster.release(ref))
        yard.cluster.release(ref)

        assert yard.end_of(ref).status == JobStatus.SUCCEEDED
        assert yard.events(ref).count("release") == 1
        assert yard.events(ref).count("start") == 2

    def test_half_a_gang_is_no_success(self, yard: Yard, tmp_path: Path) -> None:
        ref = yard.create("true", workers=2)
        _dies_at("local.release.after_first_runner", tmp_path, lambda: yard.cluster.release(ref))
        yard.wait(lambda: "exit" in yard.events(ref))
        assert not yard.look(ref).ended

        yard.cluster.suspend(ref)

        assert (yard.look(ref).status, yard.look(ref).ended) == (None, True)

    def test_a_second_runner_leaves_at_once(self, yard: Yard) -> None:
        ref = yard.start(SLEEP)
        first = yard.runner_of(ref)

        command = [sys.executable, "-m", "jobs.cluster.local.runner", str(yard.folder(ref).pod("worker-0").path)]
        assert subprocess.run(command, cwd=REPOSITORY, timeout=20, check=False).returncode == 0

        assert yard.runner_of(ref) == first
        assert yard.events(ref).count("start") == 1

    def test_a_runner_of_a_pod_that_ended_leaves_at_once(self, yard: Yard) -> None:
        ref = yard.start("echo once")
        yard.end_of(ref)

        spawn.runner(yard.folder(ref).pod("worker-0"), python=sys.executable)
        command = [sys.executable, "-m", "jobs.cluster.local.runner", str(yard.folder(ref).pod("worker-0").path)]
        subprocess.run(command, cwd=REPOSITORY, timeout=20, check=True)

        assert yard.events(ref).count("start") == 1

    def test_the_runner_belongs_to_nobody(self, yard: Yard) -> None:
        ref = yard.start(SLEEP)
        runner = yard.runner_of(ref)

        parent = int(Path(f"/proc/{runner}/stat").read_text().rpartition(")")[2].split()[1])
        assert parent != os.getpid()
        assert os.getsid(runner) != os.getsid(0)

    def test_what_is_gone_cannot_be_released(self, yard: Yard) -> None:
        ref = yard.create()
        yard.cluster.delete(ref, person=None)

        with pytest.raises(ObjectGone):
            yard.cluster.release(ref)

    def test_what_is_stopped_stays_stopped(self, yard: Yard) -> None:
        ref = yard.create("echo never")
        yard.cluster.suspend(ref)

        yard.cluster.release(ref)

        assert "start" not in yard.events(ref)


class TestDeletion:
    def test_the_name_stays_taken(self, yard: Yard) -> None:
        objects = render(rendering())
        ref = yard.create_objects(objects)
        yard.cluster.delete(ref, person=None)

        with pytest.raises(ObjectGone):
            yard.cluster.create(objects, person=None)
        assert yard.look(ref).reason == Reason.OUTCOME_UNKNOWN
        assert yard.events(ref)[-1] == "delete"

    def test_the_uid_is_a_precondition(self, yard: Yard) -> None:
        ref = yard.create()

        with pytest.raises(ObjectDiffers):
            yard.cluster.delete(replace(ref, uid="another"), person=None)
        assert yard.raw(ref)[0] is not None

    def test_gone_already_is_fine(self, yard: Yard) -> None:
        ref = yard.create()
        yard.cluster.delete(ref, person=None)
        yard.cluster.delete(ref, person=None)

        assert yard.events(ref).count("delete") == 1

    def test_a_dry_run_deletes_nothing(self, yard: Yard) -> None:
        ref = yard.create()
        yard.cluster.delete(ref, person=None, dry_run=True)

        assert yard.raw(ref)[0] is not None

    def test_a_running_one_ends_first(self, yard: Yard) -> None:
        ref = yard.start(
            "trap 'echo saved > $TRAINHALL_OUTPUT_DIR/model; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
        )
        yard.wait_for_line(ref, "ready")

        yard.cluster.delete(ref, person=None)

        assert yard.raw(ref)[0] is not None, "it is there until its pods are gone"
        yard.wait(lambda: yard.raw(ref)[0] is None)
        runs = yard.root / NAMESPACE / "volumes" / "runs"
        assert [path.read_text() for path in runs.glob("*/out/model")] == ["saved\n"]
        assert yard.events(ref)[-1] == "delete"

    def test_a_crash_while_deleting_is_repaired_by_looking(self, yard: Yard, tmp_path: Path) -> None:
        for place in ("local.delete.after_marker", "local.delete.before_move"):
            ref = yard.start()
            yard.end_of(ref)

            assert _dies_at(place, tmp_path, lambda ref=ref: yard.cluster.delete(ref, person=None))

            yard.wait(lambda ref=ref: yard.raw(ref)[0] is None)
            assert yard.events(ref).count("delete") == 1


class TestLooking:
    def test_thousands_of_deleted_objects_are_not_looked_at(self, yard: Yard) -> None:
        for _number in range(3):
            yard.cluster.delete(yard.create(), person=None)
        ref = yard.create()

        assert [job["metadata"]["uid"] for job in yard.cluster.observe().jobs] == [ref.uid]
        assert not [path for path in yard.cluster._fixed if "deleted" in path.parts or ref.name not in path.parts]

    def test_changes_are_announced_once(self, yard: Yard) -> None:
        yard.cluster.observe()
        assert yard.cluster.changes(0.05) == ()

        yard.another().create(render(rendering()), person=None)

        assert yard.cluster.changes(5) is None
        yard.cluster.observe()
        assert yard.cluster.changes(0.05) == ()

    def test_the_node_shows_what_it_has_and_what_is_free(self, tmp_path: Path) -> None:
        yard = Yard(tmp_path, gpus=8)
        yard.start(SLEEP, gpus=2, cpu_millis=1500, workers=2)

        [node] = free_capacity(yard.cluster.observe().nodes, yard.cluster.observe().pods)

        assert (node.ready, node.virtual, node.gpu_type) == (True, True, "virtual")
        assert (node.cpu_millis, node.gpus, node.memory_bytes) == (4000, 8, 8 * 2**30)
        assert (node.free_cpu_millis, node.free_gpus, node.free_memory_bytes) == (1000, 4, 7.5 * 2**30)
        yard.close()

    def test_an_ignored_image_is_said(self, yard: Yard) -> None:
        ref = yard.start(SLEEP)

        [pod] = yard.raw(ref)[1]
        assert pod["metadata"]["annotations"]["trainhall.io/image-ignored"] == "ml/numpy:1"


class TestLostRunners:
    def test_a_killed_runner_ends_as_unknown_and_its_processes_die(self, yard: Yard) -> None:
        ref = yard.start("sleep 61 & setsid sleep 62 & echo ready; sleep 63")
        yard.wait_for_line(ref, "ready")
        yard.cluster.observe()
        assert len(yard.processes_of(ref)) >= 3

        os.kill(yard.runner_of(ref), signal.SIGKILL)
        ended = yard.end_of(ref)

        assert (ended.status, ended.reason) == (JobStatus.FAILED, Reason.OUTCOME_UNKNOWN)
        assert yard.processes_of(ref) == []
        assert yard.events(ref).count("exit") == 1

    def test_a_killed_runner_is_noticed_without_a_word_from_it(self, yard: Yard) -> None:
        ref = yard.start(SLEEP)
        yard.wait_for_line(ref, "ready")
        yard.cluster.observe()
        assert yard.cluster.changes(0.05) == ()

        os.kill(yard.runner_of(ref), signal.SIGKILL)

        assert yard.cluster.changes(10) is None

    def test_the_siblings_of_a_killed_runner_end(self, yard: Yard) -> None:
        ref = yard.start(SLEEP, workers=2)
        yard.wait_for_line(ref, "ready", "worker-1")

        os.kill(yard.runner_of(ref, "worker-0"), signal.SIGKILL)
        ended = yard.end_of(ref)

        assert ended.reason == Reason.OUTCOME_UNKNOWN
        assert [worker.phase for worker in ended.workers] == ["Failed", "Failed"]

    def test_after_a_restart_of_the_machine_the_node_was_lost(self, yard: Yard) -> None:
        ref = yard.start(SLEEP)
        runner = yard.runner_of(ref)
        yard.wait_for_line(ref, "ready")
        start = yard.folder(ref).pod("worker-0").start
        write_atomically(start, read_json(start) | {"boot_id": "that of yesterday"})

        os.kill(runner, signal.SIGKILL)
        ended = yard.end_of(ref)

        assert (ended.status, ended.reason) == (JobStatus.FAILED, Reason.NODE_LOST)


class TestShutdown:
    def test_everything_ends_as_a_disruption(self, yard: Yard) -> None:
        polite = yard.start(SLEEP, workers=2)
        stubborn = yard.start("trap '' TERM; echo ready; while :; do sleep 0.05; done", stop_grace=30)
        finished = yard.start("echo done")
        yard.end_of(finished)
        for ref in (polite, stubborn):
            yard.wait_for_line(ref, "ready")

        assert yard.cluster.stop_everything(0.5) == 2

        for ref in (polite, stubborn):
            ended = yard.look(ref)
            assert (ended.ended, ended.status, ended.reason) == (True, JobStatus.FAILED, Reason.DISRUPTION)
            assert yard.processes_of(ref) == []
        assert yard.look(finished).status == JobStatus.SUCCEEDED

    def test_a_pod_that_was_never_taken_ends_too(self, yard: Yard, tmp_path: Path) -> None:
        ref = yard.create(SLEEP)
        _dies_at("local.release.after_marker", tmp_path, lambda: yard.cluster.release(ref))

        yard.cluster.stop_everything(0.5)

        assert yard.look(ref).reason == Reason.DISRUPTION
        yard.cluster.release(ref)
        assert "start" not in yard.events(ref)


@pytest.mark.skipif(os.geteuid() != 0, reason="runs as an ordinary user already")
def test_it_works_as_an_ordinary_user(tmp_path: Path) -> None:
    code = _open_copy(tmp_path)
    script = (
        "from pathlib import Path; from tests.jobs.yard import Yard\n"
        f"yard = Yard(Path({str(tmp_path / 'users')!r}))\n"
        "ref = yard.start('id -u'); print(yard.end_of(ref).status, yard.text(ref))"
    )
    (tmp_path / "users").mkdir()
    os.chown(tmp_path / "users", 65534, 65534)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/pytest"):
            folder.chmod(0o755)
    result = subprocess.run(
        ["/usr/bin/env", "python3", "-c", script],
        cwd=code,
        user=65534,
        group=65534,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.split() == ["succeeded", "65534"], result.stderr


def _open_copy(tmp_path: Path) -> Path:
    """The modules in question where another account can read them."""
    code = tmp_path / "code"
    for pattern in (
        "jobs/*.py",
        "jobs/cluster/**/*.py",
        "tests/__init__.py",
        "tests/jobs/*.py",
    ):
        for source in REPOSITORY.glob(pattern):
            target = code / source.relative_to(REPOSITORY)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return code


def _create(cluster: object, objects: object) -> str:
    return cluster.create(objects, person=None)  # type: ignore[attr-defined]


def _dies_at(place: str, folder: Path, action: object) -> bool:
    """Do it in a child that is killed at that place; True if it was."""
    faults = folder / "faults"
    faults.mkdir(exist_ok=True)
    (faults / place).touch()
    child = os.fork()
    if child == 0:
        os.environ["TRAINHALL_FAULT_DIR"] = str(faults)
        try:
            action()  # type: ignore[operator]
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _files_holding(root: Path, canary: bytes) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and canary in path.read_bytes()]


def test_the_journal_keeps_every_line_of_many_writers(tmp_path: Path) -> None:
    folder = ObjectFolder(tmp_path)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.starmap(_write_lines, [(folder.path, 50)] * 4)

    assert len(journal.read(folder.path)) == 200


def _write_lines(folder: Path, count: int) -> None:
    for number in range(count):
        journal.append(folder, "start", text="x" * 500, number=number)
