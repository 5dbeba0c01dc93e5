"""A command that starts a file which was not sent is told before it is submitted, and never refused for it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs.form.code_names import missing
from jobs.models import Job
from tests.cast import PASSWORD

NAMES = ["train.py", "lib/net.py", "run.sh"]


@pytest.mark.parametrize(
    "command", ["python main.py", "python3 -u ./main.py --lr 1", "bash main.sh", "X=1 python main.py && echo done"]
)
def test_a_file_that_is_not_there_is_named_with_those_that_are(command: str) -> None:
    (told,) = missing(command, NAMES)
    assert told.startswith(("main.py is not among", "./main.py is not among", "main.sh is not among"))
    assert "train.py" in told


@pytest.mark.parametrize(
    "command",
    [
        "python train.py",
        "python ./lib/net.py",
        "bash run.sh",
        "python -m pack.main",
        "python /opt/tools/main.py",
        "cd lib && python main.py",
        "curl -O https://example.com/main.py; python main.py",
        "cat > main.py; python main.py",
        "python {{script}}",
        "echo python_main.py",
        "",
    ],
)
def test_nothing_is_said_of_files_that_may_well_be_there(command: str) -> None:
    assert missing(command, NAMES) == []


def test_nothing_is_said_where_the_files_are_not_known() -> None:
    assert missing("python main.py", None) == [] and missing(None, NAMES) == []


def test_only_some_of_many_files_are_listed() -> None:
    (told,) = missing("python main.py", [f"part_{number}.txt" for number in range(30)])
    assert told.count(",") == 5 and told.endswith(", ….")


@pytest.mark.django_db
def test_the_form_warns_of_pasted_and_of_uploaded_code_and_takes_it_all_the_same(
    world: None, settings: Any, tmp_path: Any
) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path}},
    }
    alice, dave = Client(), Client()
    assert alice.login(username="alice", password=PASSWORD) and dave.login(username="dave", password=PASSWORD)
    form = {"namespace": "vision", "runtime": "shell", "command": "python main.py", "idempotency_key": "n"}
    pasted = {**form, "code_kind": "files", "script_name": "train.py", "script": "print(1)"}
    told = ["main.py is not among the files: there are train.py."]
    assert alice.post("/jobs/document/", pasted).json()["hints"] == told
    files = [SimpleUploadedFile("train.py", b"print(2)"), SimpleUploadedFile("b.py", b"")]
    sent = alice.post("/api/v1/uploads/", {"file": files, "path": ["train.py", "lib/b.py"]}).json()
    assert sent["paths"] == ["lib/b.py", "train.py"]
    uploaded = {**form, "code_kind": "upload", "upload_sha256": sent["sha256"]}
    (hint,) = alice.post("/jobs/document/", uploaded).json()["hints"]
    assert hint.startswith("main.py is not among the files") and "lib/b.py" in hint
    assert dave.post("/jobs/document/", uploaded).json()["hints"] == [], "what dave may not see is not told"
    assert alice.post("/jobs/new/", uploaded).status_code == 302 and Job.objects.count() == 1
