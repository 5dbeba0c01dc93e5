"""Settings from the environment: typed, and loud when wrong."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def env_str(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def env_int(name: str, default: int, *, minimum: int = 0, maximum: int = 2**31) -> int:
    raw = env_str(name)
    if not raw:
        return default
    if not raw.isdecimal() or not minimum <= int(raw) <= maximum:
        raise ImproperlyConfigured(f"{name} must be a whole number from {minimum} to {maximum}, not {raw!r}.")
    return int(raw)


def env_bool(name: str, *, default: bool) -> bool:
    raw = env_str(name).lower()
    if raw in ("",):
        return default
    if raw not in ("1", "0", "true", "false", "yes", "no", "on", "off"):
        raise ImproperlyConfigured(f"{name} must be 1 or 0, not {raw!r}.")
    return raw in ("1", "true", "yes", "on")


def env_list(name: str) -> list[str]:
    return [part.strip() for part in env_str(name).split(",") if part.strip()]


def env_path(name: str, default: Path) -> Path:
    return Path(env_str(name, str(default))).expanduser().resolve()


def env_url(name: str, default: str, *, schemes: tuple[str, ...] = ("http", "https")) -> str:
    raw = env_str(name, default)
    parts = urlsplit(raw)
    if parts.scheme not in schemes or not (parts.netloc or parts.path):
        raise ImproperlyConfigured(f"{name} must be a URL that begins with {' or '.join(schemes)}, not {raw!r}.")
    return raw.rstrip("/")


def env_secret(name: str) -> str:
    """The value of NAME, or of the file named by NAME_FILE."""
    path = env_str(f"{name}_FILE")
    if not path:
        return env_str(name)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}_FILE: cannot read {path}: {error}") from error


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
