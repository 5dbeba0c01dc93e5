"""The portal's REST in Python: Client().submit("job.yaml").wait()."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.parse
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from trainhall.batches import new_id
from trainhall.documents import Document, read_document, read_files
from trainhall.errors import TrainhallError
from trainhall.moments import moment
from trainhall.settings import url_and_token
from trainhall.web import Answer, BadAddress, Web, is_sendable

TIMEOUT = 30.0
TRIES = 4
PASSING = {502, 503, 504}  # the portal restarts, or a proxy before it cannot reach it
FINAL_STATES = ("succeeded", "failed", "cancelled")
DocumentLike = Union[Mapping[str, Any], str, "os.PathLike[str]", Document, None]


class Client:
    """One person's way to the portal; address and token come from `trainhall login`, or from the environment."""

    agent = "trainhall-python/0.1"

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None) -> None:
        self.url, self.token = url_and_token(url, token)
        if not is_sendable(self.token):
            raise TrainhallError(
                "bad_token", "What is kept as your token is none: run `trainhall login {}`.".format(self.url)
            )
        try:
            self._web = Web(self.url, TIMEOUT)
        except BadAddress as error:
            raise TrainhallError("bad_address", str(error)) from None

    # Jobs

    def submit(
        self,
        document: DocumentLike = None,
        files: Union[Mapping[str, str], Sequence[str], None] = None,
        *,
        idempotency_key: Optional[str] = None,
        **fields: Any,
    ) -> "Job":
        """Submit a document (a dict, or the path of a YAML or JSON file), or its fields as arguments.

        `files` are texts by name, or paths. A repeat after a lost answer gives the first job, not a second one.
        """
        asked = make_document(document, files, fields)
        headers = {"Idempotency-Key": idempotency_key or new_id()}
        data = self.call("POST", "jobs/", asked.encode(), asked.content_type, headers, repeatable=True)
        return Job(self, data)

    def explain(self, document: DocumentLike = None, files: Any = None, **fields: Any) -> Dict[str, Any]:
        """Would it start now, wait, or never run? Nothing is submitted."""
        asked = make_document(document, files, fields)
        return self.call("POST", "forecast/", asked.encode(), asked.content_type, repeatable=True)

    def upload(self, folder: str) -> str:
        """Send a folder of code; returns the digest for `code: {upload: …}`."""
        from trainhall.packing import pack

        return str(self.send_archive(pack(folder).body)["sha256"])

    def send_archive(self, body: bytes) -> Dict[str, Any]:
        mark = "trainhall-" + new_id()
        head = (
            '--{}\r\nContent-Disposition: form-data; name="file"; filename="code.tar.gz"\r\n'
            "Content-Type: application/gzip\r\n\r\n".format(mark)
        )
        form = head.encode() + body + "\r\n--{}--\r\n".format(mark).encode()
        # the portal keeps archives by their digest: sending one twice keeps one
        return self.call("POST", "uploads/", form, "multipart/form-data; boundary=" + mark, repeatable=True)

    def job(self, job_id: str) -> "Job":
        return Job(self, self.get("jobs/{}/".format(quote(job_id))))

    def jobs(self, *, most: int = 200, **filters: Any) -> List["Job"]:
        """The newest first; filters are namespace, status (several by commas), user, tag, q, since."""
        found: List[Job] = []
        path = "jobs/?" + urllib.parse.urlencode({"limit": min(most, 200), **given(filters)})
        while path and len(found) < most:
            page = self.get(path)
            found += [Job(self, row) for row in page.get("results", [])]
            following = page.get("next")
            # only the query of it: the portal may know itself by another name than we do
            path = "jobs/?" + urllib.parse.urlsplit(following).query if following else ""
        return found[:most]

    # The rest

    def get(self, path: str) -> Dict[str, Any]:
        return self.call("GET", path, repeatable=True)

    def post(self, path: str, document: Any = None, *, repeatable: bool = False) -> Dict[str, Any]:
        body = json.dumps({} if document is None else document).encode()
        return self.call("POST", path, body, "application/json", repeatable=repeatable)

    def call(
        self,
        method: str,
        path: str,
        body: Optional[bytes] = None,
        content_type: str = "",
        headers: Optional[Dict[str, str]] = None,
        *,
        repeatable: bool = False,
    ) -> Dict[str, Any]:
        """One request; what may be repeated is, while no answer comes or the portal restarts. Raise TrainhallError."""
        headers = {"Authorization": "Bearer " + self.token, "User-Agent": self.agent, **(headers or {})}
        headers["Accept"] = "application/json"
        if content_type:
            headers["Content-Type"] = content_type
        for left in reversed(range(TRIES if repeatable else 1)):
            pause = 0.5 * 2 ** (TRIES - 1 - left)
            try:
                answer = self._web.request(method, "/api/v1/" + path, body, headers, repeatable=repeatable)
            except (OSError, http.client.HTTPException) as error:
                if not left:
                    text = "{} cannot be reached: {}".format(self.url, error or type(error).__name__)
                    raise TrainhallError("unreachable", text) from error
            else:
                if answer.status not in PASSING or not left:
                    return read_answer(answer, self.url)
                after = answer.headers.get("Retry-After", "")
                pause = min(30.0, float(after)) if after.isdigit() else pause
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")


class Job:
    """A job as the portal last described it; refresh() asks again."""

    def __init__(self, client: Client, data: Dict[str, Any]) -> None:
        self.client = client
        self.data = data

    def __repr__(self) -> str:
        return "<Job {} {}>".format(self.id, self.status)

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def status(self) -> str:
        return str(self.data.get("status", ""))

    @property
    def url(self) -> str:
        return str(self.data.get("url", ""))

    @property
    def reason(self) -> str:
        return str((self.data.get("reason") or {}).get("text") or "")

    @property
    def is_final(self) -> bool:
        return self.status in FINAL_STATES

    @property
    def exit_code(self) -> Optional[int]:
        """Of the job, else of the first worker that failed; None where it is not known."""
        if isinstance(self.data.get("exit_code"), int):
            return int(self.data["exit_code"])
        codes = [worker.get("exit_code") for worker in self.data.get("workers") or []]
        return next((code for code in codes if isinstance(code, int) and code), None)

    def refresh(self) -> "Job":
        self.data = self.client.get(self._path())
        return self

    def wait(self, timeout: Optional[float] = None, poll: float = 1.0) -> "Job":
        """Until it has ended; raise TimeoutError if that takes longer than `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.refresh().is_final:
            if end is not None and time.monotonic() >= end:
                raise TimeoutError("Job {} is still {} after {:g} s.".format(self.id, self.status, timeout))
            time.sleep(poll)
        return self

    def log_lines(
        self,
        *,
        follow: bool = False,
        worker: Optional[str] = None,
        attempt: Optional[int] = None,
        grep: Optional[str] = None,
        ignore_case: bool = False,
        literal: bool = False,
        level: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        poll: float = 1.0,
    ) -> Iterator[Dict[str, Any]]:
        """Every line so far as {attempt, worker, seq, time, text, level}; with `follow` until the job has ended.

        `grep` leaves those in which an RE2 pattern (plain text where `literal`) is found; the portal searches.
        `level` is one or several (by comma) of error, warning, info, debug and plain; a plain line has no `level`.
        `since` and `until` are moments, such as 2026-11-30 12:03, or 10m for ten minutes ago.
        """
        asked = given(
            {"worker": worker, "attempt": attempt, "level": level, "from": moment(since), "to": moment(until)}
        )
        if grep:
            asked.update(given({"q": grep, "case": "i" if ignore_case else None, "literal": 1 if literal else None}))
        after = 0
        while True:
            # asked before the lines: what is written until the end is then still read
            ended = not follow or self.refresh().is_final
            while True:
                query = urllib.parse.urlencode({"after": after, "limit": 1000, **asked})
                page = self.client.get(self._path("logs/?" + query))
                lines = page.get("lines", [])
                for line in lines:
                    yield line
                before, after = after, page.get("next") or after
                # a search says when it is through: it may have to look on though this answer has no line
                if page.get("done", not lines or after == before):
                    break
            if ended:
                return
            time.sleep(poll)

    def logs(self, *, follow: bool = False, worker: Optional[str] = None) -> Iterator[str]:
        """The text of every line so far; with `follow` until the job has ended."""
        for line in self.log_lines(follow=follow, worker=worker):
            yield line["text"]

    def metrics(self, key: str) -> List[Dict[str, Any]]:
        """Every point of a metric, a series per attempt and rank: {attempt, rank, step: [], time: [], value: []}."""
        query = urllib.parse.urlencode({"key": key, "buckets": 0})
        found = self.client.get(self._path("series/?" + query)).get("series", [])
        return [{**one, "value": [float(value) for value in one.get("value", [])]} for one in found]

    def stop(self, reason: str = "") -> "Job":
        """Ask it to end: SIGTERM, its grace, then SIGKILL."""
        return self._do("cancel/", {"reason": reason} if reason else {})

    def hold(self) -> "Job":
        return self._do("hold/")

    def release(self) -> "Job":
        return self._do("release/")

    def archive(self) -> "Job":
        """Take it, once it is over, out of the lists. Nothing is deleted."""
        return self._do("archive/")

    def unarchive(self) -> "Job":
        return self._do("unarchive/")

    def why(self) -> Dict[str, Any]:
        """Why it stands where it stands, and its place in the queue."""
        return self.client.get(self._path("why/"))

    def clone(
        self,
        changes: Optional[Mapping[str, Any]] = None,
        *,
        latest: bool = False,
        idempotency_key: Optional[str] = None,
    ) -> "Job":
        """Submit it again with some fields set by dotted name: job.clone({"parameters.lr": 1e-4, "resources.gpus": 4}).

        None takes a field out. Code from git is the commit that ran; `latest` looks its branch up again.
        """
        wish = json.dumps({"set": dict(changes or {}), "code": "latest" if latest else "same"}).encode()
        headers = {"Idempotency-Key": idempotency_key or new_id()}
        return Job(
            self.client,
            self.client.call("POST", self._path("clone/"), wish, "application/json", headers, repeatable=True),
        )

    def _do(self, what: str, document: Any = None) -> "Job":
        self.data = self.client.post(self._path(what), document, repeatable=True)
        return self

    def _path(self, rest: str = "") -> str:
        return "jobs/{}/{}".format(quote(self.id), rest)


def make_document(document: DocumentLike, files: Any, fields: Mapping[str, Any]) -> Document:
    """One document of what was given. Raise TrainhallError where parts of it cannot be put together."""
    if isinstance(document, Document):
        asked = document
    elif document is None or isinstance(document, Mapping):
        asked = Document(dict(document or {}))
    else:
        asked = read_document(os.fspath(document))
    if fields:
        if asked.data is None:
            raise TrainhallError("yaml_as_it_is", "A YAML file is sent as it is; change the file, or pass a dict.")
        asked = Document({**asked.data, **fields})
    if files:
        asked = asked.with_code({"files": dict(files) if isinstance(files, Mapping) else read_files(list(files))})
    return asked


def read_answer(answer: Answer, url: str) -> Dict[str, Any]:
    """The document of an answer. Raise TrainhallError with the portal's own words where it is an error."""
    try:
        data = json.loads(answer.body.decode()) if answer.body else {}
    except (ValueError, RecursionError):
        data = None
    if 200 <= answer.status < 300 and isinstance(data, dict):
        return data
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict):
        text = str(error.get("message") or "The portal answered {}.".format(answer.status))
        if answer.status == 401:
            text += " Make another on {0}/me/tokens/ and run `trainhall login {0}`.".format(url)
        raise TrainhallError(str(error.get("code", "error")), text, error.get("fields"), answer.status)
    if 300 <= answer.status < 400:
        text = "{} sends us on to {}; log in with that address.".format(url, answer.headers.get("Location"))
        raise TrainhallError("moved", text, status=answer.status)
    if answer.status == 404:
        text = "The portal at {} does not know this (404): it may be an older one, or not a portal.".format(url)
        raise TrainhallError("not_found", text, status=404)
    raise TrainhallError(
        "bad_answer", "{} answered {}, not as a portal does.".format(url, answer.status), status=answer.status
    )


def given(values: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "")}


def quote(text: str) -> str:
    return urllib.parse.quote(str(text), safe="")
