"""Code as a content-addressed tar.gz in the storage: the same files always give the same digest."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO

from django.core.files import File
from django.core.files.storage import FileSystemStorage, default_storage

from accounts.models import User
from jobs.exceptions import UploadError
from jobs.models import BoundUpload, CodeArchive, Job

MAX_FILES = 5000
MAX_BYTES = 256 * 2**20  # unpacked
MAX_ENTRIES = 20_000  # of an archive, folders included


def safe_path(name: str) -> str:
    """A relative path inside the code folder. Raise UploadError naming what is wrong with it."""
    shown = ascii(name[:200])
    if "\\" in name or "\x00" in name or any(ord(char) < 32 or "\ud800" <= char <= "\udfff" for char in name):
        raise UploadError(f"{shown} holds a backslash or a control character; rename the file.")
    if len(name.encode()) > 900:
        raise UploadError(f"{shown}… is longer than 900 bytes; shorten the path.")
    path = PurePosixPath(name)
    if path.is_absolute() or (len(name) > 1 and name[1] == ":"):
        raise UploadError(f"{shown} is an absolute path; code has relative paths only.")
    parts = [part for part in path.parts if part != "."]
    if not parts or ".." in parts:
        raise UploadError(f"{shown} leads out of the code folder.")
    if any(len(part.encode()) > 255 for part in parts):
        raise UploadError(f"{shown} has a name longer than 255 bytes.")
    return "/".join(parts)


class _Builder:
    """Gathers files and writes them sorted, without times and owners, so that equal code is one archive."""

    def __init__(self, *, is_strict: bool = False) -> None:
        self.files: dict[str, tuple[bytes, bool]] = {}
        self.size = 0
        self.is_strict = is_strict  # what people pack by hand; a repository may hold what some systems cannot
        self.folded: dict[str, str] = {}

    def add(self, name: str, body: bytes, *, executable: bool = False) -> None:
        path = safe_path(name)
        self.check_place(path)
        self.size += len(body)
        if self.size > MAX_BYTES:
            raise UploadError(
                f"{path!a} makes the code larger than {MAX_BYTES // 2**20} MiB; keep data and checkpoints out of it."
            )
        if path not in self.files and len(self.files) >= MAX_FILES:
            raise UploadError(
                f"{path!a} is file number {MAX_FILES + 1}; at most {MAX_FILES}: keep data and environments out of the code."
            )
        self.files[path] = (body, executable)

    def check_place(self, path: str) -> None:
        """Raise UploadError where two entries want one place: in some systems, or in every one."""
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            prefix = "/".join(parts[:depth])
            known = self.folded.setdefault(prefix.casefold(), prefix)
            if self.is_strict and known != prefix:
                raise UploadError(f"{prefix!a} and {known!a} differ only in capital letters; rename one of them.")
            if depth < len(parts) and prefix in self.files:
                raise UploadError(f"{prefix!a} is a file and, in {path!a}, a folder; rename one of them.")
        if self.is_strict and path in self.files:
            raise UploadError(f"{path!a} is in there twice.")

    def write(self, out: IO[bytes]) -> None:
        with (
            gzip.GzipFile(fileobj=out, mode="wb", mtime=0, compresslevel=6) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for path, (body, executable) in sorted(self.files.items()):
                info = tarfile.TarInfo(path)
                info.size = len(body)
                info.mode = 0o755 if executable else 0o644
                tar.addfile(info, io.BytesIO(body))


def from_files(files: dict[str, str]) -> CodeArchive:
    """Text files, as pasted into a document or a form."""
    builder = _Builder()
    for name, text in files.items():
        builder.add(name, text.encode())
    return _store(builder)


def from_uploads(uploads: Iterable[tuple[str, IO[bytes]]], *, user: User) -> CodeArchive:
    """Files as a browser or the command line sends them: one zip or tar archive is unpacked, anything else is a file."""
    builder = _Builder(is_strict=True)
    entries = list(uploads)
    if not entries:
        raise UploadError("No file arrived; send at least one in the field `file`.")
    for name, stream in entries:
        if len(entries) == 1 and name.lower().endswith(".zip"):
            _add_zip(builder, name, stream)
        elif len(entries) == 1 and name.lower().endswith((".tar.gz", ".tgz", ".tar")):
            _add_tar(builder, name, stream)
        else:
            builder.add(name, stream.read())
    if not builder.files:
        raise UploadError(f"{entries[0][0]!a} has no file in it.")
    archive = _store(builder)
    archive.uploaders.add(user)
    if user.bound_to is not None:
        BoundUpload.objects.get_or_create(archive=archive, user=user, namespace_id=user.bound_to)
    return archive


def known_to(user: User, digest: str) -> CodeArchive | None:
    """An archive is found by its digest only by who sent it, or who sees a job that runs it.

    With a token of one namespace, sent means: with a token of that namespace. What its person sent otherwise is none of its
    business, as a digest is no secret.
    """
    sent = CodeArchive.objects.filter(pk=digest, uploaders=user)
    if user.bound_to is not None:
        sent = sent.filter(bound_uploads__user=user, bound_uploads__namespace=user.bound_to)
    if archive := sent.first():
        return archive
    seen = Job.objects.visible_to(user).filter(code_id=digest).select_related("code").first()
    return seen.code if seen else None


def from_tar(stream: IO[bytes], *, name: str) -> CodeArchive:
    builder = _Builder()
    _add_tar(builder, name, stream)
    return _store(builder)


def _add_zip(builder: _Builder, name: str, stream: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(stream) as archive:
            for number, entry in enumerate(archive.infolist()):
                _check_count(number, entry.filename)
                if "\0" in entry.orig_filename:
                    safe_path(entry.orig_filename)  # zipfile cuts the name there, and the check would not see it
                if entry.is_dir():
                    safe_path(entry.filename)
                    continue
                mode = entry.external_attr >> 16
                if mode & 0o170000 == 0o120000:
                    raise UploadError(f"{entry.filename!a} is a link; archives may hold plain files only.")
                safe_path(entry.filename)
                if entry.file_size > MAX_BYTES - builder.size:
                    raise UploadError(f"{entry.filename!a} makes the code larger than {MAX_BYTES // 2**20} MiB.")
                with archive.open(entry) as member:
                    # the header may lie about the size: read one byte more than is allowed and no further
                    body = member.read(MAX_BYTES - builder.size + 1)
                builder.add(entry.filename, body, executable=bool(mode & 0o111))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise UploadError(f"{name!a} cannot be read as a zip: {error}.") from error


def _check_count(number: int, name: str) -> None:
    if number >= MAX_ENTRIES:
        raise UploadError(f"{name[:200]!a} is entry number {number + 1}; an archive may have {MAX_ENTRIES}.")


def _add_tar(builder: _Builder, name: str, stream: IO[bytes]) -> None:
    try:
        with tarfile.open(fileobj=stream, mode="r:*") as archive:
            for number, entry in enumerate(archive):
                _check_count(number, entry.name)
                if entry.isdir() or entry.type == tarfile.XGLTYPE:
                    continue
                if not entry.isfile():
                    raise UploadError(f"{entry.name!a} is a link or a device; archives may hold plain files only.")
                safe_path(entry.name)
                if entry.size > MAX_BYTES - builder.size:
                    raise UploadError(f"{entry.name!a} makes the code larger than {MAX_BYTES // 2**20} MiB.")
                member = archive.extractfile(entry)
                builder.add(entry.name, member.read() if member else b"", executable=bool(entry.mode & 0o111))
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise UploadError(f"{name!a} cannot be read as a tar archive: {error}.") from error


def _store(builder: _Builder) -> CodeArchive:
    with tempfile.TemporaryFile() as out:
        builder.write(out)
        size = out.tell()
        out.seek(0)
        digest = hashlib.file_digest(out, "sha256").hexdigest()
        archive = CodeArchive(sha256=digest, size=size, file_count=len(builder.files))
        if not default_storage.exists(archive.storage_name):
            out.seek(0)
            _save_once(archive.storage_name, out)
    stored, _new = CodeArchive.objects.get_or_create(
        sha256=digest, defaults={"size": size, "file_count": len(builder.files)}
    )
    return stored


def _save_once(name: str, body: IO[bytes]) -> None:
    """Two may save the same digest at once: in a folder the rename decides; Django's own save would rename the second."""
    if not isinstance(default_storage, FileSystemStorage) and not hasattr(default_storage, "path"):
        default_storage.save(name, File(body))
        return
    target = Path(default_storage.path(name))
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    with os.fdopen(handle, "wb") as out:
        for chunk in iter(lambda: body.read(2**20), b""):
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    Path(temporary).replace(target)


def text_files(archive: CodeArchive, *, limit: int = 64 * 2**10) -> list[dict[str, object]]:
    """Names and sizes of what is in an archive, with the text of small files: for the job page."""
    shown: list[dict[str, object]] = []
    with default_storage.open(archive.storage_name) as stored, tarfile.open(fileobj=stored, mode="r:gz") as tar:
        for entry in tar:
            member = tar.extractfile(entry) if entry.size <= limit else None
            body = member.read() if member else b""
            text = body.decode(errors="replace") if member and b"\x00" not in body else None
            shown.append({"name": entry.name, "size": entry.size, "text": text})
    return shown
