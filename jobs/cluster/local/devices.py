"""The GPUs of this machine: real ones, of which no two pods share one, or virtual ones for a demo, always labelled so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jobs.cluster.local.facts import ObjectFacts

VISIBLE = "CUDA_VISIBLE_DEVICES"
VIRTUAL = "TRAINHALL_VIRTUAL_GPUS"


@dataclass(frozen=True, slots=True)
class Devices:
    """What the machine offers."""

    count: int
    product: str
    is_virtual: bool

    @classmethod
    def of_this_machine(cls, *, asked_virtual: int) -> Devices:
        """Virtual ones if they are asked for, else what the NVIDIA driver shows."""
        if asked_virtual:
            return cls(count=asked_virtual, product="virtual", is_virtual=True)
        indexes = [path for path in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)]
        return cls(count=len(indexes), product=_product(), is_virtual=False)


def _product() -> str:
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        match = re.search(r"^Model:\s*(.+)$", path.read_text(), re.MULTILINE)
        if match:
            return re.sub(r"[^A-Za-z0-9._-]+", "-", match[1].strip())  # as the NVIDIA feature discovery writes it
    return "NVIDIA"


def assign(
    devices: Devices, *, asked: Mapping[str, int], others: Iterable[ObjectFacts]
) -> dict[str, dict[str, str]] | None:
    """Each pod's variables, or None while not enough real devices are free; `asked` is how many each gets.

    The caller holds the lock of the root.
    """
    if devices.is_virtual:
        return {worker: {VIRTUAL: str(count)} for worker, count in asked.items() if count}
    taken = {
        index
        for facts in others
        if facts.released is not None and not facts.is_all_over
        for pod in facts.all_existing_pods
        if pod.exited is None
        for index in facts.released["devices"].get(pod.folder.worker, {}).get(VISIBLE, "").split(",")
    }
    free = [str(index) for index in range(devices.count) if str(index) not in taken]
    if len(free) < sum(asked.values()):
        return None
    if not devices.count:
        return {}
    # A worker without GPUs sees none: a framework would take them all.
    rest = iter(free)
    return {worker: {VISIBLE: ",".join(islice(rest, count))} for worker, count in asked.items()}
