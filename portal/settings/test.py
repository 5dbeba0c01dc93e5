"""Tests: the same parts as production, started by tests/conftest.py, and quick password hashes."""

from __future__ import annotations

from portal.settings.base import *  # noqa: F403 - settings modules stack
from portal.settings.base import SECRET_KEY, STORAGES

SECRET_KEY = SECRET_KEY or "a-key-for-tests-only-which-guards-nothing"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
HAS_LOCAL_CLUSTER, KUBERNETES_CLUSTERS = True, ()
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# no manifest: pages of tests need no collectstatic
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = True
