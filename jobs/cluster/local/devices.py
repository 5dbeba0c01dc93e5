"""The GPUs of this machine: real ones, of which no two pods share one, or virtual ones for a demo, always labelled so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
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
    devices: Devices, *, per_worker: int, workers: list[str], others: Iterable[ObjectFacts]
) -> dict[str, dict[str, str]] | None:
    """Each worker's variables, or None while not enough real devices are free. The caller holds the lock of the root."""
    if devices.is_virtual:
        return {worker: {VIRTUAL: str(per_worker)} for worker in workers} if per_worker else {}
    taken = {
        index
        for facts in others
        if facts.released is not None and not facts.is_over
        for pod in facts.existing_pods
        if pod.exited is None
        for index in facts.released["devices"].get(pod.folder.worker, {}).get(VISIBLE, "").split(",")
    }
    free = [str(index) for index in range(devices.count) if str(index) not in taken]
    if len(free) < per_worker * len(workers):
        return None
    if not devices.count:
        return {}
    # A worker without GPUs sees none: a framework would take them all.
    return {
        worker: {VISIBLE: ",".join(free[position * per_worker : (position + 1) * per_worker])}
        for position, worker in enumerate(workers)
    }
