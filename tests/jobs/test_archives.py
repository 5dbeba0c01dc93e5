"""Code archives: equal code is one archive, and nothing hostile gets in or out."""

from __future__ import annotations

import io
import socket
import subprocess
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage

from jobs import archives, code, git_address, submission
from jobs.exceptions import CodeNotFetched, SpecError, UploadError
from jobs.reading import read_document

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_storage(settings: Any, tmp_path: Path) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "files"},
        },
    }


def zipped(*entries: tuple[str | zipfile.ZipInfo, str]) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in entries:
            archive.writestr(name, body)
    out.seek(0)
    return out


def names(archive: Any) -> list[str]:
    with default_storage.open(archive.storage_name) as stored, tarfile.open(fileobj=stored, mode="r:gz") as tar:
        return tar.getnames()


def test_equal_code_is_one_archive_however_it_came(alice: Any) -> None:
    pasted = archives.from_files({"b/c.py": "2", "a.py": "1"})
    sent = archives.from_uploads([("x.zip", zipped(("a.py", "1"), ("b/c.py", "2")))], user=alice)
    singly = archives.from_uploads([("b/c.py", io.BytesIO(b"2")), ("a.py", io.BytesIO(b"1"))], user=alice)
    assert pasted.pk == sent.pk == singly.pk
    assert names(pasted) == ["a.py", "b/c.py"]
    assert list(sent.uploaders.all()) == [alice]


def test_two_hundred_nested_files_arrive(alice: Any) -> None:
    entries = [(f"pack/d{index % 7}/m{index}.py", str(index)) for index in range(200)]
    archive = archives.from_uploads([("code.zip", zipped(*entries))], user=alice)
    assert archive.file_count == 200
    assert set(names(archive)) == {name for name, _body in entries}


HOSTILE = ["../up.py", "/etc/passwd", "a/../../b", "C:/x", "a\\b", "nul\x07l", "..", "x" * 1000, "d/" + "y" * 300]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_by_name(alice: Any, name: str) -> None:
    with pytest.raises(UploadError) as caught:
        archives.from_uploads([("ok.py", io.BytesIO(b"")), (name, io.BytesIO(b"1"))], user=alice)
    assert ascii(name[:50])[1:-1][:40] in caught.value.message


def test_links_devices_and_broken_archives_are_refused(alice: Any) -> None:
    link = zipfile.ZipInfo("ln")
    link.external_attr = 0o120777 << 16
    with pytest.raises(UploadError, match="link"):
        archives.from_uploads([("x.zip", zipped((link, "/etc/passwd")))], user=alice)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("dev")
        info.type = tarfile.CHRTYPE
        tar.addfile(info)
    out.seek(0)
    with pytest.raises(UploadError, match="device"):
        archives.from_uploads([("x.tar", out)], user=alice)
    for name in ("x.zip", "x.tar.gz"):
        with pytest.raises(UploadError, match="cannot be read"):
            archives.from_uploads([(name, io.BytesIO(b"not an archive"))], user=alice)


def test_a_bomb_is_refused_before_it_is_unpacked(alice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 2**20)
    with pytest.raises(UploadError, match="larger than 1 MiB"):
        archives.from_uploads([("x.zip", zipped(("big", "\0" * 2**22)))], user=alice)


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A real git repository behind a plain HTTP server on loopback."""
    work = tmp_path / "forge" / "repo"
    work.mkdir(parents=True)
    git = partial(subprocess.run, cwd=work, check=True, capture_output=True)
    git(["git", "init", "-q", "-b", "main"])
    for number in (1, 2):
        (work / "train.py").write_text(f"print({number})")
        git(["git", "add", "."])
        git(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", str(number)])
    git(["git", "update-server-info"])
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "forge"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/repo/.git", work
    server.shutdown()


def test_code_comes_from_git_at_a_branch_and_at_a_commit(forge: tuple[str, Path], settings: Any) -> None:
    url, work = forge
    settings.TRAINHALL_FETCH_HOSTS = ["127.0.0.1"]
    first = subprocess.run(["git", "rev-parse", "HEAD~1"], cwd=work, capture_output=True, text=True).stdout.strip()
    newest, commit = code.fetch_git(url, "main")
    assert len(commit) == 40 and commit != first
    older, found = code.fetch_git(url, first)
    assert found == first
    assert archives.text_files(newest)[0]["text"] == "print(2)"
    assert archives.text_files(older)[0]["text"] == "print(1)"
    with pytest.raises(CodeNotFetched, match="no branch, tag or commit 'nope'") as caught:
        code.fetch_git(url, "nope")
    assert caught.value.permanent


def test_private_addresses_are_called_only_where_an_admin_lists_them(forge: tuple[str, Path]) -> None:
    url, _work = forge
    with pytest.raises(CodeNotFetched, match="TRAINHALL_FETCH_HOSTS") as caught:
        code.fetch_git(url, "main")
    assert caught.value.permanent


@pytest.mark.parametrize("url", ["file:///etc", "ssh://x/y", "https://user:pw@host/x", "https:///x", "ext::sh -c id"])
def test_other_kinds_of_url_are_refused(url: str) -> None:
    with pytest.raises(CodeNotFetched):
        code.pinned_address(url)


@pytest.mark.parametrize(
    "url", ["git@example.com:a/b.git", "ssh://git@example.com/a/b.git", "ssh://git@example.com:22/a/b.git"]
)
def test_an_address_of_ssh_gets_that_of_https_as_its_fix(url: str) -> None:
    assert git_address.trouble(url).endswith("write https://example.com/a/b.git")


@pytest.mark.parametrize("url", ["https://example.com/a.git", "http://example.com:8080/a.git"])
def test_http_and_https_are_taken(url: str) -> None:
    assert git_address.trouble(url) == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "[::1]", "169.254.169.254", "localhost"])
def test_a_private_address_is_refused_at_once_in_the_words_of_the_fetch(
    host: str, alice: Any, world: None, settings: Any
) -> None:
    url = f"http://{host}/repo.git"
    text = f"namespace: vision\nruntime: shell\ncommand: 'true'\ncode: {{git: '{url}'}}\n"
    document = read_document(text, format="yaml")
    with pytest.raises(SpecError) as at_once:
        submission.check(document)
    with pytest.raises(CodeNotFetched) as fetched:
        code.pinned_address(url)
    assert at_once.value.fields == {"code.git": [fetched.value.message]}
    settings.TRAINHALL_FETCH_HOSTS = [host.strip("[]")]
    assert submission.check(document).spec.code.git == url


def test_two_names_for_one_place_are_refused_by_name(alice: Any) -> None:
    for names_, words in (
        (("Train.py", "train.py"), "differ only in capital letters"),
        (("lib/a.py", "LIB/b.py"), "'LIB' and 'lib' differ"),
        (("a", "a/b"), "'a' is a file and, in 'a/b', a folder"),
    ):
        with pytest.raises(UploadError, match=words):
            archives.from_uploads([("x.zip", zipped(*((name, "1") for name in names_)))], user=alice)
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zipped(("a.py", "1"), ("a.py", "2"))
    with pytest.raises(UploadError, match=r"'a\.py' is in there twice"):
        archives.from_uploads([("x.zip", twice)], user=alice)


def test_a_name_that_a_zip_hides_behind_a_nul_is_refused(alice: Any) -> None:
    body = zipped(("okXpy.sh", "1")).getvalue().replace(b"okXpy.sh", b"ok\0py.sh")
    with pytest.raises(UploadError, match=r"ok\\x00py\.sh"):
        archives.from_uploads([("x.zip", io.BytesIO(body))], user=alice)


@pytest.mark.parametrize("name", ["../up/", "..\\up.py", "/abs/x.py", "C:\\x.py", "a\\b.py"])
def test_hostile_entries_of_a_zip_are_named(alice: Any, name: str) -> None:
    with pytest.raises(UploadError) as caught:
        archives.from_uploads([("x.zip", zipped(("ok.py", "1"), (name, "")))], user=alice)
    assert ascii(name)[1:-1].strip("/") in caught.value.message


def test_a_hundred_thousand_entries_are_refused_naming_the_first_too_many(alice: Any) -> None:
    many = zipped(*((f"d{index}/", "") for index in range(100_000)))
    with pytest.raises(UploadError, match=r"'d20000/' is entry number 20001"):
        archives.from_uploads([("x.zip", many)], user=alice)
    files = zipped(*((f"f{index}", "") for index in range(5001)))
    with pytest.raises(UploadError, match="'f5000' is file number 5001"):
        archives.from_uploads([("x.zip", files)], user=alice)


def test_a_git_server_that_accepts_and_says_nothing_ends_in_time_with_a_sentence(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TRAINHALL_FETCH_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr(code, "TIMEOUT", 2.0)
    silent = socket.create_server(("127.0.0.1", 0))
    begun = time.monotonic()
    with pytest.raises(CodeNotFetched, match=r"did not answer within 2 s\.") as caught:
        code.fetch_git(f"http://127.0.0.1:{silent.getsockname()[1]}/r.git", "main")
    assert not caught.value.permanent, "tried again, until ten minutes have passed"
    assert time.monotonic() - begun < 30
    silent.close()
