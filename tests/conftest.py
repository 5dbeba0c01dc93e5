"""Shared by all tests: the cast. The servers are started by the plugin tests.servers."""

from __future__ import annotations

pytest_plugins = ["tests.cast"]
