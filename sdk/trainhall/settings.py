"""Which portal this person talks to, and with which token: the environment, else ~/.config/trainhall/config.json (0600)."""

from __future__ import annotations

import json
import os
from typing import Dict, Optional

from trainhall.errors import TrainhallError


def settings_file() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "trainhall", "config.json")


def load() -> Dict[str, str]:
    """url, token, username, as far as they are known."""
    path = settings_file()
    found: Dict[str, str] = {}
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        found = {str(name): str(value) for name, value in kept.items()}
    except FileNotFoundError:
        found = {}
    except (OSError, ValueError, AttributeError) as error:
        raise TrainhallError(
            "bad_settings", "{} cannot be read: {}. Remove it and log in again.".format(path, error)
        ) from None
    url, token = os.environ.get("TRAINHALL_URL"), os.environ.get("TRAINHALL_API_TOKEN")
    if url:
        if not token and url.rstrip("/") != found.get("url"):
            found.pop("token", None)  # a token goes to the portal it was made for and to no other
        found["url"] = url.rstrip("/")
    if token:
        found["token"] = token
    return found


def save(values: Dict[str, str]) -> str:
    """Write them for this account alone; returns the path."""
    path = settings_file()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    handle = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        os.chmod(path + ".new", 0o600)  # also where the file was there already
        json.dump(values, file, indent=2)
        file.write("\n")
    os.replace(path + ".new", path)
    return path


def url_and_token(url: Optional[str], token: Optional[str]) -> "tuple[str, str]":
    """What was given, else what is known. Raise TrainhallError saying how to log in."""
    if not (url and token):
        known = load()
        if url and url.rstrip("/") != known.get("url"):
            known.pop("token", None)
        url, token = url or known.get("url"), token or known.get("token")
    if not url or not token:
        raise TrainhallError("not_logged_in", "Not logged in. Run `trainhall login URL` first.")
    return url.rstrip("/"), token
