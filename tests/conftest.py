"""Shared by all tests: the cast and the directory. The servers are started by the plugin tests.servers."""

from __future__ import annotations

from typing import Any

import pytest

pytest_plugins = ["tests.cast", "tests.directory", "tests.openid"]


# after the plugin of Django, which puts those last that commit
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first: two workers then end at about the same time."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Tests that commit are tidied up by emptying every table, the audit trail among them, which the portal never may."""
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_auditevent DISABLE TRIGGER audit_is_not_emptied")
