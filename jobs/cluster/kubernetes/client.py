"""The one way to an API server: plain dicts in and out, a time-out on every call, errors in our words."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import urlencode

import orjson
import urllib3
from kubernetes.client import ApiClient, ApiException, Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from jobs.cluster.kubernetes.setting import Users
from jobs.cluster.port import Manifest, Person
from jobs.exceptions import ClusterError, ClusterForbids, ClusterRefuses, ClusterUnavailable

CONNECT, READ = 5.0, 30.0  # seconds; the client's own default is to wait for ever
LONGEST_MESSAGE = 1000  # characters of an error that are kept
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"  # JSON is YAML
EXTRA = "Impersonate-Extra-trainhall.io%2Fvia"  # a key with a domain, percent-encoded; see the admission policies

Query: TypeAlias = Mapping[str, str | int]


class NotThere(ClusterError):
    """404: no such object, or no such namespace."""


class Taken(ClusterError):
    """409: an object of that name exists, or is not the one that was meant."""


class TooOld(ClusterError):
    """410: the resource version is forgotten; list again."""


class Changed(ClusterError):
    """422 for a JSON patch: a value that it tests is another one, or the object may not become so."""


class Api:
    """One account's requests. `person` in a call means: with that person's rights, not with the account's."""

    def __init__(self, client: ApiClient, users: Users) -> None:
        self._client = client
        self.users = users

    @classmethod
    def of(cls, kubeconfig: str, context: str, users: Users) -> Api:
        """The account of a kubeconfig's context; without a kubeconfig that of the pod this runs in. Raise ClusterUnavailable."""
        configuration = type.__call__(Configuration)  # not the process-wide default
        try:
            if kubeconfig:
                load_kube_config(  # type: ignore[no-untyped-call]
                    kubeconfig, context=context or None, client_configuration=configuration
                )
            else:
                load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except (ConfigException, OSError) as error:
            raise ClusterUnavailable(f"Its kubeconfig cannot be used: {error}") from error
        configuration.retries = False  # who calls knows when to ask again
        configuration.connection_pool_maxsize = 16
        return cls(ApiClient(configuration), users)

    # One object

    def get(self, path: str, query: Query | None = None, *, person: Person | None = None) -> Manifest:
        return self._ask("GET", path, query, person=person)

    def create(self, path: str, body: Manifest, *, person: Person | None = None) -> Manifest:
        # without "Strict" a field that the server does not know is dropped in silence
        return self._ask("POST", path, {"fieldValidation": "Strict"}, body, person=person)

    def patch(self, path: str, operations: Sequence[Manifest]) -> Manifest:
        """A JSON patch; raise Changed where one of its tests fails."""
        try:
            return self._ask("PATCH", path, None, list(operations), content=JSON_PATCH)
        except ClusterRefuses as error:
            raise Changed(str(error)) from error

    def apply(self, path: str, body: Manifest, *, manager: str) -> Manifest:
        """Server-side apply: what we say is ours, whatever anybody wrote there."""
        query: Query = {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"}
        return self._ask("PATCH", path, query, body, content=APPLY)

    def delete(
        self,
        path: str,
        *,
        uid: str = "",
        person: Person | None = None,
        dry_run: bool = False,
        grace: int | None = None,
        foreground: bool = False,
    ) -> None:
        """Everything is in the body: with a body the server ignores `?dryRun=All`, and would really delete."""
        body: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if dry_run:
            body["dryRun"] = ["All"]
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        if foreground:
            body["propagationPolicy"] = "Foreground"
        self._ask("DELETE", path, None, body, person=person)

    # Many

    def list(self, path: str, query: Query | None = None, *, page: int = 500) -> tuple[list[Manifest], str]:
        """All objects, and the resource version they are of."""
        items: list[Manifest] = []
        version = ""
        for some, of in self.pages(path, query, page=page):
            items += some
            version = of
        return items, version

    def pages(
        self, path: str, query: Query | None = None, *, page: int = 500
    ) -> Iterator[tuple[Sequence[Manifest], str]]:
        """The same piece by piece, for who need not have all of them twice."""
        more: dict[str, str | int] = {}
        while True:
            answer = self._ask("GET", path, {**(query or {}), "limit": page, **more})
            metadata = answer.get("metadata")
            if not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
                raise ClusterUnavailable("It answers with what is no list.")
            yield answer.get("items") or [], str(metadata["resourceVersion"])
            if not metadata.get("continue"):
                return
            more = {"continue": metadata["continue"]}

    def chunks(self, path: str, query: Query, *, read: float) -> Iterator[bytes]:
        """A stream as it comes; `read` is the longest silence in seconds."""
        with _in_our_words():
            response = self._send("GET", path, query, None, person=None, content="", read=read)
        chunks = response.stream(amt=None, decode_content=False)
        try:
            while True:
                with _in_our_words():
                    chunk = next(chunks, None)
                if chunk is None:
                    return
                yield chunk
        finally:
            response.close()  # what was not read is still coming: the connection cannot be used again

    def lines(self, path: str, query: Query, *, read: float) -> Iterator[bytes]:
        """The lines of a watch, of which the server bounds the length; the last may have no end."""
        rest = b""
        for chunk in self.chunks(path, query, read=read):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
        if rest:
            yield rest

    # For who speaks HTTP asynchronously

    @property
    def host(self) -> str:
        return str(self._client.configuration.host)

    def headers(self) -> dict[str, str]:
        """Who asks. A token in a pod's file is read anew from time to time, so ask for each request."""
        plain: dict[str, str] = {"Accept": "application/json", "User-Agent": "trainhall"}
        self._client.update_params_for_auth(plain, [], ["BearerToken"], "", "GET", None)
        return plain

    def impersonation(self, person: Person | None) -> Iterable[tuple[str, str]]:
        """Header lines that make a request this person's; one for each group."""
        if person is None:
            return
        yield "Impersonate-User", self.users.name(person)
        for group in self.users.groups(person):
            yield "Impersonate-Group", group
        yield EXTRA, "portal"

    def tls(self) -> ssl.SSLContext:
        configuration = self._client.configuration
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
        if not configuration.verify_ssl:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    # The wire

    def _ask(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Any = None,
        *,
        person: Person | None = None,
        content: str = "application/json",
    ) -> Manifest:
        with _in_our_words():
            response = self._send(method, path, query, body, person=person, content=content, read=READ)
            answer = orjson.loads(response.data)
            response.release_conn()
        if not isinstance(answer, dict):
            raise ClusterUnavailable(f"It answers with what is no object: {_short(str(answer))}")
        return answer

    def _send(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Any,
        *,
        person: Person | None,
        content: str,
        read: float,
    ) -> urllib3.BaseHTTPResponse:
        plain = self.headers()
        if content and method != "GET":
            plain["Content-Type"] = content
        headers = urllib3.HTTPHeaderDict(plain)  # a plain dict holds one group only
        for name, value in self.impersonation(person):
            # the wire takes bytes, which http.client makes of Latin-1; Kubernetes reads them as UTF-8
            headers.add(name, value.encode().decode("latin-1"))
        address = f"{self._client.configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        answer = self._client.call_api(method, address, headers, body, None, (CONNECT, read)).response
        if answer.status >= 400:
            raise _error(answer.status, answer.headers, answer.data)
        return answer  # type: ignore[no-any-return]


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except ApiException as error:  # of the client's own making: the request was never answered
        raise ClusterUnavailable(f"It cannot be reached: {_short(str(error.reason))}") from error
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise ClusterUnavailable(f"It does not answer: {_short(str(error))}") from error


def _error(status: int, headers: Mapping[str, str], data: bytes) -> ClusterError:
    message = _message(data) or f"HTTP {status}"
    if status in (400, 405, 406, 413, 415, 422):
        return ClusterRefuses(message)
    if status == 403:
        return ClusterForbids(message)
    if status == 404:
        return NotThere(message)
    if status == 409:
        return Taken(message)
    if status == 410:
        return TooOld(message)
    wait = headers.get("Retry-After", "")
    return ClusterUnavailable(message, retry_after=float(wait) if wait.isdecimal() else None)


def _message(data: bytes) -> str:
    """The server's sentence, out of its Status object."""
    try:
        return _short(str(json.loads(data)["message"]))
    except (ValueError, KeyError, TypeError):
        return _short(data.decode(errors="replace"))


def _short(text: str) -> str:
    return " ".join(text.split())[:LONGEST_MESSAGE]
