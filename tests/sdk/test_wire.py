"""The two ends of the wire: what the SDK packs is what the portal's own parser reads."""

from __future__ import annotations

import math
import zlib

import numpy as np
from trainhall.batches import pack
from trainhall.tensors import picture

from metrics import points


def test_the_portal_reads_what_the_sdk_packs() -> None:
    seen = picture(np.array([0.0, 1.0, math.nan, math.inf]))
    empty = picture(np.array([math.nan]))
    assert seen is not None
    assert empty is not None
    distributions = [
        {
            "key": f"w{number}",
            "of": "weight",
            "step": 5,
            "time": 1767225600.5,
            "edges": one.edges,
            "counts": one.counts,
            "nan": one.nan,
            "inf": one.inf,
        }
        for number, one in enumerate((seen, empty))
    ]
    records = [
        (1767225600.25, 1, [("train/loss", 0.1), ("重み", math.nan), ("half \ud800", 1)]),
        (1767225600.75, 2, [("train/loss", -math.inf), ("重み", 10**400)]),
    ]
    packed = pack(records, distributions, {"step": 2, "total": 9, "epoch": 0.5}, attempt=3, rank=2)

    batch = points.read(packed.body if not packed.is_gzip else zlib.decompress(packed.body, 31), now=0.0)

    assert (batch.attempt, batch.rank, batch.progress) == (3, 2, {"step": 2, "total": 9, "epoch": 0.5})
    assert packed.points == batch.points == 7
    series = {one.key: one for one in batch.series}
    assert series["train/loss"].group == "train"
    assert series["train/loss"].step.tolist() == [1, 2]
    assert series["train/loss"].time.tolist() == [1767225600.25, 1767225600.75]
    assert series["train/loss"].value.tolist() == [0.1, -math.inf]
    assert math.isnan(series["重み"].value[0])
    assert series["重み"].value[1] == math.inf
    assert series["half ?"].value.tolist() == [1.0]
    first, second = batch.distributions
    assert (first.counts.sum(), first.nan, first.inf) == (2, 1, 1)
    assert (len(second.edges), second.nan) == (0, 1)
    assert batch.refusals.count == 0


def test_every_batch_has_an_id_of_its_own() -> None:
    ids = {points.read(pack([], [], None, attempt=1, rank=0).body, now=0.0).id for _number in range(100)}
    assert len(ids) == 100
