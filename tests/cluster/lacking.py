"""What a test on a cluster does where the cluster lacks something."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lacking(why: str) -> NoReturn:
    """Skipped, loudly; where these tests are mandatory it is a failure."""
    if os.environ.get("TRAINHALL_CLUSTER_TESTS") == "required":
        pytest.fail(f"{why} The tests on a real cluster are mandatory here.")
    pytest.skip(why)
