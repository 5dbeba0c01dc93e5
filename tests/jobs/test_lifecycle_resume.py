"""C12: a job that is held keeps what it saved, frees its GPUs within its grace, and goes on from there when released."""

from __future__ import annotations

import shlex
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from jobs import dispatch, preview, submission
from jobs.checkpoints import newest
from jobs.cluster.port import RunFile
from jobs.logs.lines import read_lines
from jobs.models import Attempt, Job, UsageInterval
from jobs.preview import manifests_of
from jobs.states import JobStatus
from tests.factories import make_job
from tests.jobs.test_journey import Hall

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "resumes.py"


@pytest.fixture
def hall(world: None, local_cluster: Any) -> Hall:
    return Hall(local_cluster)


def lines(job: Job, attempt: int) -> list[str]:
    return [line["text"] for line in read_lines(job.pk, limit=1000) if line["attempt"] == attempt]


@pytest.mark.django_db(transaction=True)
def test_a_released_job_goes_on_at_the_step_it_saved(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, f"python {shlex.quote(str(EXAMPLE))}", resources={"gpus": 2}, stop_grace="20s")
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.RUNNING)
    hall.until(job, lambda found: bool(lines(found, 1)))
    time.sleep(0.5)
    began = time.monotonic()
    submission.hold(Job.objects.get(pk=job.pk), user=alice)
    dispatch.stop(Attempt.objects.get(job=job).pk)
    job = hall.until(job, lambda found: found.status == JobStatus.QUEUED)
    assert time.monotonic() - began < 20
    assert not UsageInterval.objects.filter(ended_at=None).exists(), "its GPUs are free"
    assert job.charged_failures == 0
    assert lines(job, 1)[0] == "first step 1"
    (saved,) = [line for line in lines(job, 1) if line.startswith("saved at step ")]
    step = int(saved.removeprefix("saved at step "))
    hall.go()
    assert Job.objects.get(pk=job.pk).status == JobStatus.QUEUED, "held"
    submission.release(Job.objects.get(pk=job.pk), user=alice)
    hall.go()
    job = hall.until(job, lambda found: bool(lines(found, 2)))
    assert lines(job, 2)[0] == f"first step {step + 1}"
    assert environment_of(job)["TRAINHALL_RESUME_FROM"] == f"/runs/{job.pk}/ckpt/step-{step}.json", (
        "also where it is shown"
    )


@pytest.mark.django_db(transaction=True)
def test_a_first_attempt_and_one_without_checkpoints_start_from_nothing(hall: Hall, alice: Any) -> None:
    job = hall.submit(alice, 'echo "from [$TRAINHALL_RESUME_FROM]"; exit 1', retries=1)
    for _attempt in range(2):
        Job.objects.filter(pk=job.pk).update(not_before=None)
        hall.go()
        job = hall.until(job, lambda found: found.is_final or found.status == JobStatus.QUEUED)
    assert [line["text"] for line in read_lines(job.pk)] == ["from []", "from []"]


@pytest.mark.django_db(transaction=True)
def test_what_an_attempt_was_told_is_told_again_whatever_it_saves(hall: Hall, alice: Any) -> None:
    saves = 'echo "from [$TRAINHALL_RESUME_FROM]"; echo 1 > "$TRAINHALL_CHECKPOINT_DIR/step-$TRAINHALL_ATTEMPT"'
    job = hall.submit(alice, f"{saves}; [ $TRAINHALL_ATTEMPT = 2 ] && sleep 60; exit 1", retries=1)
    hall.go()
    hall.until(job, lambda found: found.status == JobStatus.QUEUED)
    Job.objects.filter(pk=job.pk).update(not_before=None)
    [attempt_id] = dispatch.admit_waiting()
    dispatch.launch(attempt_id)
    hall.until(job, lambda found: bool(lines(found, 2)))
    told = f"/runs/{job.pk}/ckpt/step-1"
    assert lines(job, 2)[0].endswith(f"{told}]")
    # as a process leaves it that dies between the release and its commit
    Attempt.objects.filter(pk=attempt_id).update(uid="", created_on_cluster_at=None, released_at=None)
    dispatch.launch(attempt_id)
    assert Attempt.objects.get(pk=attempt_id).released_at is not None
    assert environment_of(job)["TRAINHALL_RESUME_FROM"] == told
    shutil.rmtree(Path(hall.cluster.root, job.namespace.kubernetes_name, "volumes", "runs", job.pk, "ckpt"))
    assert environment_of(job)["TRAINHALL_RESUME_FROM"] == told, "also when its files are gone"


def environment_of(job: Job) -> dict[str, Any]:
    (leader,) = [manifest for manifest in manifests_of(job) if manifest["kind"] == "Job"]
    return {entry["name"]: entry.get("value") for entry in leader["spec"]["template"]["spec"]["containers"][0]["env"]}


def file(path: str, at: float, size: int = 10) -> RunFile:
    return RunFile(path=path, size=size, modified=at)


class TestNewest:
    def test_the_file_or_folder_written_last(self) -> None:
        files = [file("ckpt/step-2.pt", 2), file("ckpt/step-10/model.bin", 9), file("ckpt/step-10/optimizer.bin", 10)]
        assert newest(files) == "step-10"
        assert newest([*files, file("ckpt/step-11.pt", 11)]) == "step-11.pt"

    def test_outputs_and_event_files_are_no_checkpoints(self) -> None:
        assert newest([file("out/model.pt", 5), file("tb/events.out", 6)]) == ""

    @pytest.mark.parametrize(
        "unfinished",
        [
            "digits.new",
            "step-9.pt.tmp",
            ".step-9.pt.swp",
            "tmp-checkpoint-9/model.bin",
            "9.orbax-checkpoint-tmp-1/array",
            "step-9/model.bin.part",
            "step-9/.nfs0001",
        ],
    )
    def test_what_is_still_being_written_does_not_count(self, unfinished: str) -> None:
        assert newest([file("ckpt/step-8.pt", 8), file(f"ckpt/{unfinished}", 9)]) == "step-8.pt"

    def test_names_that_only_sound_like_it_count(self) -> None:
        assert newest([file("ckpt/temperature-3.pt", 9), file("ckpt/a.pt", 1)]) == "temperature-3.pt"

    def test_an_empty_file_is_none(self) -> None:
        assert newest([file("ckpt/step-9.pt", 9, size=0), file("ckpt/step-8.pt", 8)]) == "step-8.pt"

    def test_of_two_of_one_moment_the_later_step(self) -> None:
        assert newest([file("ckpt/step-10.pt", 5), file("ckpt/step-9.pt", 5)]) == "step-10.pt"


@pytest.mark.django_db
def test_the_spec_page_makes_the_objects_once(
    alice: Any, vision: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(alice, vision)
    made: list[Attempt] = []
    objects_of = preview.objects_of
    monkeypatch.setattr(
        preview, "objects_of", lambda attempt, **more: made.append(attempt) or objects_of(attempt, **more)
    )
    client.force_login(alice)
    page = client.get(f"/jobs/{job.pk}/spec/").content.decode()
    assert "TRAINHALL_RESUME_FROM" in page and "batch/v1" in page
    assert len(made) == 1
