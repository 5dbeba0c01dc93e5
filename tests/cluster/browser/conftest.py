"""Chromium before a portal on a real cluster. Apart from the other tests, since a browser leaves an event loop behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.conftest import chromium, visit
from tests.cluster.story import ClusterPortal, portal_on_cluster

__all__ = ["chromium", "visit"]


@pytest.fixture(scope="session")
def portal(containers: None) -> Iterator[ClusterPortal]:
    with portal_on_cluster() as portal:
        yield portal
