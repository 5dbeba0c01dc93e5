"""C23 and CLEAN: after a while nothing of a job is left on the cluster but what people read; nothing else is touched."""

from __future__ import annotations

import json
import logging
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs import cleaning, dispatch, lifecycle
from jobs.exceptions import ObjectGone
from jobs.logs.lines import read_lines
from jobs.models import Attempt, Job, JobEvent
from jobs.states import JobStatus, Reason
from tests.factories import make_attempt, make_job
from tests.jobs.test_journey import Hall

pytestmark = pytest.mark.django_db(transaction=True)

SAVES = 'echo out > "$TRAINHALL_OUTPUT_DIR/model"; echo 7 > "$TRAINHALL_CHECKPOINT_DIR/step-7"; echo saved'


@pytest.fixture
def hall(world: None, local_cluster: Any) -> Hall:
    return Hall(local_cluster)


def over(hall: Hall, alice: Any, command: str = SAVES) -> Job:
    job = hall.submit(alice, command)
    hall.go()
    hall.over(job)
    hall.mirror.look()
    return Job.objects.get(pk=job.pk)


def end_ago(job: Job, **ago: float) -> None:
    Job.objects.filter(pk=job.pk).update(finished_at=timezone.now() - timedelta(**ago))


def run_folder(hall: Hall, job: Job) -> Path:
    return Path(hall.cluster.root, job.namespace.kubernetes_name, "volumes", "runs", job.pk)


def record_folder(hall: Hall, job: Job) -> Path:
    return Path(hall.cluster.root, job.namespace.kubernetes_name, "deleted", f"j-{job.pk}-1")


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_files_go_after_their_keeping_and_what_people_read_stays(hall: Hall, alice: Any, client: Any) -> None:
    job, other = over(hall, alice), over(hall, alice)
    end_ago(job, days=7, minutes=1)
    end_ago(other, days=6, hours=23)
    assert (run_folder(hall, job) / "out" / "model").exists()
    assert cleaning.remove_old_files() == 1
    job.refresh_from_db()
    assert job.cleaned_at is not None
    assert not run_folder(hall, job).exists()
    assert files_below(record_folder(hall, job)) == set()
    # the younger one has everything
    assert (run_folder(hall, other) / "out" / "model").exists()
    assert "job.json" in files_below(record_folder(hall, other))
    # lines, events and pages are as before, and say what went
    assert [line["text"] for line in read_lines(job.pk)] == ["saved"]
    assert JobEvent.objects.filter(job=job, reason__contains="files were removed, 7 days after its end").count() == 1
    client.force_login(alice)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "Files removed on" in page and "logs, metrics and events are kept" in page
    assert "Files kept until" in client.get(f"/jobs/{other.pk}/").content.decode()
    document = client.get(f"/api/v1/jobs/{job.pk}/").json()
    assert document["files"]["removed_at"]
    assert client.get(f"/api/v1/jobs/{job.pk}/logs/").json()["lines"][0]["text"] == "saved"
    # a second sweep finds nothing to do
    assert cleaning.remove_old_files() == 0


def test_the_name_of_a_cleaned_attempt_stays_taken(hall: Hall, alice: Any) -> None:
    job = over(hall, alice)
    objects = dispatch.objects_of(job.attempts.select_related("job__namespace", "job__owner", "job__code").get())
    end_ago(job, days=8)
    cleaning.remove_old_files()
    with pytest.raises(ObjectGone):
        hall.cluster.create(objects, person=None)


def test_a_folder_that_the_job_closed_goes_too_and_a_link_takes_nothing_along(
    hall: Hall, alice: Any, tmp_path: Path
) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").touch()
    command = f'cd "$TRAINHALL_OUTPUT_DIR"; mkdir shut; touch shut/file; chmod 0 shut; ln -s "{treasure}" link'
    job = over(hall, alice, command)
    end_ago(job, days=8)
    assert cleaning.remove_old_files() == 1
    assert not run_folder(hall, job).exists()
    assert (treasure / "gold").exists()


def foreign_folders(hall: Hall, alike: Job) -> list[Path]:
    """A hundred objects that are nobody's: look-alike names, copied labels, half of them deleted already."""
    template = json.loads((record_folder(hall, alike) / "job.json").read_text())
    namespace = record_folder(hall, alike).parents[1]
    made = []
    ids = [f"{alike.pk[:-2]}{number:02}" for number in range(101)]
    for number, job_id in enumerate([one for one in ids if one != alike.pk][:100]):
        name = f"j-{job_id}-1"
        folder = namespace / "deleted" / name if number % 2 else namespace / name
        folder.mkdir()
        metadata = {**template["metadata"], "name": name, "uid": f"foreign-{number}"}
        (folder / "job.json").write_text(json.dumps({**template, "metadata": metadata}))
        (namespace / "volumes" / "runs" / job_id).mkdir(exist_ok=True)
        made += [folder / "job.json", namespace / "volumes" / "runs" / job_id]
    return made


def test_with_an_empty_database_nothing_is_removed(hall: Hall, alice: Any) -> None:
    """R41."""
    job = over(hall, alice)
    foreign = foreign_folders(hall, job)
    record, run = record_folder(hall, job), run_folder(hall, job)
    from jobs.models import UsageInterval

    UsageInterval.objects.all().delete()
    Job.objects.all().delete()
    assert cleaning.remove_left_objects() == 0
    assert cleaning.remove_old_files() == 0
    hall.mirror.look()
    assert all(path.exists() for path in (*foreign, record / "job.json", run / "out" / "model"))


def test_foreign_folders_beside_ours_stay(hall: Hall, alice: Any) -> None:
    """R41."""
    job = over(hall, alice)
    foreign = [path for path in foreign_folders(hall, job) if job.pk not in str(path)]
    end_ago(job, days=8)
    assert cleaning.remove_old_files() == 1
    cleaning.remove_left_objects()
    assert all(path.exists() for path in foreign)


def test_what_bears_another_uid_under_our_name_stays_and_is_told(
    hall: Hall, alice: Any, caplog: pytest.LogCaptureFixture
) -> None:
    job = over(hall, alice)
    record = record_folder(hall, job) / "job.json"
    document = json.loads(record.read_text())
    document["metadata"]["uid"] = "foreign"
    record.write_text(json.dumps(document))
    end_ago(job, days=8)
    with caplog.at_level(logging.ERROR):
        assert cleaning.remove_old_files() == 0
    assert record.exists() and run_folder(hall, job).exists()
    assert f"The files of {job.pk} stay" in caplog.text
    job.refresh_from_db()
    assert job.cleaned_at is None


def test_one_that_cannot_be_removed_keeps_no_other_waiting(
    hall: Hall, alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, fine = over(hall, alice), over(hall, alice, "true")
    record = record_folder(hall, stuck) / "job.json"
    record.write_text(record.read_text().replace(Attempt.objects.get(job=stuck).uid, "foreign"))
    end_ago(stuck, days=20)
    end_ago(fine, days=8)
    monkeypatch.setattr(cleaning, "PER_HOUR", 1)
    assert cleaning.remove_old_files() == 1
    fine.refresh_from_db()
    assert fine.cleaned_at is not None


def test_above_its_limit_the_sweep_stops_and_says_so(
    hall: Hall, alice: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [over(hall, alice, "true") for _number in range(3)]
    for days, job in enumerate(jobs, 8):
        end_ago(job, days=days)
    monkeypatch.setattr(cleaning, "PER_HOUR", 2)
    with caplog.at_level(logging.ERROR):
        assert cleaning.remove_old_files() == 2
        assert "3 jobs are due" in caplog.text
        # nor does a second pass within the hour go on
        assert cleaning.remove_old_files() == 0
    assert Job.objects.get(cleaned_at=None, finished_at__isnull=False).pk == jobs[0].pk, "the oldest went first"


def test_a_removal_that_was_cut_off_goes_on(hall: Hall, alice: Any) -> None:
    job = over(hall, alice)
    end_ago(job, days=8)
    shutil.rmtree(run_folder(hall, job))
    for path in record_folder(hall, job).iterdir():
        if path.is_file() and path.name != "job.json":
            path.unlink()
    assert cleaning.remove_old_files() == 1
    assert files_below(record_folder(hall, job)) == set()


def test_files_of_a_job_that_runs_or_whose_object_is_not_gone_stay(hall: Hall, alice: Any) -> None:
    runs = hall.submit(alice, "touch $TRAINHALL_OUTPUT_DIR/model; sleep 60")
    ended = over(hall, alice)
    hall.go()
    hall.until(runs, lambda found: found.status == JobStatus.RUNNING)
    end_ago(runs, days=30)
    end_ago(ended, days=30)
    Attempt.objects.filter(job=ended).update(deleted_at=None)
    assert cleaning.remove_old_files() == 0
    assert run_folder(hall, ended).exists() and run_folder(hall, runs).exists()


def test_an_object_that_an_ended_attempt_left_is_removed_after_a_while(hall: Hall, alice: Any) -> None:
    """As a crash between create and the row leaves it: listed, suspended, its uid not stored."""
    job = make_job(alice, alice.memberships.get(namespace__slug="vision").namespace)
    attempt = make_attempt(job)
    Job.objects.filter(pk=job.pk).update(attempt_number=1)
    hall.cluster.create(dispatch.objects_of(attempt), person=None)
    lifecycle.end_attempt(attempt, code=Reason.REFUSED_BY_CLUSTER, reason="refused", exit_code=None)
    assert cleaning.remove_left_objects() == 0, "not at once: the watcher does that"
    Attempt.objects.update(ended_at=timezone.now() - timedelta(minutes=11))
    assert cleaning.remove_left_objects() == 1
    assert hall.cluster.observe().jobs == []
    assert Attempt.objects.get().deleted_at is not None


def test_many_left_objects_take_two_looks_at_the_cluster(
    hall: Hall, alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    vision = alice.memberships.get(namespace__slug="vision").namespace
    for _count in range(3):
        attempt = make_attempt(make_job(alice, vision))
        hall.cluster.create(dispatch.objects_of(attempt), person=None)
    Attempt.objects.update(ended_at=timezone.now() - timedelta(minutes=11))
    looks = []
    observe = type(hall.cluster).observe
    monkeypatch.setattr(type(hall.cluster), "observe", lambda cluster: looks.append(1) or observe(cluster))
    assert cleaning.remove_left_objects() == 3
    assert len(looks) == 2
    assert cleaning.remove_left_objects() == 0


def test_an_object_of_another_under_that_name_is_left_alone(
    hall: Hall, alice: Any, caplog: pytest.LogCaptureFixture
) -> None:
    vision = alice.memberships.get(namespace__slug="vision").namespace
    attempt = make_attempt(make_job(alice, vision))
    objects = dispatch.objects_of(attempt)
    objects.leader["metadata"]["annotations"]["trainhall.io/spec-sha256"] = "of something else"
    hall.cluster.create(objects, person=None)
    Attempt.objects.update(ended_at=timezone.now() - timedelta(minutes=11))
    with caplog.at_level(logging.ERROR):
        cleaning.remove_left_objects()
    assert len(hall.cluster.observe().jobs) == 1
    assert "not ours; it stays" in caplog.text


def test_a_wrong_number_of_days_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.exceptions import ImproperlyConfigured

    from portal.settings.env import env_int

    monkeypatch.setenv("TRAINHALL_KEEP_FILES", "a week")
    with pytest.raises(ImproperlyConfigured, match="TRAINHALL_KEEP_FILES"):
        env_int("TRAINHALL_KEEP_FILES", 7, maximum=36500)
