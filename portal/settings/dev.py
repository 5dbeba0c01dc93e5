"""`make run`: one machine, loopback only, embedded PostgreSQL and Valkey, the local cluster."""

from __future__ import annotations

from portal.settings.base import *  # noqa: F403 - settings modules stack
from portal.settings.base import CSRF_TRUSTED_ORIGINS, PORT, SECRET_KEY, TRAINHALL_CLUSTERS, TRAINHALL_ORIGINS

# `manage.py up` makes a key once and hands it to its children; a bare `manage.py check` runs on this one.
SECRET_KEY = SECRET_KEY or "only-for-commands-that-run-outside-manage-py-up"
TRAINHALL_CLUSTERS = TRAINHALL_CLUSTERS or "local"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
for _origin in (f"http://localhost:{PORT}", f"http://127.0.0.1:{PORT}"):
    if _origin not in TRAINHALL_ORIGINS:
        TRAINHALL_ORIGINS.append(_origin)
        CSRF_TRUSTED_ORIGINS.append(_origin)
