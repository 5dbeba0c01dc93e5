"""What is wrong with the address of a repository before anybody calls it: one set of words for all doors (pure)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

SCHEMES = ("https", "http")
_BY_SSH = re.compile(r"(?:ssh://|git\+ssh://)?(?:[^@/\s]+@)(?P<host>[^:/\s]+)(?::[0-9]+/|[:/])/?(?P<path>\S+)")
_BY_GIT = re.compile(r"(?:git|ssh)://(?P<host>[^:/@\s]+)(?::[0-9]+)?/(?P<path>\S+)")


def trouble(url: str) -> str:
    """Why a URL cannot be fetched at all, with the fix; empty where it can."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"is not a URL: {error}"
    if parts.scheme in SCHEMES and parts.hostname and port != 0:
        if parts.username or parts.password:
            return "must hold no user name or password: they would be shown to all who see the job"
        return ""
    fix = _BY_SSH.fullmatch(url) or _BY_GIT.fullmatch(url)
    instead = f"; write https://{fix['host']}/{fix['path']}" if fix and not url.startswith(SCHEMES) else ""
    return f"must be a URL that begins with https:// or http://{instead}"


def is_private(host: str) -> bool:
    """Of a host that is an address; what a name leads to is known when it is looked up."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def private_trouble(url: str, *, allowed: Collection[str]) -> str:
    """The words for a host whose address is private, where no admin lists it."""
    host = urlsplit(url).hostname or ""
    return words_of_private(host) if is_private(host) and host not in allowed else ""


def words_of_private(host: str) -> str:
    return f"{host} has a private address; an admin can allow it in TRAINHALL_FETCH_HOSTS."
