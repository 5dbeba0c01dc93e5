"""Smoothing: the same numbers as TensorBoard, and curves that do not change under a zoom."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from metrics.smoothing import BY_DISTANCE, EMA, Smoothing, smooth

NAN = math.nan


@pytest.mark.parametrize(
    ("mode", "weight", "x", "value", "expected"),
    [
        (EMA, 0.6, [0, 1, 2, 3, 4], [1, 2, 3, NAN, 5], [1, 1.625, 2.326531, NAN, 3.555147]),
        (EMA, 0.9, [0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 1.526316, 2.070111, 2.631288, 3.209714]),
        (BY_DISTANCE, 0.99, [0, 1, 2, 10, 11], [1, 2, 3, 4, 5], [1, 1.612263, 2.29442, 3.914726, 4.565911]),
    ],
)
def test_parity(mode: str, weight: float, x: list[int], value: list[float], expected: list[float]) -> None:
    found = smooth(np.array(x), np.array(value, float), weight=weight, mode=mode)
    np.testing.assert_allclose(found.value, expected, atol=1e-6)


def one_by_one(value: Any, weight: float) -> list[float]:
    """TensorBoard's loop, written down."""
    last, count, out = 0.0, 0, []
    for each in value:
        if math.isfinite(each):
            last = last * weight + (1 - weight) * each
            count += 1
            out.append(last / (1 - weight**count))
        else:
            out.append(each)
    return out


@pytest.mark.parametrize("weight", [0.01, 0.6, 0.99, 0.999])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 1000])
def test_many_at_a_time_is_what_one_by_one_is(weight: float, count: int) -> None:
    value = np.random.default_rng(count).normal(size=count)
    value[count // 2 :: 7] = [math.inf, NAN][count % 2]
    np.testing.assert_allclose(smooth(np.arange(count), value, weight=weight).value, one_by_one(value, weight))


@pytest.mark.parametrize("mode", [EMA, BY_DISTANCE])
def test_a_constant_stays_and_nothing_finite_is_no_fault(mode: str) -> None:
    constant = np.array([0.1, 0.1, NAN, 0.1])
    np.testing.assert_array_equal(smooth(np.arange(4), constant, weight=0.9, mode=mode).value, constant)
    lost = smooth(np.arange(2), np.array([NAN, -math.inf]), weight=0.9, mode=mode)
    np.testing.assert_array_equal(lost.value, [NAN, -math.inf])
    assert (lost.total, lost.norm) == (0.0, 0.0)
    assert len(smooth(np.arange(0), np.empty(0), weight=0.9, mode=mode).value) == 0


def test_one_can_go_on_from_where_it_stands() -> None:
    value = np.array([1.0, 2.0, 3.0, 5.0, 8.0])
    found = smooth(np.arange(4), value[:4], weight=0.6)
    total, norm = found.total * 0.6 + 0.4 * value[4], found.norm * 0.6 + 0.4
    assert total / norm == pytest.approx(smooth(np.arange(5), value, weight=0.6).value[-1])


def test_few_points_are_not_smoothed_unless_somebody_asks() -> None:
    assert Smoothing(None).of(199) == 0 and Smoothing(None).of(200) == 0.6
    assert Smoothing(0.3).of(5) == 0.3 and Smoothing(5.0).of(5) == 0.999
