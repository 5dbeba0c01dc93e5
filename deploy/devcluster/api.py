"""The few requests to the API server that bringing a cluster up needs, as its admin."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from deploy.devcluster.settings import Settings

MERGE = "application/merge-patch+json"
PATCH = "application/json-patch+json"


class Refused(Exception):
    """The server answered, and not with what was asked."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status


class Api:
    """One cluster's API server. No proxy of the environment is asked: it is on loopback."""

    def __init__(self, settings: Settings) -> None:
        pki = settings.folder / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self.server = settings.server
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def send(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> Any:
        request = urllib.request.Request(
            self.server + path,
            method=method,
            headers={"Content-Type": kind, "Accept": "application/json"},
            data=None if body is None else json.dumps(body).encode(),
        )
        try:
            with self.opener.open(request, timeout=10) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from error
        return json.loads(text) if text.startswith(b"{") else text.decode()

    def ready(self) -> bool:
        try:
            return bool(self.send("GET", "/readyz") == "ok")
        except (OSError, Refused):
            return False

    def find(self, path: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self.send("GET", path)
        except Refused as error:
            if error.status == 404:
                return None
            raise
        return found

    def create(self, path: str, body: dict[str, Any]) -> bool:
        """False where it exists already."""
        try:
            self.send("POST", path, body)
        except Refused as error:
            if error.status != 409:
                raise
            return False
        return True


def is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
