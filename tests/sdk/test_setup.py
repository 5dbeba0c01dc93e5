"""The init container: the SDK, the code and the folders; and what hostile archives cannot do."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import SDK
from trainhall import fetching
from trainhall.setup import SetupError
from trainhall.unpacking import unpack

Entry = tuple[str, str, str]  # name, kind, content or target


def make_tar(*entries: Entry) -> bytes:
    kinds = {"link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "fifo": tarfile.FIFOTYPE, "device": tarfile.CHRTYPE}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name)
            if kind == "file":
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content.encode()))
                continue
            info.type = tarfile.DIRTYPE if kind == "folder" else kinds[kind]
            info.linkname = content
            tar.addfile(info)
    return out.getvalue()


class Portal:
    """Gives out one archive; `answers` are the statuses of the first requests."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.answers: list[int] = []
        self.asked: list[str] = []
        self.cut = 0
        portal = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                portal.asked.append(self.path)
                status = portal.answers.pop(0) if portal.answers else 200
                self.send_response(status)
                self.send_header("Content-Length", str(len(portal.body)))
                self.end_headers()
                if status == 200:
                    cut, portal.cut = portal.cut, 0
                    self.wfile.write(portal.body[: len(portal.body) - cut])

            def log_message(self, *_words: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/code/abc/?signature=SECRET"


@pytest.fixture
def portal() -> Iterator[Portal]:
    made = Portal(make_tar(("train.py", "file", "print('hello')"), ("lib/part.py", "file", "x = 1")))
    yield made
    made.server.shutdown()
    made.server.server_close()


Setup = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    def run(**env: str) -> subprocess.CompletedProcess[str]:
        base = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SDK),
            "TRAINHALL_WORKSPACE": str(tmp_path / "workspace"),
            "TRAINHALL_SDK_DIR": str(tmp_path / "opt"),
        }
        command = [sys.executable, "-m", "trainhall.agent", "--setup"]
        return subprocess.run(command, env={**base, **env}, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_without_code_there_is_the_sdk_and_a_workspace(setup: Setup, tmp_path: Path) -> None:
    done = setup(TRAINHALL_OUTPUT_DIR=str(tmp_path / "runs/1/out"), TRAINHALL_TB_DIR=str(tmp_path / "runs/1/tb"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "workspace").is_dir()
    assert (tmp_path / "runs/1/out").is_dir()
    assert (tmp_path / "runs/1/tb").is_dir()
    zipped = str(tmp_path / "opt" / "trainhall.zip")
    found = subprocess.run(
        [sys.executable, "-c", "import trainhall; print(trainhall.__file__)"],
        env={"PYTHONPATH": zipped},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(zipped)
    again = setup(PYTHONPATH=zipped, TRAINHALL_SDK_DIR=str(tmp_path / "second"))
    assert again.returncode == 0
    assert (tmp_path / "second" / "trainhall.zip").read_bytes() == Path(zipped).read_bytes()
    assert setup(PYTHONPATH=zipped).returncode == 0  # into the place it was loaded from


def test_the_code_is_fetched_checked_and_unpacked(setup: Setup, portal: Portal, tmp_path: Path) -> None:
    portal.answers = [503]
    digest = hashlib.sha256(portal.body).hexdigest()
    done = setup(TRAINHALL_CODE_URL=portal.url, TRAINHALL_CODE_SHA256=digest)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "workspace/train.py").read_text() == "print('hello')"
    assert sorted(path.name for path in (tmp_path / "workspace").rglob("*")) == ["lib", "part.py", "train.py"]
    assert portal.asked == ["/code/abc/?signature=SECRET"] * 2


@pytest.mark.parametrize(
    ("statuses", "digest", "said"),
    [
        ([404], "", "the portal answered 404"),
        ([500, 502, 503, 500, 500, 500], "", "tried 6 times: the portal answered 500"),
        ([], "0" * 64, "it is damaged"),
    ],
)
def test_each_failure_is_one_plain_line_without_the_signature(
    statuses: list[int], digest: str, said: str, setup: Setup, portal: Portal
) -> None:
    portal.answers = statuses
    done = setup(TRAINHALL_CODE_URL=portal.url, TRAINHALL_CODE_SHA256=digest)
    assert done.returncode == 3
    assert done.stderr.startswith("trainhall setup: the code ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "SECRET" not in done.stderr


def test_other_failures_are_plain_too(setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = setup(TRAINHALL_SDK_DIR=str(tmp_path / "file" / "opt"))
    assert (done.returncode, done.stderr) == (3, f"trainhall setup: {tmp_path}/file/opt: Not a directory.\n")
    done = setup(TRAINHALL_CODE_URL="file:///etc/passwd?signature=SECRET")
    assert (done.returncode, "SECRET" in done.stderr, done.stderr.count("\n")) == (3, False, 1)


def test_half_an_archive_is_fetched_again(portal: Portal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE", 0.01)
    portal.cut = 10
    path = fetching.fetch(portal.url, hashlib.sha256(portal.body).hexdigest(), str(tmp_path))
    assert Path(path).read_bytes() == portal.body
    assert len(portal.asked) == 2


HOSTILE: dict[str, tuple[Entry, ...]] = {
    "/etc/x": (("/etc/x", "file", "x"),),
    "../x": (("../x", "file", "x"),),
    "a/../../x": (("a/../../x", "file", "x"),),
    "a/../b": (("a/../b", "file", "x"),),
    "out": (("out", "link", "/etc"),),
    "up": (("up", "link", "../.."),),
    "deep/up": (("deep/up", "link", "../../x"),),
    "through/x": (("here", "folder", ""), ("through", "link", "here"), ("through/x", "file", "x")),
    "twice": (("a", "file", "x"), ("twice", "link", "a"), ("twice", "file", "y")),
    "hard": (("hard", "hard", "/etc/passwd"),),
    "pipe": (("pipe", "fifo", ""),),
    "disk": (("disk", "device", ""),),
    "back\\slash": (("back\\slash", "file", "x"),),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_by_name_and_writes_nothing(name: str, tmp_path: Path) -> None:
    workspace = tmp_path / "a" / "b" / "workspace"
    workspace.mkdir(parents=True)
    archive = tmp_path / "code.tar.gz"
    archive.write_bytes(make_tar(("good.py", "file", "x"), *HOSTILE[name]))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SetupError) as refused:
        unpack(str(archive), str(workspace))
    assert ascii(name) in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_that_was_there_before_leads_nowhere(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "lib").symlink_to(outside)
    (tmp_path / "code.tar.gz").write_bytes(make_tar(("lib/x.py", "file", "x")))
    with pytest.raises(SetupError, match="leads out"):
        unpack(str(tmp_path / "code.tar.gz"), str(workspace))
    assert not list(outside.iterdir())


def test_links_that_stay_inside_are_kept(tmp_path: Path) -> None:
    (tmp_path / "code.tar.gz").write_bytes(
        make_tar(("lib/x.py", "file", "x"), ("bin/x.py", "link", "../lib/x.py"), ("./y.py", "file", "y"))
    )
    assert unpack(str(tmp_path / "code.tar.gz"), str(tmp_path)) == 3
    assert (tmp_path / "bin/x.py").read_text() == "x"


@pytest.mark.parametrize(
    "body",
    [b"", b"no archive", b"\x1f\x8b broken", make_tar(("a", "file", "x" * 5000))[:-40]],
    ids=["empty", "text", "broken", "cut off"],
)
def test_what_is_no_archive_is_said_plainly(body: bytes, tmp_path: Path) -> None:
    (tmp_path / "code.tar.gz").write_bytes(body)
    with pytest.raises(SetupError, match="no archive that can be read"):
        unpack(str(tmp_path / "code.tar.gz"), str(tmp_path / "workspace"))


def test_a_package_without_dates_is_zipped(tmp_path: Path) -> None:
    package = tmp_path / "image" / "trainhall"
    shutil.copytree(Path(SDK) / "trainhall", package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in package.rglob("*.py"):
        os.utime(path, (0, 0))
    code = "import sys; from trainhall.setup import install_sdk; install_sdk(sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "opt")], env=environment, check=True)

    imported = [sys.executable, "-c", "import trainhall; print(trainhall.log.__name__)"]
    environment["PYTHONPATH"] = str(tmp_path / "opt" / "trainhall.zip")
    assert subprocess.check_output(imported, env=environment, text=True).strip() == "log"
