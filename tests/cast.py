"""The people and things of every story: alice and bob are members of `vision`, carol leads it, dave shares nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "correct horse battery"


@pytest.fixture
def alice(db: None) -> Any:
    return _person("alice")


@pytest.fixture
def bob(db: None) -> Any:
    return _person("bob")


@pytest.fixture
def carol(db: None) -> Any:
    return _person("carol")


@pytest.fixture
def dave(db: None) -> Any:
    return _person("dave")


@pytest.fixture
def admin(db: None) -> Any:
    return _person("admin")


@pytest.fixture
def vision(alice: Any, bob: Any, carol: Any) -> Any:
    from portal import seed

    return seed.ensure_project("vision")


@pytest.fixture
def speech(dave: Any) -> Any:
    from portal import seed

    return seed.ensure_project("speech")


@pytest.fixture
def numpy_runtime(db: None) -> Any:
    from portal import seed

    return seed.ensure_runtime("numpy")


@pytest.fixture
def shell_runtime(db: None) -> Any:
    from portal import seed

    return seed.ensure_runtime("shell")


@pytest.fixture
def priorities(db: None) -> None:
    from portal import seed

    seed.ensure_priorities()


@pytest.fixture
def local_row(db: None) -> Any:
    """The row of the local cluster, for tests that need no processes."""
    from portal import seed

    return seed.ensure_clusters()[0]


@pytest.fixture
def local_cluster(local_row: Any, settings: Any, tmp_path: Path) -> Iterator[Any]:
    """A real local cluster in a folder of its own; whatever still runs in it at the end is killed."""
    from jobs.cluster import registry

    settings.HAS_LOCAL_CLUSTER = True
    settings.TRAINHALL_LOCAL_GPUS = 8
    settings.TRAINHALL_DATA_DIR = tmp_path / "data"
    cluster: Any = registry.connect(registry.LOCAL)
    yield cluster
    cluster.stop_everything(0)


@pytest.fixture
def world(
    vision: Any, speech: Any, admin: Any, numpy_runtime: Any, shell_runtime: Any, priorities: None, local_row: Any
) -> None:
    """Everything at once but processes."""


def _person(name: str) -> Any:
    from portal import seed

    return seed.ensure_person(name, password=PASSWORD)
