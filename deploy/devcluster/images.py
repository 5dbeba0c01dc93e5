"""Small images without a registry: Debian's packages unpacked into a folder, and that folder as an OCI archive for containerd.

localhost/pause:1     what a pod's sandbox runs
localhost/busybox:1   a shell and its tools, without Python
localhost/python:1    the same with bash, Debian's Python 3 and numpy
localhost/trainhall-helper:…   Debian's Python 3 and this checkout's package `trainhall`, for `setup` and `agent` in every pod
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.devcluster.settings import CHECKOUT, CannotStart, Settings

OCI = "application/vnd.oci.image."
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# as process 1 a shell must catch the signal that ends a sandbox, and reap what is orphaned
PAUSE = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
# of a package, what no training program opens
USELESS = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/share/lintian",
    "usr/lib/*/perl-base",
)
PROGRAMS = ("bin", "usr/bin", "sbin", "usr/sbin")
FOLDERS = {"tmp": 0o1777, "var/tmp": 0o1777, "root": 0o700, "proc": 0o755, "sys": 0o755, "dev": 0o755, "etc": 0o755}


@dataclass(frozen=True, slots=True)
class Image:
    """What an image holds and starts."""

    name: str
    packages: Sequence[str]
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    copies: Sequence[tuple[Path, str]] = ()  # folders of this checkout, and where they lie in the image


def helper() -> Image:
    """Named after what is in the package, so that pods made by another state of the checkout keep theirs."""
    sdk = CHECKOUT / "sdk" / "trainhall"
    told = hashlib.sha256()
    for path in sorted(sdk.rglob("*.py")):
        told.update(f"{path.relative_to(sdk)}\0".encode() + path.read_bytes())
    name = f"localhost/trainhall-helper:{told.hexdigest()[:12]}"
    return Image(
        name, ["busybox-static", "python3"], command=["python3"], copies=[(sdk, "srv/trainhall/sdk/trainhall")]
    )


IMAGES = (
    Image("localhost/pause:1", ["busybox-static"], entrypoint=["/bin/busybox", "sh", "-c", PAUSE]),
    Image("localhost/busybox:1", ["busybox-static"], command=["sh"]),
    Image("localhost/python:1", ["busybox-static", "bash", "python3", "python3-numpy"], command=["python3"]),
)
# raised when what this file makes of the packages changes
EDITION = 1


def missing() -> list[str]:
    return [] if all(map(shutil.which, ("apt-get", "dpkg-deb"))) else ["apt", "dpkg"]


def load(settings: Settings, ctr: Sequence[str], snapshotter: str) -> None:
    """Make what the cache lacks, and give containerd what it lacks."""
    listed = subprocess.run([*ctr, "images", "list", "--quiet"], capture_output=True, text=True, check=True)
    for image in (*IMAGES, helper()):
        if image.name not in listed.stdout.split():
            archive = make(settings, image)
            argv = [*ctr, "images", "import", "--snapshotter", snapshotter, str(archive)]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CannotStart(f"containerd does not take {image.name}: {done.stderr.strip()}")


def make(settings: Settings, image: Image) -> Path:
    """The archive of an image in the cache, named after everything that goes into it."""
    system = Path("/etc/os-release").read_text()
    key = hashlib.sha256(repr((image, EDITION, system, platform.machine())).encode()).hexdigest()[:12]
    short = image.name.rpartition("/")[2].replace(":", "-")
    archive = settings.cache / "images" / f"{short}-{key}.tar"
    if archive.exists():
        return archive
    print(f"Making {image.name} from Debian packages…", file=sys.stderr, flush=True)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as work:
        root = Path(work) / "root"
        _unpack(Path(work), root, image.packages)
        _finish(root)
        for source, target in image.copies:
            shutil.copytree(source, root / target, ignore=shutil.ignore_patterns("__pycache__"))
        _pack(image, root, Path(work) / "image.tar")
        (Path(work) / "image.tar").replace(archive)
    return archive


def _unpack(work: Path, root: Path, packages: Sequence[str]) -> None:
    """With an empty list of what is installed, apt finds everything the packages depend on. No script of a package is run."""
    (work / "debs" / "partial").mkdir(parents=True)
    (work / "status").touch()
    options = {"Dir::State::status": work / "status", "Dir::Cache::archives": work / "debs", "Debug::NoLocking": 1}
    argv = ["apt-get", "--quiet", "--yes", "--no-install-recommends", "--download-only"]
    argv += [f"-o{name}={value}" for name, value in options.items()]
    done = subprocess.run([*argv, "install", *packages], capture_output=True, text=True, check=False)
    if done.returncode and os.geteuid() == 0:
        # a fresh container knows no packages, and an old list names versions that are gone
        subprocess.run(["apt-get", "--quiet", "update"], capture_output=True, check=False)
        done = subprocess.run([*argv, "install", *packages], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotStart(f"apt-get cannot fetch {', '.join(packages)} (apt-get update?): {done.stderr.strip()}")
    for package in sorted((work / "debs").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True)


def _finish(root: Path) -> None:
    """What the packages' own scripts would have done, as far as programs miss it."""
    for pattern in USELESS:
        for folder in root.glob(pattern):
            shutil.rmtree(folder)
    for library in root.glob("usr/lib/*/*/lib*.so.3"):
        if library.parent.name in ("blas", "lapack"):
            (library.parent.parent / library.name).symlink_to(f"{library.parent.name}/{library.name}")
    listed = subprocess.run([root / "bin/busybox", "--list"], capture_output=True, text=True, check=True)
    taken = {path.name for folder in PROGRAMS for path in (root / folder).glob("*")}
    for applet in set(listed.stdout.split()) - taken:
        (root / "bin" / applet).symlink_to("busybox")
    for name, mode in FOLDERS.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(mode)
    (root / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
    )
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")


def _pack(image: Image, root: Path, archive: Path) -> None:
    layer = archive.with_suffix(".layer")
    with tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.iterdir()):
            tar.add(path, arcname=path.name, filter=_plain)
    with layer.open("rb") as file:
        layer_digest = hashlib.file_digest(file, "sha256").hexdigest()
    runs = {"Env": [PATH], "Entrypoint": image.entrypoint, "Cmd": image.command}
    config = _json(
        architecture=ARCHITECTURES[platform.machine()],
        os="linux",
        config={key: value for key, value in runs.items() if value},
        rootfs={"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
    )
    manifest = _json(
        schemaVersion=2,
        mediaType=OCI + "manifest.v1+json",
        config=_descriptor(OCI + "config.v1+json", config),
        layers=[{"mediaType": OCI + "layer.v1.tar", "digest": f"sha256:{layer_digest}", "size": layer.stat().st_size}],
    )
    # containerd reads an image's name from here
    named = {"annotations": {"io.containerd.image.name": image.name}}
    index = _json(schemaVersion=2, manifests=[_descriptor(OCI + "manifest.v1+json", manifest) | named])
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(tar, "index.json", index)
        for blob in (config, manifest):
            _add(tar, f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
        tar.add(layer, arcname=f"blobs/sha256/{layer_digest}")


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same packages make the same layer, whenever and by whom."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = 0
    return info


def _descriptor(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{hashlib.sha256(blob).hexdigest()}", "size": len(blob)}


def _json(**values: Any) -> bytes:
    return json.dumps(values).encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))
