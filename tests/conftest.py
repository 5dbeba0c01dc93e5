"""Shared by all tests: the cast and the directory. The servers are started by the plugin tests.servers."""

from __future__ import annotations

pytest_plugins = ["tests.cast", "tests.directory"]
