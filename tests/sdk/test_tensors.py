"""How values are distributed: the same picture, whoever made the array."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from conftest import Run
from door import Door
from trainhall.tensors import BINS, picture

VALUES = [0.25 * number for number in range(-40, 41)] + [math.nan, math.inf, -math.inf, math.inf]


@pytest.mark.parametrize(
    "array",
    [
        np.array(VALUES),
        np.array(VALUES, dtype=np.float32).reshape(5, 17),
        VALUES,
        [VALUES[:40], VALUES[40:]],
        [np.float64(value) for value in VALUES],
    ],
    ids=["float64", "float32", "list", "nested", "scalars"],
)
def test_every_kind_of_array_gives_the_same_picture(array: object) -> None:
    seen = picture(array)
    assert seen is not None
    assert (seen.nan, seen.inf, sum(seen.counts), len(seen.counts), len(seen.edges)) == (1, 3, 81, BINS, BINS + 1)
    assert (seen.edges[0], seen.edges[-1]) == (-10, 10)
    finite = [value for value in VALUES if math.isfinite(value)]
    assert seen.mean == pytest.approx(0)
    assert seen.std == pytest.approx(np.std(finite))
    assert seen.norm == pytest.approx(np.linalg.norm(finite))


def test_the_pure_histogram_counts_as_numpy_does() -> None:
    values = np.random.default_rng(3).normal(size=1000)
    ours, theirs = picture(values.tolist()), picture(values)
    assert ours is not None
    assert theirs is not None
    assert ours.counts == theirs.counts


def test_equal_values_stand_in_one_bin_and_nothing_finite_has_none() -> None:
    seen = picture(np.full(7, 2.5))
    assert seen is not None
    assert (max(seen.counts), seen.edges[0], seen.edges[-1], seen.std) == (7, 2.0, 3.0, 0)
    empty = picture(np.array([math.nan, math.inf]))
    assert empty is not None
    assert (empty.edges, empty.counts, empty.nan, empty.inf) == ([], [], 1, 1)
    assert picture(np.array([])) is None
    assert picture([]) is None


def test_whole_numbers_and_truths() -> None:
    seen = picture(np.array([True, False, True]))
    assert seen is not None
    assert (sum(seen.counts), seen.mean) == (3, pytest.approx(2 / 3))


def test_weights_arrive_as_distributions_and_as_charts(run_python: Run, door: Door) -> None:
    done = run_python(
        "import numpy as np, trainhall\n"
        "trainhall.log_weights({'layer1.weight': np.arange(8.0)}, step=20)\n"
        "trainhall.log_weights({'layer1.weight': np.ones(4)}, step=20, of='gradient')"
    )
    assert done.stderr == ""
    first, second = door.distributions()
    assert (first["key"], first["of"], first["step"], sum(first["counts"])) == ("layer1.weight", "weight", 20, 8)
    assert (second["of"], sum(second["counts"])) == ("gradient", 4)
    charts = {key: points[20] for (_rank, key), points in door.series().items()}
    assert charts["weights/layer1.weight/mean"] == 3.5
    assert charts["gradients/layer1.weight/norm"] == 2.0


def test_a_watched_model_is_looked_at_every_so_many_steps(run_python: Run, door: Door) -> None:
    run_python(
        "import time, trainhall\n"
        "weights = {'w': [1.0, 2.0]}\n"
        "trainhall.watch(lambda: weights, every=10)\n"
        "for step in range(35):\n"
        "    trainhall.log({'loss': 1}, step=step); time.sleep(0.01)\n"
    )
    steps = [one["step"] for one in door.distributions()]
    assert steps[0] == 0
    assert len(steps) >= 3
    assert all(later - earlier >= 10 for earlier, later in itertools.pairwise(steps))
