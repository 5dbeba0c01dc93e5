"""An installation for people: everything from the environment, nothing assumed."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from portal.settings.base import *  # noqa: F403 - settings modules stack
from portal.settings.base import DATABASE_URL, REDIS_URL, SECRET_KEY

for _name, _value in (
    ("TRAINHALL_SECRET_KEY", SECRET_KEY),
    ("DATABASE_URL", DATABASE_URL),
    ("REDIS_URL", REDIS_URL),
):
    if not _value:
        raise ImproperlyConfigured(f"{_name} is not set.")
SECURE_HSTS_SECONDS = 31536000 if SESSION_COOKIE_SECURE else 0
