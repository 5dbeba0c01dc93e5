"""`make run`: one machine, loopback only, embedded PostgreSQL and Valkey, the local cluster."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from portal.embedded.environment import adopt

adopt(Path(__file__).resolve().parent.parent.parent)  # before base reads the environment

from portal.settings.base import *  # noqa: E402, F403 - settings modules stack
from portal.settings.base import (  # noqa: E402
    CSRF_TRUSTED_ORIGINS,
    HAS_LOCAL_CLUSTER,
    INTERNAL_HOSTS,
    OPERATOR,
    PORT,
    SECRET_KEY,
    STORAGES,
    TRAINHALL_CLUSTERS,
    TRAINHALL_ORIGINS,
)

# a bare `manage.py check` in a checkout that was never run has no key yet
SECRET_KEY = SECRET_KEY or "only-for-commands-before-the-first-make-run"
HAS_LOCAL_CLUSTER = HAS_LOCAL_CLUSTER or not TRAINHALL_CLUSTERS
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *INTERNAL_HOSTS]
if OPERATOR.is_apart:
    ALLOWED_HOSTS.append(urlsplit(OPERATOR.url).hostname or "")
_port = OPERATOR.port if OPERATOR.is_apart else PORT
for _origin in (f"http://localhost:{_port}", f"http://127.0.0.1:{_port}"):
    if _origin not in TRAINHALL_ORIGINS:
        TRAINHALL_ORIGINS.append(_origin)
        CSRF_TRUSTED_ORIGINS.append(_origin)
# hashed names as in production, uncompressed: on loopback compressing costs seconds at the first start and saves nothing
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "portal.staticfiles.HashedOnly"}}
