"""The audit trail: every request that changes something leaves one row, in the transaction of the change."""

from __future__ import annotations

import ipaddress
import math
import re
from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request

from accounts.models import AuditEvent, User

# a key with such a part never keeps its value, whoever calls
SECRET_KEYS = re.compile(
    r"(password|passwd|secret|token|ciphertext|credential|authorization|cookie|private_?key)", re.I
)
HIDDEN = "(hidden)"


def without_secrets(value: Any) -> Any:
    """A copy in which the values under keys that sound like secrets are replaced."""
    if isinstance(value, dict):
        return {
            str(key): HIDDEN if SECRET_KEYS.search(str(key)) and inner not in (None, "") else without_secrets(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [without_secrets(item) for item in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value).replace("\0", "\ufffd")


def address_of(request: HttpRequest | Request) -> str | None:
    """Where the connection comes from. Forwarded headers are never read: anybody can send them."""
    text = request.META.get("REMOTE_ADDR", "")
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None  # a Unix socket, or a test client without an address


def event(
    actor: User | None,
    action: str,
    *,
    target: str = "",
    namespace: str = "",
    before: Any = None,
    after: Any = None,
    request: HttpRequest | Request | None = None,
    via: str = "",
) -> AuditEvent:
    """A row that is not written yet, for who writes many at once; see `record`."""
    if not via:
        via = "system" if request is None else "api" if request.path.startswith("/api/") else "page"
    return AuditEvent(
        actor=actor.username if actor else "",
        actor_subject=actor.subject if actor else "",
        action=action,
        target=target.replace("\0", "\ufffd")[:200],
        namespace=namespace,
        before=without_secrets(before),
        after=without_secrets(after),
        address=address_of(request) if request is not None else None,
        via=via,
    )


def record(
    actor: User | None,
    action: str,
    *,
    target: str = "",
    namespace: str = "",
    before: Any = None,
    after: Any = None,
    request: HttpRequest | Request | None = None,
    via: str = "",
) -> AuditEvent:
    """Write one row. Call it inside the transaction of what it tells about, so that neither exists without the other.

    `namespace` is a slug. `via` defaults to `api` or `page` by the request's path, and to `system` without a request.
    """
    row = event(actor, action, target=target, namespace=namespace, before=before, after=after, request=request, via=via)
    row.save()
    return row
