"""What the hall says where a job does not go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chaos.hall import Hall


class StoryGoesOn(Hall):
    """A portal whose one job gets a new event at every look, and never ends."""

    looks = 0

    def status_of(self, job: str) -> str:
        self.looks += 1
        return "starting"

    def story_of(self, job: str) -> list[Any]:
        return [f"event {number}" for number in range(self.looks)]


def test_a_job_that_stands_still_is_told_as_it_is_at_the_end_of_the_wait(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="event 1"):
        StoryGoesOn(tmp_path).until_over("a-job", seconds=0.2)
