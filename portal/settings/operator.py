"""Where the routes for operators are answered: beside all the others, at an address of their own, or nowhere.

Which of the two a process answers for is said to it when it is started, and never by what a caller sends.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from portal.settings.env import env_str, env_url

BIND, URL, SURFACE = "TRAINHALL_OPERATOR_BIND", "TRAINHALL_OPERATOR_URL", "TRAINHALL_SURFACE"
ADDRESS = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[A-Za-z0-9.-]+)):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Operator:
    """`host` and `port` are empty where operators have no address of their own."""

    is_here: bool = True  # whether this process answers their routes
    is_apart: bool = False  # whether this process is the one at their own address
    host: str = ""
    port: int = 0
    url: str = ""  # what they open

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_operator(*, public: str) -> Operator:
    """TRAINHALL_OPERATOR_BIND: absent, `off`, or `host:port`, where a process with TRAINHALL_SURFACE=operator listens."""
    bind, surface = env_str(BIND), env_str(SURFACE, "main")
    if surface not in ("main", "operator"):
        raise ImproperlyConfigured(f"{SURFACE} must be main or operator, not {surface!r}.")
    if surface == "operator" and bind in ("", "off"):
        raise ImproperlyConfigured(f"{SURFACE}=operator needs the address of that process in {BIND}, as host:port.")
    if bind in ("", "off"):
        return Operator(is_here=not bind)
    host, port = _address(bind)
    url = _url(host, port, public=public)
    is_apart = surface == "operator"
    return Operator(is_here=is_apart, is_apart=is_apart, host=host, port=port, url=url)


def _address(bind: str) -> tuple[str, int]:
    found = ADDRESS.fullmatch(bind)
    if found is None or not 1 <= int(found["port"]) <= 65535:
        raise ImproperlyConfigured(f"{BIND} must be off, or host:port such as 127.0.0.1:8001, not {bind!r}.")
    return found["six"] or found["name"], int(found["port"])


def _url(host: str, port: int, *, public: str) -> str:
    if _is_everywhere(host) and not env_str(URL):
        raise ImproperlyConfigured(f"{BIND} listens on every address, so {URL} must say which one operators open.")
    url = env_url(URL, f"http://{Operator(host=host, port=port).authority}")
    ours, theirs = urlsplit(public), urlsplit(url)
    if theirs.netloc == ours.netloc:
        raise ImproperlyConfigured(f"{URL} and TRAINHALL_URL are one address ({theirs.netloc}).")
    if theirs.hostname == ours.hostname and theirs.scheme != ours.scheme:
        # cookies and HSTS know a host and no port: a browser would not keep a session at the one without TLS
        raise ImproperlyConfigured(
            f"{URL} and TRAINHALL_URL have the same host, so both must begin with {ours.scheme}://; browsers keep one set "
            "of cookies for a host."
        )
    return url


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
