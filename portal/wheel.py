"""The SDK as a wheel, for pip, and as a zip, for the pods: built from `sdk/trainhall`, the same bytes every time. Pure."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "sdk" / "trainhall"
NAME = "trainhall"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold


@cache
def version() -> str:
    found = re.search(r'^__version__ = "([^"]+)"$', (PACKAGE / "__init__.py").read_text(encoding="utf-8"), re.M)
    assert found, "sdk/trainhall/__init__.py names its version"
    return found.group(1)


def wheel_name() -> str:
    return f"{NAME}-{version()}-py3-none-any.whl"


@cache
def wheel_bytes() -> bytes:
    info = f"{NAME}-{version()}.dist-info"
    files = _sources() | {
        f"{info}/METADATA": _metadata().encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: trainhall-portal\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": b"[console_scripts]\ntrainhall = trainhall.cli:main\n",
        f"{info}/top_level.txt": f"{NAME}\n".encode(),
    }
    record = f"{info}/RECORD"
    lines = [f"{name},sha256={_digest(body)},{len(body)}" for name, body in files.items()]
    return _zipped({**files, record: "\n".join([*lines, f"{record},,", ""]).encode()})


@cache
def zip_bytes() -> bytes:
    """What `PYTHONPATH=trainhall.zip` imports."""
    return _zipped(_sources())


def _sources() -> dict[str, bytes]:
    paths = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)
    return {f"{NAME}/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes() for path in paths}


def _metadata() -> str:
    return (
        "Metadata-Version: 2.1\n"
        f"Name: {NAME}\n"
        f"Version: {version()}\n"
        "Summary: Report from a training to the Trainhall portal, and submit jobs to it.\n"
        "Requires-Python: >=3.8\n"
    )


def _digest(body: bytes) -> str:
    """As RECORD wants it: urlsafe base64 without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()


def _zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            entry = zipfile.ZipInfo(name, date_time=LONG_AGO)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, body)
    return out.getvalue()
