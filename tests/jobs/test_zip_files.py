"""All that a job left as one zip: true to the byte, of the size that was told, with names that lead nowhere."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client

from jobs import run_files, zipping
from jobs.models import Job
from jobs.run_files import Left
from jobs.states import JobStatus
from jobs.zipping import Changed, entries_of, safe_name, size_of, stream
from tests.factories import leave_file, make_job


class Zeros(io.RawIOBase):
    """A file of any size that takes no room."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.left = size

    def read(self, most: int = -1) -> bytes:
        size = min(most, self.left)
        self.left -= size
        return bytes(size)


def left(path: str, size: int, modified: float = 1_700_000_000) -> Left:
    at = datetime.fromtimestamp(modified, UTC)
    return Left(path=path, kind="output", name=path, size=size, modified=at, step=None)


def whole(files: list[Left], *, exact: bool = True) -> bytes:
    entries = entries_of(files, folder="job")
    sizes = {file.path: file.size for file in files}
    return b"".join(stream(entries, lambda path: Zeros(sizes[path]), exact=exact))  # type: ignore[arg-type, return-value]


# The format


@pytest.mark.parametrize("sizes", [[0], [1, 2, 3], [10, 0, 10**6], [5] * 300])
def test_the_size_is_known_before_the_first_byte(sizes: list[int]) -> None:
    files = [left(f"out/größe 模型 {number}", size) for number, size in enumerate(sizes)]
    body = whole(files)
    assert len(body) == size_of(entries_of(files, folder="job"))
    assert [entry.file_size for entry in zipfile.ZipFile(io.BytesIO(body)).infolist()] == sizes


def test_also_where_the_long_form_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10_000)
    for sizes in ([9_000], [9_600], [20_000], [4_000] * 5, [20_000, 1, 30_000]):
        files = [left(f"out/{number}", size) for number, size in enumerate(sizes)]
        assert len(whole(files)) == size_of(entries_of(files, folder="job")), sizes
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 3)
    files = [left(f"out/{number}", 1) for number in range(4)]
    assert len(whole(files)) == size_of(entries_of(files, folder="job"))


def test_a_gigabyte_takes_no_memory() -> None:
    files = [left(f"out/{number}", 2**28) for number in range(4)]
    sent = 0
    tracemalloc.start()
    for piece in stream(entries_of(files, folder="job"), lambda _path: Zeros(2**28), exact=True):  # type: ignore[arg-type, return-value]
        sent += len(piece)
    _now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sent == size_of(entries_of(files, folder="job"))
    assert most < 8 * zipping.CHUNK


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("job/out/model.txt", "job/out/model.txt"),
        ("job/out/größe 模型.bin", "job/out/größe 模型.bin"),
        ("job/out/..\\..\\evil.exe", "job/out/.._.._evil.exe"),
        ("job/out/c:evil", "job/out/c_evil"),
        ("job/out/.. ", "job/out/_"),
        ("job/out/a\nb\x1b[2J", "job/out/a_b_[2J"),
        ("job/out/bytes\udcff", "job/out/bytes_"),
        ("job/out/trailing. /x", "job/out/trailing/x"),
    ],
)
def test_names_mean_the_same_everywhere_and_lead_nowhere(path: str, name: str) -> None:
    assert safe_name(path) == name


def test_two_files_never_get_one_name() -> None:
    files = [left(path, 1) for path in ("out/a:b.txt", "out/a_b.txt", "out/A_B.txt", "out/x.y/z", "out/x.y/Z")]
    names = [entry.name for entry in entries_of(files, folder="j")]
    assert names == ["j/out/a_b.txt", "j/out/a_b (2).txt", "j/out/A_B (3).txt", "j/out/x.y/z", "j/out/x.y/Z (2)"]


def test_times_that_the_format_cannot_say_become_the_nearest() -> None:
    body = whole([left("out/old", 1, modified=0), left("out/new", 1, modified=9e9)])
    assert [entry.date_time[0] for entry in zipfile.ZipFile(io.BytesIO(body)).infolist()] == [1980, 2107]


# While it changes


def opener(bodies: dict[str, bytes]) -> Any:
    def open_file(path: str) -> IO[bytes]:
        if path not in bodies:
            raise FileNotFoundError(path)
        return io.BytesIO(bodies[path])

    return open_file


def test_what_a_running_job_changes_meanwhile_is_taken_as_it_is() -> None:
    entries = entries_of([left("out/gone", 4), left("out/grown", 4), left("out/shrunk", 4)], folder="job")
    bodies = {"out/grown": b"123456", "out/shrunk": b"12"}
    found = zipfile.ZipFile(io.BytesIO(b"".join(stream(entries, opener(bodies), exact=False))))
    assert {entry.filename: found.read(entry) for entry in found.infolist()} == {
        "job/out/grown": b"1234",
        "job/out/shrunk": b"12",
    }
    assert found.testzip() is None


@pytest.mark.parametrize("bodies", [{}, {"out/a": b"12"}])
def test_what_was_promised_and_is_not_there_ends_it_short(bodies: dict[str, bytes]) -> None:
    with pytest.raises(Changed):
        list(stream(entries_of([left("out/a", 4)], folder="job"), opener(bodies), exact=True))


# Over the web


@pytest.fixture
def job(alice: Any, vision: Any) -> Job:
    return job_with_files(alice, vision, JobStatus.SUCCEEDED)


def job_with_files(alice: Any, vision: Any, status: JobStatus) -> Job:
    job = make_job(alice, vision, attempt_number=1)
    Job.objects.filter(pk=job.pk).update(status=status)
    job.refresh_from_db()
    leave_file(job, "ckpt/step-100.npz", b"c" * 100)
    model = leave_file(job, "out/model.txt", b"0123456789")
    secret = model.parent.parent.parent / "secret.txt"
    secret.write_text("not yours")
    for name, target in (("link.txt", secret), ("away", secret.parent)):
        if not (model.parent / name).is_symlink():
            os.symlink(target, model.parent / name)
    return job


async def fetch(job: Job, person: Any, query: str = "") -> tuple[Any, bytes]:
    client = AsyncClient()
    await client.aforce_login(person)
    answer = await client.get(f"/api/v1/jobs/{job.pk}/files.zip{query}")
    if not answer.streaming:
        return answer, answer.content
    return answer, b"".join([chunk async for chunk in answer.streaming_content])


@pytest.mark.django_db(transaction=True)
async def test_it_holds_every_file_and_nothing_else(alice: Any, job: Job) -> None:
    answer, body = await fetch(job, alice)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    assert answer["Content-Length"] == str(len(body))
    assert answer["Content-Disposition"] == f'attachment; filename="{job.pk}-files.zip"'
    found = zipfile.ZipFile(io.BytesIO(body))
    assert {entry.filename: found.read(entry) for entry in found.infolist()} == {
        f"{job.pk}/ckpt/step-100.npz": b"c" * 100,
        f"{job.pk}/out/model.txt": b"0123456789",
    }
    _answer, body = await fetch(job, alice, "?kind=checkpoint")
    assert zipfile.ZipFile(io.BytesIO(body)).namelist() == [f"{job.pk}/ckpt/step-100.npz"]


@pytest.mark.django_db(transaction=True)
async def test_of_a_running_job_no_size_is_promised(alice: Any, vision: Any) -> None:
    running = await sync_to_async(job_with_files)(alice, vision, JobStatus.RUNNING)
    answer, body = await fetch(running, alice)
    assert "Content-Length" not in answer
    assert len(zipfile.ZipFile(io.BytesIO(body)).namelist()) == 2


@pytest.mark.django_db
def test_strangers_get_404_and_of_no_files_there_is_no_zip(
    client: Client, alice: Any, dave: Any, vision: Any, job: Job
) -> None:
    client.force_login(dave)
    assert client.get(f"/api/v1/jobs/{job.pk}/files.zip").status_code == 404
    client.force_login(alice)
    assert client.get(f"/api/v1/jobs/{make_job(alice, vision).pk}/files.zip").status_code == 409
    assert client.get(f"/api/v1/jobs/{job.pk}/files.zip?kind=events").status_code == 409


@pytest.mark.django_db
def test_too_many_are_refused_in_words(client: Client, alice: Any, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.api.files.MOST_FILES", 1)
    client.force_login(alice)
    answer = client.get(f"/api/v1/jobs/{job.pk}/files.zip")
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_many_files")


@pytest.mark.django_db
def test_the_page_and_the_listing_say_its_size_before(client: Client, alice: Any, job: Job) -> None:
    client.force_login(alice)
    page = client.get(f"/jobs/{job.pk}/files/").content.decode()
    assert f'href="/api/v1/jobs/{job.pk}/files.zip"' in page
    assert "Download all, zip, 110" in page
    listed = client.get(f"/api/v1/jobs/{job.pk}/files/").json()
    assert (listed["total_size"], listed["zip_url"].endswith(f"/api/v1/jobs/{job.pk}/files.zip")) == (110, True)
    empty = make_job(alice, job.namespace)
    assert "files.zip" not in client.get(f"/jobs/{empty.pk}/files/").content.decode()


def test_names_of_a_real_folder(tmp_path: Path) -> None:
    """What a listing gives is what a zip holds: bytes that are no text too."""
    from jobs.cluster.runs import walk

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sub\\dir").write_bytes(b"1")
    with open(os.fsencode(tmp_path) + b"/out/\xff\xfe", "wb") as file:
        file.write(b"2")
    files = [run_files._left(file) for file in walk(tmp_path, limit=10)]
    entries = entries_of(files, folder="job")
    body = b"".join(stream(entries, lambda path: (tmp_path / path).open("rb"), exact=True))
    assert len(body) == size_of(entries)
    assert zipfile.ZipFile(io.BytesIO(body)).namelist() == ["job/out/sub_dir", "job/out/__"]
