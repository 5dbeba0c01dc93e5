"""Buckets hide nothing: every point is counted, every extreme is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from metrics.downsample import bucketed

points = st.lists(
    st.tuples(st.integers(0, 2**63 - 1), st.floats(width=32)), min_size=1, max_size=60, unique_by=lambda pair: pair[0]
)


@given(points, st.integers(1, 20))
def test_every_point_is_in_one_bucket(pairs: list[tuple[int, float]], buckets: int) -> None:
    pairs.sort()
    step = np.array([pair[0] for pair in pairs], dtype=np.int64)
    value = np.array([pair[1] for pair in pairs], dtype=np.float64)
    found = bucketed(step, step, step.astype(np.float64), value, buckets=buckets)
    assert 1 <= len(found) <= buckets
    ends = np.cumsum(found.count)
    assert ends[-1] == len(step) and (found.count > 0).all()
    start = 0
    for number, end in enumerate(ends.tolist()):
        part: Any = value[start:end]
        good = part[np.isfinite(part)]
        assert found.step[number] == step[end - 1]
        assert found.last[number].tobytes() == value[end - 1].tobytes()
        assert found.bad[number] == len(part) - len(good)
        if len(good):
            assert (found.min[number], found.max[number]) == (good.min(), good.max())
        else:
            assert np.isnan(found.min[number]) and np.isnan(found.max[number])
        start = end


def test_a_spike_of_one_point_in_a_million_is_kept() -> None:
    step = np.arange(1_000_000, dtype=np.int64)
    value = np.zeros(1_000_000)
    value[654_321] = 1e9
    found = bucketed(step, step, step.astype(np.float64), value, buckets=2000)
    assert len(found) == 2000 and found.max.max() == 1e9 and (found.max > 0).sum() == 1
