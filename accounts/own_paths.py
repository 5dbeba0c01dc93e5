"""Where a person may be sent after signing in: a path of this site and nothing else (pure but for Django's own check)."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from django.utils.http import url_has_allowed_host_and_scheme

PRINTABLE = re.compile(r"/[!-\[\]-~]*")  # ASCII without space, controls and the backslash
HOME = "/"


def own_path(wanted: str | None) -> str:
    """`wanted` if it can only be a path of ours, else the home page.

    Decoded twice, because something between us and the browser may decode once more than it should.
    """
    if not wanted or not PRINTABLE.fullmatch(wanted):
        return HOME
    path = urlsplit(wanted).path
    for _time in range(3):
        if path.startswith(("//", "/\\")) or not path.startswith("/") or not path.isprintable():
            return HOME
        path = unquote(path)
    return wanted if url_has_allowed_host_and_scheme(wanted, allowed_hosts=None) else HOME
