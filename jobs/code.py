"""Code from a git URL: resolved to a commit and archived by a worker, never by the web process."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import subprocess
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from jobs import archives, git_address, lifecycle
from jobs.exceptions import CodeNotFetched, UploadError
from jobs.models import CodeArchive, Job
from jobs.states import JobStatus, Reason

TIMEOUT = 120.0  # seconds for one fetch
GIVE_UP_AFTER = timedelta(minutes=10)  # of trying, for what may pass
TRIED_FOR = f"for up to {GIVE_UP_AFTER // timedelta(minutes=1)} minutes"
PASSING = ("could not resolve", "timed out", "connection", "unexpected disconnect", "early eof", "503", "502", "500")


def fetch(job_id: str) -> None:
    """Fetch the code of one job that waits for it. A repeat finds it ready and does nothing."""
    job = Job.objects.get(pk=job_id)
    if job.code_ready_at or job.status != JobStatus.QUEUED:
        return
    source = job.parsed.code
    try:
        archive, commit = fetch_git(source.git, source.ref)
    except CodeNotFetched as error:
        job.refresh_from_db()
        if job.status != JobStatus.QUEUED:
            return
        if error.permanent or timezone.now() - job.created_at > GIVE_UP_AFTER:
            lifecycle.move(
                job,
                JobStatus.FAILED,
                code=Reason.CODE_NOT_FETCHED,
                reason=error.message,
                finished_at=timezone.now(),
            )
        else:
            lifecycle.explain(job, Reason.FETCHING_CODE, f"{error.message} Tried again by itself, {TRIED_FOR}.")
        return
    job.refresh_from_db()
    if not job.code_ready_at and job.status == JobStatus.QUEUED:
        lifecycle.code_is_ready(job, archive_id=archive.pk, label=f"{source.git}@{commit}")


def fetch_git(url: str, ref: str) -> tuple[CodeArchive, str]:
    """The archive of a commit, and its full name. Raise CodeNotFetched."""
    if shutil.which("git") is None:
        raise CodeNotFetched("git is not installed where the portal runs: paste or upload the code.", permanent=True)
    pin = pinned_address(url)
    deadline = time.monotonic() + TIMEOUT
    with tempfile.TemporaryDirectory(prefix="trainhall-git-") as folder:
        git = _Git(Path(folder), url, pin, deadline)
        git.run("init", "-q", "--bare", ".")
        commit = git.fetch(ref or "HEAD")
        archive_file = Path(folder, "code.tar")
        git.run("archive", "--format=tar", f"--output={archive_file}", commit)
        try:
            with archive_file.open("rb") as stream:
                return archives.from_tar(stream, name=url), commit
        except UploadError as error:
            raise CodeNotFetched(f"The commit cannot be used: {error.message}", permanent=True) from error


def pinned_address(url: str) -> str:
    """`host:port:address` for curl: the address that was checked is the one that is called.

    Private addresses only where TRAINHALL_FETCH_HOSTS lists the host.
    """
    if wrong := git_address.trouble(url):
        raise CodeNotFetched(f"The address of the code {wrong}.", permanent=True)
    parts = urlsplit(url)
    host, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise CodeNotFetched(f"{host} could not be found: {error}.", permanent=False) from error
    addresses = [ipaddress.ip_address(str(entry[4][0])) for entry in found]
    if host not in settings.TRAINHALL_FETCH_HOSTS and not all(address.is_global for address in addresses):
        raise CodeNotFetched(git_address.words_of_private(host), permanent=True)
    address = addresses[0]
    return f"{host}:{port}:{f'[{address}]' if address.version == 6 else address}"


class _Git:
    def __init__(self, folder: Path, url: str, pin: str, deadline: float) -> None:
        self.folder, self.url, self.pin, self.deadline = folder, url, pin, deadline

    def fetch(self, ref: str) -> str:
        try:
            self.run("fetch", "-q", "--depth=1", "--no-tags", self.url, ref)
            return self.run("rev-parse", "FETCH_HEAD^{commit}")
        except CodeNotFetched:
            # old and plain servers hand out neither shallow copies nor a commit by its name: take all, then look
            self.run("fetch", "-q", self.url, "+refs/*:refs/theirs/*", "HEAD")
            for name in (f"refs/theirs/heads/{ref}", f"refs/theirs/tags/{ref}", "FETCH_HEAD" if ref == "HEAD" else ref):
                try:
                    return self.run("rev-parse", "--verify", "-q", f"{name}^{{commit}}")
                except CodeNotFetched:
                    continue
            raise CodeNotFetched(f"{self.url} has no branch, tag or commit {ref!r}.", permanent=True) from None

    def run(self, *arguments: str) -> str:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise CodeNotFetched(f"{self.url} did not answer within {TIMEOUT:.0f} s.", permanent=False)
        command = [
            "git",
            "-c",
            f"http.curloptResolve={self.pin}",
            "-c",
            "http.followRedirects=false",
            "-c",
            "core.hooksPath=/dev/null",
            *arguments,
        ]
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.folder),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "https:http",
            "LC_ALL": "C.UTF-8",
        }
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, timeout=left, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise CodeNotFetched(f"{self.url} did not answer within {TIMEOUT:.0f} s.", permanent=False) from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["git failed"]
            passing = any(word in said[0].lower() for word in PASSING)
            raise CodeNotFetched(f"{self.url}: {said[0][:300]}", permanent=not passing)
        return done.stdout.decode(errors="replace").strip()
