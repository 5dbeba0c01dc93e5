"""Files of a job to this machine: whole or not at all, going on where a connection broke, also in another call of the command.

What has come lies beside its target as `.NAME.VERSION.part`; the version is the portal's ETag, so that parts of two versions of
a file are never put together.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import time
import urllib.parse
from typing import Any, Dict, Iterator, List, NamedTuple

from trainhall.client import PASSING, Client, Job, quote, read_answer
from trainhall.errors import TrainhallError
from trainhall.web import Answer, connect

TRIES = 6  # without one byte of progress
PAUSE, LONGEST_PAUSE = 0.5, 10.0
PIECE = 256 * 2**10
TIMEOUT = 60.0
MOST_WORDS = 2**20  # bytes of an answer that is an error
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class Wanted(NamedTuple):
    path: str  # of the job
    size: int
    target: str


class _Broken(Exception):
    """The connection ended, or the portal is away: another try may help."""


def list_files(job: Job) -> Dict[str, Any]:
    listing = job.client.get("jobs/{}/files/".format(quote(job.id)))
    if listing.get("problem"):
        raise TrainhallError("files_away", str(listing["problem"]))
    return listing


def wanted_of(listing: Dict[str, Any], path: str, destination: str) -> List[Wanted]:
    """What `cp` of this path is to fetch, and where to: a file, or all below a folder. Raise TrainhallError."""
    files = listing.get("results", [])
    path = path.strip("/")
    into_folder = os.path.isdir(destination) or destination.endswith(("/", os.sep))
    for file in files:
        if file["path"] == path:
            target = os.path.join(destination, _safe(path)[-1]) if into_folder else destination
            return [Wanted(path, int(file["size"]), target)]
    if listing.get("is_cut"):
        raise TrainhallError(
            "cut", "The job left more files than are listed; name one file, or fetch the zip on its page."
        )
    above = path.rpartition("/")[0]
    found = []
    for file in files:
        if not path or file["path"].startswith(path + "/"):
            below = _safe(file["path"][len(above) + 1 if above else 0 :])
            found.append(Wanted(file["path"], int(file["size"]), os.path.join(destination, *below)))
    if not found:
        raise TrainhallError("not_found", "The job has no file {!r}; see `trainhall files`.".format(path))
    return found


def download(client: Client, job_id: str, wanted: Wanted, *, force: bool = False) -> int:
    """Fetch one file; returns its bytes. Raise TrainhallError where that cannot be done; what has come is kept."""
    refuse_to_replace(wanted.target, force=force)
    part = _Part(client, job_id, wanted)
    left = TRIES
    while True:
        before = part.size
        try:
            size = part.fetch()
            break
        except (_Broken, OSError, http.client.HTTPException) as error:
            left = TRIES if part.size > before else left - 1
            if not left:
                words = "{} cannot be reached: {}".format(client.url, str(error) or type(error).__name__)
                raise TrainhallError("unreachable", words + part.is_kept()) from None
            time.sleep(min(LONGEST_PAUSE, PAUSE * 2 ** (TRIES - 1 - left)))
    refuse_to_replace(wanted.target, force=force)
    part.put_in_place(wanted.target)
    return size


def refuse_to_replace(target: str, *, force: bool) -> None:
    if os.path.isdir(target):
        raise TrainhallError("exists", "{} is a folder.".format(target))
    if not force and os.path.lexists(target):
        raise TrainhallError("exists", "{} is there already; --force replaces it.".format(target))


class _Part:
    """The bytes that have come of one version of a file."""

    def __init__(self, client: Client, job_id: str, wanted: Wanted) -> None:
        self.client = client
        self.address = "/api/v1/jobs/{}/files/{}".format(quote(job_id), urllib.parse.quote(wanted.path))
        self.folder, self.name = os.path.split(os.path.abspath(wanted.target))
        self.etag = ""
        self.path = ""  # known once the portal has named the version
        self.size = 0

    def is_kept(self) -> str:
        return ". What has come is kept: the same command goes on there" if self.size else ""

    def fetch(self) -> int:
        """One try; returns the size of the whole file, which is then here. Raise _Broken where another may help."""
        connection = connect(self.client.url, TIMEOUT)
        try:
            response = self._ask(connection)
            if response.status == 200 and self._is_begun(response):  # an earlier call left a part of this version
                connection.close()
                response = self._ask(connection)
            start, total = self._place_of(response)
            self._save(response, start)
        finally:
            connection.close()
        if self.size != total:
            raise _Broken("the connection ended after {} of {} bytes".format(self.size, total))
        return total

    def _ask(self, connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
        headers = {"Authorization": "Bearer " + self.client.token, "User-Agent": self.client.agent}
        if self.size:
            headers["Range"], headers["If-Range"] = "bytes={}-".format(self.size), self.etag
        prefix = urllib.parse.urlsplit(self.client.url).path.rstrip("/")
        connection.request("GET", prefix + self.address, headers=headers)
        response = connection.getresponse()
        if response.status in PASSING or response.status == 429:
            raise _Broken("it answered {}".format(response.status))
        if response.status not in (200, 206):
            read_answer(Answer(response.status, response.headers, response.read(MOST_WORDS)), self.client.url)
            raise TrainhallError("bad_answer", "{} answered {}.".format(self.client.url, response.status))
        return response

    def _is_begun(self, response: http.client.HTTPResponse) -> bool:
        """Take note of the version that comes; True where a part of it is here from an earlier try."""
        etag = response.headers.get("ETag", "")
        if etag and etag == self.etag:
            return False  # the answer is the whole although a part was asked for
        if self.path and os.path.isfile(self.path):
            os.unlink(self.path)  # of a version that is no more
        self.etag = etag
        mark = hashlib.sha256((self.address + etag).encode()).hexdigest()[:16]
        self.path = os.path.join(self.folder, ".{}.{}.part".format(self.name[:80], mark))
        with self._on_disk():
            os.makedirs(self.folder, exist_ok=True)
        self.size = os.path.getsize(self.path) if etag and os.path.isfile(self.path) else 0
        total = response.headers.get("Content-Length") or ""
        if total.isdigit() and self.size >= int(total):
            self.size = 0
        return self.size > 0

    def _place_of(self, response: http.client.HTTPResponse) -> "tuple[int, int]":
        """Where the body of this answer belongs, and the size of the whole."""
        if response.status == 206:
            match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if match is None or int(match[1]) != self.size:
                raise TrainhallError("bad_answer", "{} sent another part than was asked for.".format(self.client.url))
            return self.size, int(match[3])
        length = response.headers.get("Content-Length", "")
        if not length.isdigit():
            raise TrainhallError("bad_answer", "{} does not say how long the file is.".format(self.client.url))
        return 0, int(length)

    def _save(self, response: http.client.HTTPResponse, start: int) -> None:
        with self._on_disk():
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        # no buffer: what is counted is there
        with open(handle, "wb", buffering=0) as file:
            with self._on_disk():
                file.truncate(start)
                file.seek(start)
            self.size = start
            while True:
                piece = memoryview(response.read(PIECE))
                if not piece:
                    return
                while piece:
                    with self._on_disk():
                        written = file.write(piece)
                    self.size += written
                    piece = piece[written:]

    @contextlib.contextmanager
    def _on_disk(self) -> Iterator[None]:
        """What goes wrong in here is of this machine: no room, no right. No other try can help."""
        try:
            yield
        except OSError as error:
            words = "{}: {}".format(os.path.join(self.folder, self.name), error.strerror or error)
            raise TrainhallError("not_written", words + self.is_kept()) from None

    def put_in_place(self, target: str) -> None:
        with self._on_disk():
            os.replace(self.path, target)
            ours = re.compile(re.escape(".{}.".format(self.name[:80])) + r"[0-9a-f]{16}\.part")
            for name in os.listdir(self.folder):
                if ours.fullmatch(name):  # of versions that broken downloads were of
                    os.unlink(os.path.join(self.folder, name))


def _safe(path: str) -> List[str]:
    """The parts of a path that the job made up, if they lead nowhere but below."""
    parts = path.split("/")
    odd = "\\:" if os.name == "nt" else ""
    if any(part in ("", ".", "..") or "\x00" in part or any(mark in part for mark in odd) for part in parts):
        raise TrainhallError("bad_name", "{!r} is no name that a file can have here.".format(path))
    return parts
