"""One running job of alice's in `vision`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.metrics.makers import make_job


@pytest.fixture
def job(alice: Any, vision: Any) -> Any:
    return make_job(alice, vision)
